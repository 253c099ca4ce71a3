#include "phlox/exporters/page_tables.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "phlox/base/spread.h"
#include "phlox/exporters/page_waits.h"
#include "phlox/exporters/words.h"
#include "phlox/view/markers.h"
#include "phlox/view/native_frames.h"
#include "phlox/view/shown_event.h"

namespace phlox::exporters {
namespace {

using profile::Profile;
using view::Label;

constexpr uint32_t kNone = ~uint32_t{0};

auto order_of(const Label& label) {
  return std::tie(label.name, label.full, label.file, label.line, label.kind, label.module);
}

struct InOrder {
  bool operator()(const Label& a, const Label& b) const { return order_of(a) < order_of(b); }
};

uint8_t owner_of(const profile::Frame& frame) {
  if (view::hides_python(frame)) return 1;
  if (frame.kind != profile::FrameKind::native) return 0;
  return frame.role == view::kCLibrary ? 2 : view::is_interpreter(frame) ? 1 : 0;
}

// Grows the tables in whatever order things are met.
class Builder {
 public:
  // `stacked`: the recording whose stacks are shown; the same but for these.
  Builder(const Profile& profile, const Profile& stacked)
      : profile_(profile),
        stacked_(stacked),
        waits_(profile, [this](profile::FrameId id) { return place(id); }),
        endpoints_(profile),
        endpoint_of_(endpoints_.size() + 1, kNone) {
    tables_.functions.push_back({{profile::FrameKind::marker, "all", {}, 0, {}, {}}, {}, 0});
    tables_.places.emplace_back();
    tables_.nodes.emplace_back();
    place_of_.assign(profile.frames().size() + 1, kNone);
    node_of_.assign(stacked.stacks().size() + 1, kNone);
  }

  // Of the event that is shown, by its number among the recording's samples. `event`: its place among those
  // that count, from 1; 0: none does.
  void add(size_t number, const view::SampleFilter::Part& part, Nanoseconds start, uint8_t event) {
    PageSpan span = span_of(profile_.samples()[number], stacked_.samples()[number].stack, part, start);
    span.wait = waits_.of(number);
    span.wall = part.wall;
    span.cpu = part.cpu;
    span.samples = static_cast<uint32_t>(part.samples);
    span.event = event;
    if (event != 0) span.value = part.value;
    tables_.spans.push_back(span);
  }

  // Of another event, by its number among those.
  void add_other(size_t number, const view::SampleFilter::Part& part, Nanoseconds start, uint8_t event) {
    PageSpan span = span_of(profile_.samples_of_others()[number], stacked_.samples_of_others()[number].stack,
                            part, start);
    span.event = event;
    span.value = tables_.events[event - 1].unit == profile::Unit::nanoseconds ? part.wall : part.value;
    tables_.spans.push_back(span);
  }

  // The place of an event among those that count, from 1; 0: there is no room.
  uint8_t event(const profile::SampledEvent& event) {
    if (tables_.events.size() == kMostPageEvents) return 0;
    tables_.events.push_back(event);
    return static_cast<uint8_t>(tables_.events.size());
  }

  PageTables finish() && {
    tables_.waits = std::move(waits_).finish();
    return std::move(tables_);
  }

 private:
  PageSpan span_of(const profile::Sample& sample, profile::StackId stack,
                   const view::SampleFilter::Part& part, Nanoseconds start) {
    PageSpan span;
    span.thread = sample.thread.value - 1;
    span.start = part.start - start;
    span.cpu_number = sample.cpu_number;
    span.doing = part.doing;
    span.state = state({sample.cpu_state, sample.gil_state, sample.collecting, sample.system_call,
                        sample.quality, view::code_library(profile_, sample)});
    if (endpoints_.size() > 0) span.endpoint = endpoint(endpoints_.of(sample));
    span.node =
        sample.quality == profile::Quality::rejected ? child(0, marker(view::rejected_label())) : node(stack);
    return span;
  }

  uint32_t state(const PageState& state) {
    const auto [at, added] = states_.try_emplace(state, static_cast<uint32_t>(tables_.states.size()));
    if (added) tables_.states.push_back(state);
    return at->second;
  }

  // Two functions may have one label.
  uint32_t endpoint(uint32_t number) {
    if (number == view::Endpoints::kNone) return 0;
    uint32_t& known = number == view::Endpoints::kNotRead ? endpoint_of_[0] : endpoint_of_[number];
    if (known != kNone) return known;
    return known = endpoint_index(tables_, displayable(view::endpoint_label(profile_, endpoints_, number)));
  }

