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

// Of a server's own words: plain letters, and nothing that we sent it in confidence.
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
  verdict.message = fmt::format("{} {}{}", target.shown,
                                verdict.rejected > 0 ? "did not take every profile" : "says of what it took",
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
    return Verdict();  // its status says that it took all of it
  }
  return verdict;
}

struct FailureText {
  Failure failure;
  std::string_view key, words, hint;
};
constexpr std::array<FailureText, 9> kFailures = {{
    {Failure::no_name, "no name", "the name of the host is not known",
     "is it spelled right? getent hosts NAME"},
    {Failure::no_connection, "no connection", "nobody answers there",
     "does the server run, and does a firewall let this host through?"},
    {Failure::too_slow, "too slow", "it takes too long to answer",
     "it may be busy: what was sampled waits in the buffer meanwhile"},
    {Failure::certificate, "certificate", "its certificate does not prove that it is that server",
     "if it has an authority of its own, name that one's file in OTEL_EXPORTER_OTLP_CERTIFICATE"},
    {Failure::tls, "tls", "no encrypted connection comes about", "is it a server of https, and not of http?"},
    {Failure::proxy, "proxy", "the proxy does not connect to it",
     "https_proxy, http_proxy and no_proxy in the environment name the proxy"},
    {Failure::cut_off, "cut off", "it ended the connection without an answer", "its own log may say why"},
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
    {300, 399, Action::again, "it sends us on to another address",
     "give that address: phlox sends credentials to no other"},
    {401, 401, Action::again, "it does not take the credentials, or needs some",
     "put its header into a file: Authorization: Bearer …, and give that with --header-file"},
    {403, 403, Action::again, "these credentials do not allow it",
     "what may the token in the header file do?"},
    {404, 404, Action::again, "it has no such page", ""},
    {405, 405, Action::again, "that page takes no profiles", "is it the address of the right server?"},
    {408, 408, Action::again, "it waited too long for what was sent", ""},
    {413, 413, Action::divide, "what was sent is too large for it",
     "raise its limit of a request, or give a shorter --interval"},
    {429, 429, Action::again, "it asks for a pause: too much was sent",
     "a lower --rate or a longer --interval sends less"},
    {400, 499, Action::drop, "it does not understand what was sent",
     "it may speak another version of the protocol (docs/agent.md)"},
    {500, 599, Action::again, "it has a fault of its own", "its own log may say why"},
    {0, 999, Action::again, "it answers with a status that is not known", ""},
}};

std::string_view no_page_hint(Protocol protocol) {
  return protocol == Protocol::otlp
             ? "a collector takes profiles if it runs with --feature-gates=service.profilesSupport and has a "
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
