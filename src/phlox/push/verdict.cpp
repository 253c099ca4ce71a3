#include "phlox/push/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <protozero/pbf_reader.hpp>

#include "phlox/base/text.h"

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

Verdict taken(const Answer& answer, const Target& target) {
  Verdict verdict;
  if (target.protocol != Protocol::otlp) return verdict;
  try {
    for (protozero::pbf_reader message(answer.body); message.next();) {
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
  return protocol == Protocol::otlp ? "a collector accepts profiles if it runs with "
                                      "--feature-gates=service.profilesSupport and has a "
                                      "pipeline for profiles"
                                    : "give the address of the server itself, without a path";
}

}  // namespace

Verdict verdict_on(const Answer& answer, const Target& target) {
  if (answer.status == 0) return failed(answer, target);
  if (answer.status >= 200 && answer.status < 300) return taken(answer, target);
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
  verdict.retry_after = answer.retry_after;
  return verdict;
}

}  // namespace phlox::push
