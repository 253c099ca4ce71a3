#include "phlox/importers/cpuprofile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phlox/importers/foreign_rows.h"
#include "phlox/importers/json_input.h"

namespace phlox::importers {
namespace {

// A hundred years in microseconds.
constexpr Number kLongestInterval = 3.15e15L;

struct Node {
  const Json* call = nullptr;  // its frame
  uint64_t parent = 0;         // its id
  bool has_parent = false;
  profile::StackId stack;
  bool settled = false;
};

class CpuProfile {
 public:
  CpuProfile(const Json& file, profile::Sink& sink) : file_(file), rows_(sink, "V8") {}

  ImportOutcome run() {
    if (const Json* head = member(&file_, "head")) {
      read_tree(head);
    } else {
      read_nodes();
    }
    const auto thread = rows_.thread(rows_.process(0, ""), 0, "");
    const Json* samples = member(&file_, "samples");
    const std::vector<Number> times = times_of(length(samples));
    // A sample stands for the time until the next one.
    for (size_t i = 0; i < length(samples); ++i) {
      const auto id = index_of(element(samples, i));
      const auto node = id ? nodes_.find(*id) : nodes_.end();
      if (node == nodes_.end() || times[i + 1] > kLongestInterval) {
        ++refused_;
        continue;
      }
      profile::Sample sample;
      sample.thread = thread;
      sample.stack = stack_of(node->second);
      sample.start = std::llround(times[i] * 1e3L);
      sample.wall = std::llround(times[i + 1] * 1e3L) - sample.start;
      rows_.sample(sample, 1);
    }
    ImportOutcome out =
        rows_.finish(std::llround(std::min(times.back(), kLongestInterval) * 1e3L),
                     fmt::format("cpuprofile: {} samples of {} nodes", rows_.samples(), nodes_.size()));
    warn(out, refused_, "sample is of no node and was left out", "samples are of no node and were left out");
    warn(
        out, back_,
        "sample is before the one before, as the clock of some versions steps back: each begins when the one "
        "before does, and ends as stated",
        "samples are before the one before, as the clock of some versions steps back: each begins when the "
        "one before does, and ends as stated");
    warn(out, timeless_, "sample does not say when it was taken: it has no time of its own",
         "samples do not say when they were taken: they have no time of their own");
    return out;
  }

 private:
  // Times of each sample, and of the last one's end: microseconds since the start, never decreasing.
  std::vector<Number> times_of(size_t count) {
    const Json* deltas = member(&file_, "timeDeltas");
    const Json* stamps = member(&file_, "timestamps");
    // Times since 1970 or since boot, in microseconds; the first versions used seconds, unlike for their
    // timestamps.
    const Number given = number(member(&file_, "startTime")).value_or(0);
    const bool by_delta = length(deltas) > 0;
    const Number start = by_delta ? given : number(element(stamps, 0)).value_or(0);
    const Number end = by_delta ? number(member(&file_, "endTime")).value_or(given) : start;
    std::vector<Number> times;
    times.reserve(count + 1);
    Number at = by_delta ? 0 : start, latest = 0;
    const auto take = [&](Number time) {
      back_ += time < latest;
      latest = std::max(latest, time);
      times.push_back(latest);
    };
    for (size_t i = 0; i < count; ++i) {
      const auto stated = number(element(by_delta ? deltas : stamps, i));
      timeless_ += !stated;
      if (stated) at = by_delta ? at + *stated : *stated;
      take(by_delta ? at : at - start);
    }
    // The last sample lasts until the next delta, if there is one, or until the end.
    const auto next = number(element(deltas, count));
    times.push_back(std::max(latest, next ? at + *next : end - start));
    return times;
  }

