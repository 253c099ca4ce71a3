#include "phlox/push/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <protozero/pbf_reader.hpp>

#include "phlox/base/text.h"
#include "phlox/push/grpc.h"

namespace phlox::push {
namespace {

// ExportProfilesServiceResponse of opentelemetry-proto, collector/profiles/v1development.
constexpr protozero::pbf_tag_type kPartialSuccess = 1, kRejectedProfiles = 1, kErrorMessage = 2;

// What a server says, in printable ASCII, and only if it repeats no credential.
std::string quoted(std::string_view words, const Target& target) {
  constexpr size_t kLongest = 200, kShortestSecret = 4;
  const auto is_in_it = [&](const Header& header) {
    return header.value.size() >= kShortestSecret && words.find(header.value) != std::string_view::npos;
  };
  if (std::any_of(target.headers.begin(), target.headers.end(), is_in_it)) return {};
  std::string plain;
  for (const char c : words.substr(0, kLongest)) plain += c >= ' ' && c <= '~' ? c : ' ';
  while (!plain.empty() && plain.back() == ' ') plain.pop_back();
  return plain.empty() ? plain : fmt::format(": \"{}\"", plain);
}

void read_partial_success(protozero::pbf_reader part, const Target& target, Verdict& verdict) {
  std::string words;
  while (part.next()) {
    if (part.tag() == kRejectedProfiles && part.wire_type() == protozero::pbf_wire_type::varint) {
      verdict.rejected = static_cast<uint64_t>(std::max<int64_t>(0, part.get_int64()));
    } else if (part.tag() == kErrorMessage &&
               part.wire_type() == protozero::pbf_wire_type::length_delimited) {
      words = part.get_string();
    } else {
      part.skip();
    }
  }
  if (verdict.rejected == 0 && words.empty()) return;
  verdict.key = "partial success";
  verdict.message = fmt::format(
      "{} {}{}", target.shown,
      verdict.rejected > 0 ? "did not accept every profile" : "accepted the profiles, with a remark",
      quoted(words, target));
}

// `body`: the message of an answer.
Verdict taken(const std::string& body, const Target& target) {
  Verdict verdict;
  if (!is_otlp(target.protocol)) return verdict;
  try {
    for (protozero::pbf_reader message(body); message.next();) {
      if (message.tag() == kPartialSuccess &&
          message.wire_type() == protozero::pbf_wire_type::length_delimited) {
        read_partial_success(message.get_message(), target, verdict);
      } else {
        message.skip();
      }
    }
  } catch (const protozero::exception&) {
    return Verdict();  // its status says that it accepted everything
  }
  return verdict;
}

struct FailureText {
  Failure failure;
  std::string_view key, words, hint;
};
constexpr std::array<FailureText, 9> kFailures = {{
    {Failure::no_name, "no name", "its host name is unknown", "check the spelling: getent hosts NAME"},
    {Failure::no_connection, "no connection", "no server answers there",
     "is the server running, and does a firewall block this host?"},
    {Failure::too_slow, "too slow", "it takes too long to answer",
     "it may be busy; profiles wait in the buffer meanwhile"},
    {Failure::certificate, "certificate", "its certificate is not trusted",
     "if it comes from a private authority, name that authority's file in OTEL_EXPORTER_OTLP_CERTIFICATE"},
    {Failure::tls, "tls", "no encrypted connection could be made",
     "does this server use http instead of https?"},
    {Failure::proxy, "proxy", "the proxy does not connect to it",
     "the environment names the proxy: https_proxy, http_proxy and no_proxy"},
    {Failure::cut_off, "cut off", "it closed the connection without an answer", "its log may say why"},
    {Failure::stopped, "stopped", "there was no time left to send it", ""},
    {Failure::other, "other", "sending failed", ""},
}};

constexpr std::string_view kIsItGrpc =
    "is this the port for gRPC (4317 of a collector), and not the one for HTTP (4318: --otlp)?";

Verdict failed(const Answer& answer, const Target& target) {
  Verdict verdict;
  verdict.action = Action::again;
  const auto found = std::find_if(kFailures.begin(), kFailures.end(),
                                  [&](const FailureText& one) { return one.failure == answer.failure; });
  const FailureText& text = found == kFailures.end() ? kFailures.back() : *found;
  verdict.key = text.key;
  verdict.message = fmt::format("cannot send profiles to {}: {}{}", target.shown, text.words,
                                answer.words.empty() ? "" : fmt::format(" ({})", answer.words));
  verdict.hint = text.hint;
  const bool odd = answer.failure == Failure::cut_off || answer.failure == Failure::other;
  if (is_grpc(target.protocol) && odd) verdict.hint = kIsItGrpc;
  return verdict;
}

struct StatusText {
  int status;  // the first of those that mean this
  int last;
  Action action;
  std::string_view words, hint;
};
constexpr std::array<StatusText, 11> kStatuses = {{
    {300, 399, Action::again, "it redirects to another address",
     "give that address: phlox follows no redirects"},
    {401, 401, Action::again, "it needs credentials, or rejects these",
     "write the header into a file (Authorization: Bearer …) and name the file with --header-file"},
    {403, 403, Action::again, "these credentials do not permit it",
     "may the token in the header file write profiles?"},
    {404, 404, Action::again, "it has no such path", ""},
    {405, 405, Action::again, "that path accepts no profiles", "is this the right server?"},
    {408, 408, Action::again, "it did not get the request in time", ""},
    {413, 413, Action::divide, "the request is too large for it",
     "raise the server's limit, or use a shorter --interval"},
    {429, 429, Action::again, "it gets too many requests, and asks for a pause",
     "a lower --rate or a longer --interval sends less"},
    {400, 499, Action::drop, "it does not accept the request",
     "it may use another version of the protocol (docs/agent.md)"},
    {500, 599, Action::again, "it has an internal error", "its log may say why"},
    {0, 999, Action::again, "it answers with an unknown status", ""},
}};

std::string_view no_page_hint(Protocol protocol) {
  return is_otlp(protocol)             ? "a collector accepts profiles if it runs with "
                                         "--feature-gates=service.profilesSupport and has a "
                                         "pipeline for profiles"
         : protocol == Protocol::parca ? "is this the address of a Parca server, without a path?"
                                       : "give the address of the server itself, without a path";
}

// github.com/grpc/grpc, doc/statuscodes.md, by code; OTLP says which of them a client tries again.
struct GrpcText {
  std::string_view name;
  Action action;
  std::string_view words, hint;
};
constexpr std::string_view kUnnamed = "it has an error", kLog = "its log may say why";
constexpr std::array<GrpcText, 17> kGrpcStatuses = {{
    {"OK", Action::done, "", ""},
    {"CANCELLED", Action::again, "it cancelled the request", kLog},
    {"UNKNOWN", Action::again, kUnnamed, kLog},
    {"INVALID_ARGUMENT", Action::drop, "it does not accept the request",
     "it may use another version of the protocol (docs/agent.md)"},
    {"DEADLINE_EXCEEDED", Action::again, "it takes too long to answer",
     "it may be busy; profiles wait in the buffer meanwhile"},
    {"NOT_FOUND", Action::again, "it does not find what the request is for", kLog},
    {"ALREADY_EXISTS", Action::drop, "it has these profiles already", ""},
    {"PERMISSION_DENIED", Action::again, "these credentials do not permit it",
     "may the token in the header file write profiles?"},
    {"RESOURCE_EXHAUSTED", Action::again, "it gets too much, and asks for a pause",
     "a lower --rate or a longer --interval sends less"},
    {"FAILED_PRECONDITION", Action::drop, "it does not accept the request now", kLog},
    {"ABORTED", Action::again, "it aborted the request", kLog},
    {"OUT_OF_RANGE", Action::again, kUnnamed, kLog},
    {"UNIMPLEMENTED", Action::again, "it has no service for profiles", ""},
    {"INTERNAL", Action::again, "it has an internal error", kLog},
    {"UNAVAILABLE", Action::again, "it is not available now", kLog},
    {"DATA_LOSS", Action::again, kUnnamed, kLog},
    {"UNAUTHENTICATED", Action::again, "it needs credentials, or rejects these",
     "write the header into a file (Authorization: Bearer …) and name the file with --header-file"},
}};
constexpr int kGrpcUnknown = 2, kGrpcExhausted = 8, kGrpcOutOfRange = 11, kGrpcUnimplemented = 12;

Verdict without_grpc_status(const Target& target) {
  Verdict verdict;
  verdict.action = Action::again;
  verdict.key = "no grpc";
  verdict.message = fmt::format("cannot send profiles to {}: it answers, but not with gRPC", target.shown);
  verdict.hint = kIsItGrpc;
  return verdict;
}

// The status of a message that is too large is also that of a pause: only the words tell. Of grpc-go and
// gRPC's core, grpc-java and tonic.
bool says_too_large(const GrpcStatus& status) {
  if (status.code != kGrpcExhausted && status.code != kGrpcOutOfRange) return false;
  const std::string words = lower_case(status.words);
  constexpr std::array<std::string_view, 3> kWords = {"larger than max", "exceeds maximum", "too large"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view one) { return words.find(one) != std::string::npos; });
}

Verdict verdict_on_grpc(const GrpcStatus& status, const Answer& answer, const Target& target) {
  const bool known = status.code >= 0 && static_cast<size_t>(status.code) < kGrpcStatuses.size();
  const GrpcText& text = kGrpcStatuses[static_cast<size_t>(known ? status.code : kGrpcUnknown)];
  if (text.action == Action::done) return taken(grpc_message(answer.body).value_or(""), target);
  Verdict verdict;
  verdict.action = text.action;
  verdict.key = fmt::format("grpc {}", status.code);
  verdict.hint = text.hint;
  std::string_view words = text.words;
  if (says_too_large(status)) {
    verdict.action = Action::divide;
    words = "the request is too large for it";
    verdict.hint = "raise the server's limit, or use a shorter --interval";
  } else if (status.code == kGrpcUnimplemented) {
    verdict.hint = no_page_hint(target.protocol);
  }
  verdict.message = fmt::format("cannot send profiles to {}: {} ({}, gRPC status {}){}", target.shown, words,
                                text.name, status.code, quoted(status.words, target));
  verdict.retry_after = status.retry_after;
  return verdict;
}

}  // namespace

