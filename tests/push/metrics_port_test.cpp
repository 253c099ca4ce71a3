#include "phlox/push/metrics_port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace phlox::push {
namespace {

std::optional<Page> pages(std::string_view path) {
  if (path == "/healthz") return Page{200, "text/plain", "ok\n"};
  return {};
}

std::string start_of_response(std::string_view line) {
  const std::string response = response_to(line, pages);
  return response.substr(0, response.find("\r\n"));
}

std::string asked(uint16_t port, std::string_view request) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string all;
  char bytes[1000];
  for (ssize_t got = 0; (got = ::recv(socket.get(), bytes, sizeof bytes, 0)) > 0;)
    all.append(bytes, static_cast<size_t>(got));
  return all;
}

TEST(MetricsPort, answers_requests_for_its_pages) {
  EXPECT_EQ(start_of_response("GET /healthz HTTP/1.1"), "HTTP/1.1 200 OK");
  EXPECT_EQ(start_of_response("GET /healthz?x=1 HTTP/1.0"), "HTTP/1.1 200 OK");
  EXPECT_EQ(start_of_response("GET /other HTTP/1.1"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(start_of_response("POST /healthz HTTP/1.1"), "HTTP/1.1 405 Error");
  for (const char* line : {"", "GET", "GET /healthz", "GET  HTTP/1.1", "x", " "})
    EXPECT_EQ(start_of_response(line), "HTTP/1.1 400 Error") << line;
  EXPECT_TRUE(response_to("GET /healthz HTTP/1.1", pages).ends_with("\r\n\r\nok\n"));
  EXPECT_TRUE(
      response_to("HEAD /healthz HTTP/1.1", pages)
          .ends_with("Content-Length: 3\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"));
}

TEST(MetricsPort, takes_a_post_where_one_is_wanted_but_not_from_a_browser) {
  int posted = 0;
  const Pages posts = [&](std::string_view path) -> std::optional<Page> {
    if (path != "/incident") return {};
    ++posted;
    return Page{202, "text/plain", "noted\n"};
  };
  const auto status = [&](std::string_view head) {
    const std::string response = response_to(head, pages, posts);
    return response.substr(0, response.find("\r\n"));
  };
  EXPECT_EQ(status("POST /incident HTTP/1.1\r\nHost: x\r\n"), "HTTP/1.1 202 Accepted");
  EXPECT_EQ(status("POST /incident?why HTTP/1.1"), "HTTP/1.1 202 Accepted");
  EXPECT_EQ(posted, 2);
  EXPECT_EQ(status("GET /incident HTTP/1.1"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(status("POST /healthz HTTP/1.1"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(status("POST /incident HTTP/1.1\r\nHost: x\r\noRigin: http://example.com\r\n"),
            "HTTP/1.1 403 Error");
  EXPECT_EQ(status("POST /incident HTTP/1.1\r\nOrigin: null\r\n"), "HTTP/1.1 403 Error");
  EXPECT_EQ(status("PUT /incident HTTP/1.1"), "HTTP/1.1 405 Error");
  EXPECT_EQ(posted, 2);
  const auto port = MetricsPort::open("127.0.0.1:0", pages, posts);
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_TRUE(asked((*port)->port(), "POST /incident HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody")
                  .ends_with("noted\n"));
  EXPECT_EQ(posted, 3);
}

TEST(MetricsPort, listens_on_the_loopback_interface_alone) {
  for (const char* address : {"0.0.0.0:0", "192.168.1.1:80", "[::]:0", "example.com:80", "127.0.0.1",
                              "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", ":80", ""}) {
    const auto port = MetricsPort::open(address, pages);
    ASSERT_FALSE(port) << address;
    EXPECT_EQ(port.error().kind, ErrorKind::usage) << address;
  }
}

TEST(MetricsPort, answers_over_a_socket_one_after_the_other) {
  const auto port = MetricsPort::open("127.0.0.1:0", pages);
  ASSERT_TRUE(port) << port.error().message;
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(asked((*port)->port(), "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").ends_with("ok\n"));
  // What is no request, or too long for one, ends the connection.
  EXPECT_EQ(asked((*port)->port(), std::string(8000, 'x')), "");
  EXPECT_TRUE(asked((*port)->port(), "GET /healthz HTTP/1.1\r\n\r\n").ends_with("ok\n"));
}

TEST(MetricsPort, a_port_that_is_taken_is_an_error) {
  const auto port = MetricsPort::open("127.0.0.1:0", pages);
  ASSERT_TRUE(port);
  EXPECT_FALSE(MetricsPort::open("127.0.0.1:" + std::to_string((*port)->port()), pages));
}

}  // namespace
}  // namespace phlox::push