  uint32_t function(PageFunction function) {
    const auto [at, added] =
        functions_.try_emplace(function.label, static_cast<uint32_t>(tables_.functions.size()));
    if (added) tables_.functions.push_back(std::move(function));
    return at->second;
  }

  uint32_t place(PagePlace place) {
    const auto [at, added] = places_.try_emplace(place, static_cast<uint32_t>(tables_.places.size()));
    if (added) tables_.places.push_back(std::move(place));
    return at->second;
  }

  uint32_t marker(const Label& label) { return place({function({label, {}, 0}), 0}); }

  uint32_t place(profile::FrameId id) {
    if (!id || id.value > profile_.frames().size()) return marker(view::unknown_frame_label());
    uint32_t& known = place_of_[id.value];
    if (known != kNone) return known;
    const profile::Frame& frame = profile_.frame(id);
    PageFunction row{view::function_label(profile_, id), {}, owner_of(frame)};
    std::string file = frame.file == row.label.file ? std::string() : frame.file;
    if (frame.kind == profile::FrameKind::native && frame.module &&
        frame.module->value <= profile_.modules().size())
      row.binary = profile_.modules()[frame.module->value - 1].path;
    const bool marker = frame.kind == profile::FrameKind::marker;
    const uint32_t number = function(std::move(row));
    known = marker ? place({number, 0}) : place({number, frame.line, std::move(file)});
    return known;
  }

  uint32_t child(uint32_t parent, uint32_t place) {
    const auto [at, added] =
        children_.try_emplace(uint64_t{parent} << 32 | place, static_cast<uint32_t>(tables_.nodes.size()));
    if (added) tables_.nodes.push_back({parent, place});
    return at->second;
  }

  uint32_t node(profile::StackId stack) {
    if (!stack || stack.value > stacked_.stacks().size()) return child(0, marker(view::no_frames_label()));
    path_.clear();
    uint32_t at = stack.value;
    while (at != 0 && node_of_[at] == kNone) {
      path_.push_back(at);
      // Parents come before children; what claims otherwise is taken for a root, so this ends.
      const uint32_t parent = stacked_.stacks()[at - 1].parent.value;
      at = parent < at ? parent : 0;
    }
    uint32_t node = at == 0 ? 0 : node_of_[at];
    for (; !path_.empty(); path_.pop_back())
      node_of_[path_.back()] = node = child(node, place(stacked_.stacks()[path_.back() - 1].frame));
    return node;
  }

  const Profile& profile_;
  const Profile& stacked_;
  PageTables tables_;
  PageWaits waits_;
  view::Endpoints endpoints_;
  std::vector<uint32_t> endpoint_of_;  // by number; 0: of kNotRead
  std::map<PageState, uint32_t> states_;
  std::map<Label, uint32_t, InOrder> functions_;
  std::map<PagePlace, uint32_t> places_;
  tsl::robin_map<uint64_t, uint32_t, Spread> children_;  // parent << 32 | place
  std::vector<uint32_t> place_of_;                       // by frame id
  std::vector<uint32_t> node_of_;                        // by stack id
  std::vector<uint32_t> path_;
};

// Rows that are used and row 0, in order; the others become kNone. `less` compares two rows by number.
template <class Row, class Less>
std::vector<uint32_t> renumber(std::vector<Row>& rows, const std::vector<bool>& used, Less&& less) {
  std::vector<uint32_t> order;
  for (uint32_t i = 1; i < rows.size(); ++i) {
    if (used[i]) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), less);
  std::vector<uint32_t> new_of(rows.size(), kNone);
  std::vector<Row> kept;
  kept.reserve(order.size() + 1);
  kept.push_back(std::move(rows[0]));
  new_of[0] = 0;
  for (uint32_t old : order) {
    new_of[old] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(rows[old]));
  }
  rows = std::move(kept);
  return new_of;
}

// Depth first, siblings by place.
std::vector<uint32_t> settle_nodes(std::vector<PageNode>& nodes, const std::vector<bool>& used) {
  const size_t count = nodes.size();
  std::vector<uint32_t> begin(count + 1, 0), kids(count);
  for (size_t i = 1; i < count; ++i) begin[nodes[i].parent + 1] += used[i] ? 1 : 0;
  for (size_t i = 0; i < count; ++i) begin[i + 1] += begin[i];
  std::vector<uint32_t> fill(begin.begin(), begin.end() - 1);
  for (uint32_t i = 1; i < count; ++i) {
    if (used[i]) kids[fill[nodes[i].parent]++] = i;
  }
  std::vector<uint32_t> new_of(count, kNone), open = {0};
  std::vector<PageNode> kept;
  while (!open.empty()) {
    const uint32_t old = open.back();
    open.pop_back();
    new_of[old] = static_cast<uint32_t>(kept.size());
    kept.push_back({new_of[nodes[old].parent], nodes[old].place});
    const auto first = kids.begin() + begin[old], last = kids.begin() + begin[old + 1];
    std::sort(first, last, [&](uint32_t a, uint32_t b) { return nodes[a].place > nodes[b].place; });
    open.insert(open.end(), first, last);
  }
  nodes = std::move(kept);
  return new_of;
}

}  // namespace

