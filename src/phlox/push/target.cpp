#include "phlox/push/target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "phlox/base/descriptor.h"
#include "phlox/base/encodings.h"
#include "phlox/base/interrupted.h"
#include "phlox/base/text.h"
#include "phlox/push/grpc.h"

namespace phlox::push {
namespace {

constexpr size_t kLongestSecretFile = size_t{64} << 10;
constexpr size_t kMostHeaders = 64;

struct PathOfProtocol {
  std::string_view name, whole, end, example;
};
// opentelemetry.io/docs/specs/otlp; pyroscope's api/push/v1/push.proto, which a Connect client reaches at
// this path; and the services of gRPC: that of opentelemetry-proto and parca's
// proto/parca/profilestore/v1alpha1/profilestore.proto. Who gives a URL that ends so means that page.
constexpr std::array<PathOfProtocol, 4> kPaths = {{
    {"otlp", "/v1development/profiles", "/profiles", "http://localhost:4318"},
    {"otlp-grpc", "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", "/Export",
     "http://localhost:4317"},
    {"pyroscope", "/push.v1.PusherService/Push", "/Push", "http://localhost:4040"},
    {"parca", "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", "/WriteRaw",
     "http://localhost:7070"},
}};

const PathOfProtocol& path_of(Protocol protocol) {
  return kPaths[static_cast<size_t>(protocol)];
}

// RFC 9110, 5.6.2.
bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    const char small = static_cast<char>(c | 0x20);
    return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') || kMarks.find(c) != kMarks.npos;
  });
}

// Those that libcurl or the protocol sets.
bool is_reserved(std::string_view name) {
  constexpr std::array<std::string_view, 8> kReserved = {
      "content-type", "content-length", "content-encoding", "transfer-encoding",
      "host",         "connection",     "expect",           "te"};
  const std::string lower = lower_case(name);
  return lower.starts_with(kGrpcHeaders) ||
         std::find(kReserved.begin(), kReserved.end(), lower) != kReserved.end();
}

bool is_plain(std::string_view value) {
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

Result<Header> header_of(std::string_view name, std::string_view value, const std::string& where) {
  if (!is_token(name))
    return fail(ErrorKind::usage, where + ": this is not a header", "for example: Authorization: Bearer …");
  if (is_reserved(name))
    return fail(ErrorKind::usage, fmt::format("{}: phlox sets the header {} itself", where, name),
                "leave it out");
  if (!is_plain(value))
    return fail(ErrorKind::usage,
                fmt::format("{}: the value of {} contains a control character", where, name),
                "write it on one line, without tabs");
  return Header{std::string(name), std::string(value)};
}

bool is_for(const std::string& whom, const Target& target) {
  if (whom == protocol_name(target.protocol)) return true;
  // The whole host: a section for "example.com" is not for "example.com.net".
  if (!target.url.starts_with(whom) || whom.find("://") == std::string::npos) return false;
  return target.url.size() == whom.size() || whom.back() == '/' || target.url[whom.size()] == '/' ||
         target.url[whom.size()] == '?';
}

}  // namespace

std::string_view protocol_name(Protocol protocol) {
  return path_of(protocol).name;
}

Result<Target> target_of(Protocol protocol, std::string_view given) {
  const std::string option = fmt::format("--{}", protocol_name(protocol));
  Target target;
  target.protocol = protocol;
  const std::string scheme = lower_case(given.substr(0, given.find("://")));
  target.encrypted = scheme == "https";
  if (given.find("://") == std::string_view::npos || (scheme != "http" && scheme != "https"))
    return fail(ErrorKind::usage, fmt::format("{}: this is not the address of a server", option),
                fmt::format("for example: {} {}", option, path_of(protocol).example));
  std::string_view rest = given.substr(scheme.size() + 3);
  const size_t host_end = std::min(rest.find_first_of("/?#"), rest.size());
  const std::string_view host = rest.substr(0, host_end);
  if (host.find('@') != std::string_view::npos)
    return fail(ErrorKind::usage,
                fmt::format("{}: the URL contains a user name or a password, and everyone on this host can "
                            "read command lines",
                            option),
                "write an Authorization header into a file, and name the file with --header-file");
  const bool is_odd = std::any_of(given.begin(), given.end(), [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '\\';
  });
  if (host.empty() || is_odd || given.find('#') != std::string_view::npos)
    return fail(ErrorKind::usage, fmt::format("{}: this is not the address of a server", option),
                fmt::format("for example: {} {}", option, path_of(protocol).example));
  target.loopback = host.starts_with("127.") || host.starts_with("[::1]") || host == "localhost" ||
                    host.starts_with("localhost:");
  const size_t query = std::min(rest.find('?'), rest.size());
  std::string path(rest.substr(host_end, query - host_end));
  while (path.ends_with('/')) path.pop_back();
  const std::string given_path = path;
  if (!path.ends_with(path_of(protocol).end)) path += path_of(protocol).whole;
  const std::string server = scheme + "://" + std::string(host);
  target.url = server + path + std::string(rest.substr(query));
  // The names of services are long, and the same for every server.
  target.shown = is_grpc(protocol) ? fmt::format("{}{} ({})", server, given_path, protocol_name(protocol))
                                   : server + path;
  return target;
}