  // Chrome up to 2014, and v8-profiler: each node holds its children.
  void read_tree(const Json* head) {
    std::vector<std::pair<const Json*, const Json*>> open{{head, nullptr}};  // with its parent
    while (!open.empty()) {
      const auto [row, parent] = open.back();
      open.pop_back();
      const auto id = index_of(member(row, "id"));
      const auto above = index_of(member(parent, "id"));
      if (id) nodes_[*id] = {row, above.value_or(0), above.has_value(), {}, false};
      const Json* children = member(row, "children");
      for (size_t i = 0; i < length(children); ++i) open.emplace_back(element(children, i), row);
    }
  }

  void read_nodes() {
    const Json* nodes = member(&file_, "nodes");
    for (size_t i = 0; i < length(nodes); ++i) {
      const Json* row = element(nodes, i);
      if (const auto id = index_of(member(row, "id"))) nodes_[*id].call = member(row, "callFrame");
    }
    for (size_t i = 0; i < length(nodes); ++i) {
      const Json* row = element(nodes, i);
      const auto id = index_of(member(row, "id"));
      const Json* children = member(row, "children");
      for (size_t k = 0; id && k < length(children); ++k) {
        const auto child = index_of(element(children, k));
        const auto found = child ? nodes_.find(*child) : nodes_.end();
        if (found == nodes_.end() || found->second.has_parent) continue;
        found->second.parent = *id;
        found->second.has_parent = true;
      }
      // perfetto and others: each node names its parent.
      if (const auto parent = index_of(member(row, "parent")); id && parent && !nodes_[*id].has_parent) {
        nodes_[*id].parent = *parent;
        nodes_[*id].has_parent = true;
      }
    }
  }

  // Up to the first known node, then down again; a cycle ends the chain.
  profile::StackId stack_of(Node& leaf) {
    std::vector<Node*> chain;
    profile::StackId stack;
    for (Node* at = &leaf;;) {
      if (at->settled) {
        stack = at->stack;
        break;
      }
      at->settled = true;
      chain.push_back(at);
      const auto parent = at->has_parent ? nodes_.find(at->parent) : nodes_.end();
      if (parent == nodes_.end()) break;
      at = &parent->second;
    }
    for (size_t i = chain.size(); i-- > 0;) {
      const Json* frame = chain[i]->call;
      if (text(member(frame, "functionName")) != "(root)")
        stack = rows_.interner().stack(stack, frame_of(frame));
      chain[i]->stack = stack;
    }
    return stack;
  }

  profile::FrameId frame_of(const Json* call) {
    profile::Frame frame;
    frame.kind = profile::FrameKind::native;
    const auto name = text(member(call, "functionName"));
    frame.function = frame.qualified_name = name.empty() ? "(anonymous)" : std::string(name);
    if (name.starts_with('(') && name.ends_with(')')) frame.kind = profile::FrameKind::marker;
    frame.file = text(member(call, "url"));
    // 0-based; -1: none. It is the line where the function begins.
    if (const auto at = number(member(call, "lineNumber")); at && *at >= 0 && *at < 2e9)
      frame.first_line = static_cast<int32_t>(*at) + 1;
    return rows_.interner().frame(frame);
  }

  const Json& file_;
  ForeignRows rows_;
  std::unordered_map<uint64_t, Node> nodes_;
  uint64_t refused_ = 0, back_ = 0, timeless_ = 0;
};

}  // namespace

bool recognise_cpuprofile(std::span<const std::byte> head) {
  return is_json_with(head, {"nodes", "callFrame"}) ||
         is_json_with(head, {"head", "functionName", "children"});
}

Result<ImportOutcome> import_cpuprofile(Input& input, const ImportOptions&, profile::Sink& sink) {
  const auto file = parse_json(input);
  if (!file) return fail(file);
  const bool has_nodes = member(&**file, "nodes") != nullptr || member(&**file, "head") != nullptr;
  if (!has_nodes || member(&**file, "samples") == nullptr)
    return fail(ErrorKind::input, "no cpuprofile: it has no nodes or no samples");
  return CpuProfile(**file, sink).run();
}

}  // namespace phlox::importers