void settle(PageTables& tables) {
  // A parent comes before its children in whatever order nodes were met.
  std::vector<bool> nodes_used(tables.nodes.size(), false);
  for (const PageSpan& span : tables.spans) nodes_used[span.node] = true;
  for (size_t i = tables.nodes.size(); i-- > 1;) {
    if (nodes_used[i]) nodes_used[tables.nodes[i].parent] = true;
  }
  std::vector<bool> places_used(tables.places.size(), false), functions_used(tables.functions.size(), false);
  for (size_t i = 1; i < tables.nodes.size(); ++i) {
    if (nodes_used[i]) places_used[tables.nodes[i].place] = true;
  }
  for (const PageWait& wait : tables.waits) places_used[wait.place] = places_used[wait.by_place] = true;
  for (size_t i = 0; i < tables.places.size(); ++i) {
    if (places_used[i]) functions_used[tables.places[i].function] = true;
  }
  const auto function_of = renumber(tables.functions, functions_used, [&](uint32_t a, uint32_t b) {
    return order_of(tables.functions[a].label) < order_of(tables.functions[b].label);
  });
  for (PagePlace& place : tables.places) place.function = function_of[place.function];
  const auto place_of = renumber(tables.places, places_used,
                                 [&](uint32_t a, uint32_t b) { return tables.places[a] < tables.places[b]; });
  for (PageNode& node : tables.nodes) node.place = place_of[node.place];
  for (PageWait& wait : tables.waits) {
    wait.place = place_of[wait.place];
    wait.by_place = place_of[wait.by_place];
  }
  const auto node_of = settle_nodes(tables.nodes, nodes_used);
  for (PageSpan& span : tables.spans) span.node = node_of[span.node];
  std::stable_sort(tables.spans.begin(), tables.spans.end(), [](const PageSpan& a, const PageSpan& b) {
    return std::tie(a.thread, a.start) < std::tie(b.thread, b.start);
  });
}

Result<PageTables> make_page_tables(const Profile& profile, const view::Choices& choices,
                                    const Profile* with_inherited) {
  const auto filter = view::SampleFilter::make_judging(profile, choices);
  if (!filter) return fail(filter);
  const Nanoseconds start = view::recording_start(profile);
  // Frames are numbered alike.
  const bool both = with_inherited != nullptr &&
                    with_inherited->samples_of_others().size() == profile.samples_of_others().size() &&
                    with_inherited->samples().size() == profile.samples().size() &&
                    with_inherited->frames() == profile.frames();
  Builder builder(profile, both ? *with_inherited : profile);
  const auto events = profile::sampled_events(profile);
  std::vector<uint8_t> place_of(events.size() + 1, 0);
  const profile::SampledEvent shown = view::shown_event(profile);
  if (!shown.name.empty() && shown.unit != profile::Unit::nanoseconds)
    place_of[profile.shown_event()] = builder.event(shown);
  const std::vector<bool> there = view::sampled_but_not_shown(profile);
  for (size_t i = 1; i <= events.size(); ++i) {
    if (there[i - 1]) place_of[i] = builder.event(events[i - 1]);
  }
  for (size_t i = 0; i < profile.samples().size(); ++i) {
    const auto part = filter->part_of_everything(profile.samples()[i]);
    if (part.passes)
      builder.add(i, part, start, events.empty() ? uint8_t{0} : place_of[profile.shown_event()]);
  }
  for (size_t i = 0; i < profile.samples_of_others().size(); ++i) {
    const profile::Sample& sample = profile.samples_of_others()[i];
    const uint16_t number = event_number(sample);
    if (number > events.size() || place_of[number] == 0) continue;
    const auto part = filter->part_of_everything(sample);
    if (part.passes) builder.add_other(i, part, start, place_of[number]);
  }
  PageTables tables = std::move(builder).finish();
  settle(tables);
  return tables;
}

uint32_t endpoint_index(PageTables& tables, const std::string& label) {
  std::vector<std::string>& labels = tables.endpoints;
  const auto known = std::find(labels.begin(), labels.end(), label);
  const auto index = static_cast<uint32_t>(known - labels.begin());
  if (known == labels.end()) labels.push_back(label);
  return index;
}

}  // namespace phlox::exporters