Result<std::vector<HeaderLine>> parse_header_file(std::string_view text) {
  std::vector<HeaderLine> lines;
  std::string whom;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line = trimmed(line);
    const std::string where = fmt::format("line {} of the header file", number);
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[' && line.back() == ']') {
      whom = line.substr(1, line.size() - 2);
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return fail(header_of("", "", where));
    auto header = header_of(line.substr(0, colon), trimmed(line.substr(colon + 1)), where);
    if (!header) return fail(header);
    if (lines.size() == kMostHeaders)
      return fail(ErrorKind::usage, fmt::format("{}: more than {} headers", where, kMostHeaders));
    lines.push_back({whom, *std::move(header)});
  }
  return lines;
}

Result<std::vector<Header>> parse_header_list(std::string_view text) {
  std::vector<Header> headers;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (trimmed(part).empty()) continue;
    const size_t equals = part.find('=');
    const std::string where = fmt::format("header {} of OTEL_EXPORTER_OTLP_HEADERS", headers.size() + 1);
    if (equals == std::string_view::npos) return fail(header_of("", "", where));
    auto header =
        header_of(trimmed(part.substr(0, equals)), percent_decoded(trimmed(part.substr(equals + 1))), where);
    if (!header) return fail(header);
    if (headers.size() == kMostHeaders)
      return fail(ErrorKind::usage, fmt::format("{}: more than {} headers", where, kMostHeaders));
    headers.push_back(*std::move(header));
  }
  return headers;
}

Result<void> assign_headers(const std::vector<HeaderLine>& lines, std::vector<Target>& targets) {
  for (const HeaderLine& line : lines) {
    if (line.whom.empty() && targets.size() > 1)
      return fail(ErrorKind::usage, "the header file does not say which server its headers are for",
                  "write its option or the beginning of its URL above them: [otlp], [pyroscope], "
                  "[https://example.com]");
    bool any = false;
    for (Target& target : targets) {
      if (!line.whom.empty() && !is_for(line.whom, target)) continue;
      target.headers.push_back(line.header);
      any = true;
    }
    if (!any)
      return fail(
          ErrorKind::usage, "a section of the header file matches no server",
          "name it as the server's option or as its URL begins: [otlp], [parca], [https://example.com]");
  }
  return {};
}

Result<std::string> read_secret_file(const std::string& path) {
  // A link in a folder of somebody else could lead anywhere.
  const int follow = ::geteuid() == 0 ? O_NOFOLLOW : 0;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | follow));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    const bool is_link = errno == ELOOP && follow != 0;
    return fail(ErrorKind::input, fmt::format("cannot read {}: {}", path, std::strerror(errno)),
                is_link ? "as root, phlox follows no link: name the file itself" : "does the file exist?");
  }
  if (!S_ISREG(status.st_mode)) return fail(ErrorKind::input, fmt::format("{} is not a regular file", path));
  if ((status.st_uid != ::geteuid() && status.st_uid != 0) || (status.st_mode & 077) != 0)
    return fail(ErrorKind::input, fmt::format("{}: other users can read or change this file", path),
                fmt::format("chmod 600 {}", single_quoted(path)));
  std::string text(kLongestSecretFile + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = retried([&] { return ::read(file.get(), text.data() + size, text.size() - size); });
    if (got < 0) return fail(ErrorKind::input, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > kLongestSecretFile)
    return fail(ErrorKind::input, fmt::format("{} is larger than 64 KiB, too large for headers", path));
  text.resize(size);
  return text;
}

}  // namespace phlox::push
