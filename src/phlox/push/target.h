// A server that accepts profiles: its address, its protocol and the credentials for it. Credentials come from
// a file or the environment, never from a command line, and no message contains them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/http/http.h"

namespace phlox::push {

enum class Protocol : uint8_t { otlp, otlp_grpc, pyroscope, parca };
std::string_view protocol_name(Protocol protocol);  // "otlp", "otlp-grpc", …: also the options' names
constexpr bool is_otlp(Protocol protocol) {
  return protocol == Protocol::otlp || protocol == Protocol::otlp_grpc;
}
constexpr bool is_grpc(Protocol protocol) {
  return protocol == Protocol::otlp_grpc || protocol == Protocol::parca;
}

using http::Header;

struct Target {
  Protocol protocol = Protocol::otlp;
  std::string url;    // with the path of the request
  std::string shown;  // for messages: without the query string, and with the protocol if it is gRPC
  bool encrypted = false;
  bool loopback = false;
  std::vector<Header> headers;
};

// `url` is what the user gave; the path of the request is added if it is missing. ErrorKind::usage: not a
// URL, a protocol other than HTTP, or a user name or password in it.
Result<Target> target_of(Protocol protocol, std::string_view url);

// A line of a header file, "Name: value", below "[otlp]", "[parca]" or "[URL]", which says which server it is
// for.
struct HeaderLine {
  std::string whom;  // empty: above the first of these lines
  Header header;
};
// Skips blank lines and lines that begin with '#'. Messages name lines by number, never by content.
Result<std::vector<HeaderLine>> parse_header_file(std::string_view text);
// As OTEL_EXPORTER_OTLP_HEADERS has them: "name=value,name=value", values percent-encoded.
Result<std::vector<Header>> parse_header_list(std::string_view text);

// Gives each target its headers. ErrorKind::usage: a line matches no target, or does not say which
// of several.
Result<void> assign_headers(const std::vector<HeaderLine>& lines, std::vector<Target>& targets);

// The text of a file that belongs to this user and that nobody else can read. As root, follows no link.
Result<std::string> read_secret_file(const std::string& path);

}  // namespace phlox::push
