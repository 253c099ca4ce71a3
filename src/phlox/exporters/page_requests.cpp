#include "phlox/exporters/page_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "phlox/base/text.h"
#include "phlox/view/slow_requests.h"

namespace phlox::exporters {
namespace {

constexpr size_t kMostRequests = 200, kMostParts = 12;

std::string place_of(const view::SlowRequestPart& part) {
  if (part.name.empty()) return {};
  return fmt::format("{} ({}:{})", part.name, base_name(part.file), part.line);
}

void put_part(Json& json, const view::SlowRequestPart& part) {
  json.open('{');
  json.key("awaited");
  json.truth(part.awaited);
  json.text("words", part.words);
  json.text("place", place_of(part));
  json.number("time", part.time);
  json.close('}');
}

// Threads have the same order in the page.
void put_request(Json& json, const view::SlowRequest& one) {
  const profile::Request& moments = one.request;
  json.open('{');
  json.text("endpoint", view::endpoint_words(one));
  json.number("thread", int64_t{one.loop_thread.value} - 1);
  json.number("start", moments.latest_begin);
  json.number("wall", moments.least());
  json.text("began", view::begin_words(moments));
  json.text("lasted", view::length_words(moments));
  json.key("parts");
  json.open('[');
  for (size_t i = 0; i < std::min(one.parts.size(), kMostParts); ++i) put_part(json, one.parts[i]);
  json.close(']');
  json.close('}');
}

}  // namespace

void put_requests(Json& head, const profile::Profile& profile, const profile::TaskRows* tasks,
                  const view::Choices& choices) {
  std::vector<view::SlowRequest> requests;
  if (tasks != nullptr) requests = view::slow_requests(profile, *tasks, choices);
  head.key("requests");
  head.open('[');
  for (size_t i = 0; i < std::min(requests.size(), kMostRequests); ++i) put_request(head, requests[i]);
  head.close(']');
}

}  // namespace phlox::exporters
