#include "phlox/push/metrics_port.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "phlox/base/clock.h"
#include "phlox/base/text.h"

namespace phlox::push {
namespace {

constexpr size_t kLongestRequest = 4096;
constexpr Nanoseconds kPatienceWithClient = kSecond;

struct LoopbackAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

std::optional<LoopbackAddress> parse_loopback(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  const auto port = parse_number<uint16_t>(text.substr(colon + 1));
  const std::string host(text.substr(0, colon));
  if (!port) return {};
  LoopbackAddress address;
  if (host == "[::1]") {
    auto& six = reinterpret_cast<sockaddr_in6&>(address.bytes);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(*port);
    six.sin6_addr = in6addr_loopback;
    address.size = sizeof six;
    return address;
  }
  auto& four = reinterpret_cast<sockaddr_in&>(address.bytes);
  four.sin_family = AF_INET;
  four.sin_port = htons(*port);
  address.size = sizeof four;
  const std::string name = host == "localhost" ? "127.0.0.1" : host;
  constexpr uint32_t kLoopbackNet = 127;
  if (::inet_pton(AF_INET, name.c_str(), &four.sin_addr) != 1 ||
      ntohl(four.sin_addr.s_addr) >> 24 != kLoopbackNet)
    return {};
  return address;
}

uint16_t port_of(int listener) {
  LoopbackAddress address;
  address.size = sizeof address.bytes;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&address.bytes), &address.size) != 0) return 0;
  return ntohs(address.bytes.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address.bytes).sin6_port
                                                   : reinterpret_cast<sockaddr_in&>(address.bytes).sin_port);
}

// False: not within the time that is left.
bool wait_for(int descriptor, short events, Nanoseconds until) {
  const Nanoseconds left = until - clock_now();
  if (left <= 0) return false;
  pollfd one{descriptor, events, 0};
  constexpr Nanoseconds kMillisecond = 1'000'000;
  return ::poll(&one, 1, static_cast<int>(left / kMillisecond) + 1) == 1;
}

}  // namespace

std::string response_to(std::string_view head, const Pages& pages, const Pages& posts) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const size_t first = line.find(' '), second = first == line.npos ? line.npos : line.find(' ', first + 1);
  const std::string_view method = line.substr(0, first);
  Page page;
  const bool has_path = second != line.npos && line[first + 1] == '/';
  if (!has_path || !line.substr(second + 1).starts_with("HTTP/1.")) {
    page = {400, page.type, "this is not an HTTP request\n"};
  } else if (method != "GET" && method != "HEAD" && !(method == "POST" && posts)) {
    page = {405, page.type, fmt::format("only GET{} HEAD are supported\n", posts ? ", POST and" : " and")};
  } else if (method == "POST" && lower_case(head).find("\norigin:") != head.npos) {
    page = {403, page.type, "requests of a browser's page are refused\n"};
  } else {
    std::string_view path = line.substr(first + 1, second - first - 1);
    path = path.substr(0, path.find('?'));
    page = (method == "POST" ? posts : pages)(path).value_or(Page{404, page.type, "no such page\n"});
  }
  const std::string_view words = page.status == 200   ? "OK"
                                 : page.status == 202 ? "Accepted"
                                 : page.status == 404 ? "Not Found"
                                                      : "Error";
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nX-Content-Type-Options: nosniff\r\n"
      "Connection: close\r\n\r\n{}",
      page.status, words, page.type, page.text.size(), method == "HEAD" ? "" : page.text);
}

MetricsPort::MetricsPort(Descriptor listener, Descriptor end, uint16_t port, Pages pages, Pages posts)
    : listener_(std::move(listener)),
      end_(std::move(end)),
      port_(port),
      pages_(std::move(pages)),
      posts_(std::move(posts)),
      thread_([this] { run(); }) {}

MetricsPort::~MetricsPort() {
  ::eventfd_write(end_.get(), 1);
  thread_.join();
}

Result<void> MetricsPort::check(std::string_view address, std::string_view option) {
  if (parse_loopback(address)) return {};
  return fail(ErrorKind::usage,
              fmt::format("{}: this is not an address and a port of the loopback interface", option),
              "for example: 127.0.0.1:9464. For other hosts, put a proxy in front of it");
}

Result<std::unique_ptr<MetricsPort>> MetricsPort::open(std::string_view text, Pages pages, Pages posts) {
  const auto address = parse_loopback(text);
  if (!address) return fail(check(text));
  Descriptor listener(::socket(address->bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Descriptor end(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int reuse = 1;
  constexpr int kWaiting = 16;
  if (!listener || !end ||
      ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) != 0 ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address->bytes), address->size) != 0 ||
      ::listen(listener.get(), kWaiting) != 0)
    return fail(ErrorKind::system, fmt::format("cannot listen on {}: {}", text, std::strerror(errno)),
                "is another program using the port? ss -ltnp");
  const uint16_t port = port_of(listener.get());
  return std::unique_ptr<MetricsPort>(
      new MetricsPort(std::move(listener), std::move(end), port, std::move(pages), std::move(posts)));
}

void MetricsPort::run() {
  while (true) {
    std::array<pollfd, 2> both = {{{listener_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}}};
    if (::poll(both.data(), both.size(), -1) < 0 && errno != EINTR) return;
    if (both[1].revents != 0) return;
    if (both[0].revents == 0) continue;
    const Descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client) {
      answer(client.get());
    } else if (errno == EMFILE || errno == ENFILE) {
      constexpr int kPause = 100;
      ::poll(&both[1], 1, kPause);
    }
  }
}

void MetricsPort::answer(int client) const {
  const Nanoseconds until = clock_now() + kPatienceWithClient;
  std::string request;
  while (request.find("\r\n\r\n") == std::string::npos) {
    std::array<char, 1024> bytes;
    if (request.size() > kLongestRequest || !wait_for(client, POLLIN, until)) return;
    const ssize_t got = ::recv(client, bytes.data(), bytes.size(), 0);
    if (got <= 0) return;
    request.append(bytes.data(), static_cast<size_t>(got));
  }
  const std::string response =
      response_to(std::string_view(request).substr(0, request.find("\r\n\r\n") + 2), pages_, posts_);
  for (std::string_view rest = response; !rest.empty();) {
    if (!wait_for(client, POLLOUT, until)) return;
    const ssize_t sent = ::send(client, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  ::shutdown(client, SHUT_WR);
  // Closing it with bytes unread, such as the body of a POST, would reset the connection before the client
  // has read the answer.
  constexpr size_t kMostIgnored = size_t{1} << 20;
  std::array<char, 4096> bytes;
  size_t ignored = 0;
  while (ignored < kMostIgnored && wait_for(client, POLLIN, until)) {
    const ssize_t got = ::recv(client, bytes.data(), bytes.size(), 0);
    if (got <= 0) return;
    ignored += static_cast<size_t>(got);
  }
}

}  // namespace phlox::push
