#include "phlox/exporters/page_pair.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "phlox/base/spread.h"
#include "phlox/base/text.h"

namespace phlox::exporters {
namespace {

using FunctionKey = std::tuple<profile::FrameKind, std::string_view, std::string_view>;

class Pair {
 public:
  Pair(const PageTables& before, const PageTables& after) {
    tables_.functions.push_back(after.functions[0]);
    tables_.places.emplace_back();
    tables_.nodes.emplace_back();
    tables_.spans.reserve(before.spans.size() + after.spans.size());
  }

  // An equal row keeps the number it got first.
  void add(const PageTables& from, uint32_t first_thread) {
    const std::vector<uint32_t> places = places_of(from, functions_of(from));
    std::vector<uint32_t> nodes(from.nodes.size(), 0), states;
    for (size_t i = 1; i < from.nodes.size(); ++i)
      nodes[i] = child(nodes[from.nodes[i].parent], places[from.nodes[i].place]);
    states.reserve(from.states.size());
    for (const PageState& state : from.states) states.push_back(this->state(state));
    const auto first_wait = static_cast<uint32_t>(tables_.waits.size()) - 1;
    for (size_t i = 1; i < from.waits.size(); ++i) {
      PageWait wait = from.waits[i];
      if (wait.by >= 0) wait.by += static_cast<int32_t>(first_thread);
      wait.place = places[wait.place];
      wait.by_place = places[wait.by_place];
      tables_.waits.push_back(std::move(wait));
    }
    std::vector<uint8_t> events = {0};
    for (const auto& event : from.events) events.push_back(this->event(event));
    std::vector<uint32_t> endpoints;
    for (const std::string& label : from.endpoints) endpoints.push_back(endpoint_index(tables_, label));
    for (PageSpan span : from.spans) {
      span.endpoint = endpoints[span.endpoint];
      span.event = events[span.event];
      span.thread += first_thread;
      span.node = nodes[span.node];
      span.state = states[span.state];
      if (span.wait != 0) span.wait += first_wait;
      tables_.spans.push_back(span);
    }
  }

  PageTables finish() && {
    settle(tables_);
    return std::move(tables_);
  }

 private:
  std::vector<uint32_t> functions_of(const PageTables& from) {
    std::vector<uint32_t> numbers(from.functions.size(), 0);
    for (size_t i = 1; i < from.functions.size(); ++i) {
      const view::Label& label = from.functions[i].label;
      const auto [at, added] = functions_.try_emplace({label.kind, label.whole_name(), base_name(label.file)},
                                                      static_cast<uint32_t>(tables_.functions.size()));
      if (added) tables_.functions.push_back(from.functions[i]);
      numbers[i] = at->second;
    }
    return numbers;
  }

  std::vector<uint32_t> places_of(const PageTables& from, const std::vector<uint32_t>& functions) {
    std::vector<uint32_t> numbers(from.places.size(), 0);
    for (size_t i = 1; i < from.places.size(); ++i) {
      const PagePlace& place = from.places[i];
      const uint32_t function = functions[place.function];
      // 0: no line is known, or it is a marker.
      const int32_t shift =
          tables_.functions[function].label.line - from.functions[place.function].label.line;
      const bool shifts = place.line != 0 && place.file.empty();
      const PagePlace moved{function, shifts ? std::max(1, place.line + shift) : place.line, place.file};
      const auto [at, added] = places_.try_emplace(moved, static_cast<uint32_t>(tables_.places.size()));
      if (added) tables_.places.push_back(moved);
      numbers[i] = at->second;
    }
    return numbers;
  }

  uint32_t child(uint32_t parent, uint32_t place) {
    const auto [at, added] =
        children_.try_emplace(uint64_t{parent} << 32 | place, static_cast<uint32_t>(tables_.nodes.size()));
    if (added) tables_.nodes.push_back({parent, place});
    return at->second;
  }

  // 0: no slot is free.
  uint8_t event(const profile::SampledEvent& event) {
    auto& events = tables_.events;
    const auto known = std::find(events.begin(), events.end(), event);
    if (known != events.end()) return static_cast<uint8_t>(known - events.begin() + 1);
    if (events.size() == kMostPageEvents) return 0;
    events.push_back(event);
    return static_cast<uint8_t>(events.size());
  }

  uint32_t state(const PageState& state) {
    const auto [at, added] = states_.try_emplace(state, static_cast<uint32_t>(tables_.states.size()));
    if (added) tables_.states.push_back(state);
    return at->second;
  }

  PageTables tables_;
  std::map<FunctionKey, uint32_t> functions_;  // views into the added tables
  std::map<PagePlace, uint32_t> places_;
  tsl::robin_map<uint64_t, uint32_t, Spread> children_;
  std::map<PageState, uint32_t> states_;
};

}  // namespace

PageTables combine_pages(const PageTables& before, const PageTables& after, size_t before_threads) {
  Pair pair(before, after);
  pair.add(after, static_cast<uint32_t>(before_threads));
  pair.add(before, 0);
  return std::move(pair).finish();
}

}  // namespace phlox::exporters