Verdict verdict_on(const Answer& answer, const Target& target) {
  const bool grpc = is_grpc(target.protocol);
  if (const auto status = grpc ? grpc_status(answer) : std::nullopt)
    return verdict_on_grpc(*status, answer, target);
  if (answer.status == 0) return failed(answer, target);
  if (grpc && answer.status == 200) return without_grpc_status(target);
  if (answer.status >= 200 && answer.status < 300) return taken(answer.body, target);
  const auto found = std::find_if(kStatuses.begin(), kStatuses.end(), [&](const StatusText& one) {
    return answer.status >= one.status && answer.status <= one.last;
  });
  const StatusText& text = found == kStatuses.end() ? kStatuses.back() : *found;
  Verdict verdict;
  verdict.action = text.action;
  verdict.key = std::to_string(answer.status);
  verdict.message = fmt::format("cannot send profiles to {}: {} (status {}){}", target.shown, text.words,
                                answer.status, quoted(answer.body, target));
  verdict.hint = answer.status == 404 ? no_page_hint(target.protocol) : text.hint;
  // No answer of the service: something else listens there.
  if (grpc && verdict.action == Action::drop) {
    verdict.action = Action::again;
    verdict.hint = kIsItGrpc;
  }
  verdict.retry_after = answer.retry_after;
  return verdict;
}

}  // namespace phlox::push
