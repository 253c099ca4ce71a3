#include "phlox/importers/cpuprofile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "phlox/importers/foreign_rows.h"
#include "phlox/importers/json_input.h"

namespace phlox::importers {
namespace {

// A hundred years in microseconds.
constexpr Number kLongestInterval = 3.15e15L;

struct Node {
  const Json* row = nullptr;
  uint64_t id = 0;
  uint64_t parent = 0;  // its id
  bool has_parent = false;
  profile::StackId stack;
  bool settled = false;
};

class CpuProfile {
 public:
  CpuProfile(const Json& file, profile::Sink& sink) : file_(file), rows_(sink, "V8") {}

  ImportOutcome run() {
    read_nodes();
    const auto thread = rows_.thread(rows_.process(0, ""), 0, "");
    const Json* samples = member(&file_, "samples");
    const Json* deltas = member(&file_, "timeDeltas");
    const Number start = number(member(&file_, "startTime")).value_or(0);
    const Number end = number(member(&file_, "endTime")).value_or(start);
    // A delta is the time since the sample before; a sample stands for the time until the next.
    Number at = start;
    for (size_t i = 0; i < length(samples); ++i) {
      at += number(element(deltas, i)).value_or(0);
      const auto next = number(element(deltas, i + 1));
      const Number wall = next ? *next : i + 1 == length(samples) ? end - at : 0;
      const auto id = index_of(element(samples, i));
      const auto node = id ? nodes_.find(*id) : nodes_.end();
      if (node == nodes_.end() || !(std::abs(at) < kLongestInterval) || !(wall < kLongestInterval)) {
        ++refused_;
        continue;
      }
      profile::Sample sample;
      sample.thread = thread;
      sample.stack = stack_of(node->second);
      sample.start = std::llround(at * 1e3L);
      // The clock of some versions steps back.
      sample.wall = std::llround(std::max(wall, Number{0}) * 1e3L);
      rows_.sample(sample, 1);
    }
    ImportOutcome out =
        rows_.finish(std::llround(std::clamp(end - start, Number{0}, kLongestInterval) * 1e3L),
                     fmt::format("cpuprofile: {} samples of {} nodes", rows_.samples(), nodes_.size()));
    if (refused_ > 0)
      out.warnings.push_back(fmt::format("{} samples are of no node and were left out", refused_));
    return out;
  }

 private:
  void read_nodes() {
    const Json* nodes = member(&file_, "nodes");
    for (size_t i = 0; i < length(nodes); ++i) {
      const Json* row = element(nodes, i);
      if (const auto id = index_of(member(row, "id"))) {
        nodes_[*id].row = row;
        nodes_[*id].id = *id;
      }
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
      // Of perfetto and others each node tells its parent.
      if (const auto parent = index_of(member(row, "parent")); id && parent && !nodes_[*id].has_parent) {
        nodes_[*id].parent = *parent;
        nodes_[*id].has_parent = true;
      }
    }
  }

  // Up to what is known, then down again; a chain that leads into itself ends where it does.
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
      const Json* frame = member(chain[i]->row, "callFrame");
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
    // From 0 on; -1: none. It is where the function begins.
    if (const auto at = number(member(call, "lineNumber")); at && *at >= 0 && *at < 2e9)
      frame.first_line = static_cast<int32_t>(*at) + 1;
    return rows_.interner().frame(frame);
  }

  const Json& file_;
  ForeignRows rows_;
  std::unordered_map<uint64_t, Node> nodes_;
  uint64_t refused_ = 0;
};

}  // namespace

bool recognise_cpuprofile(std::span<const std::byte> head) {
  return is_json_with(head, {"nodes", "callFrame"});
}

Result<ImportOutcome> import_cpuprofile(Input& input, const ImportOptions&, profile::Sink& sink) {
  const auto file = parse_json(input);
  if (!file) return fail(file);
  if (member(&**file, "nodes") == nullptr || member(&**file, "samples") == nullptr)
    return fail(ErrorKind::input, "no cpuprofile: it has no nodes or no samples");
  return CpuProfile(**file, sink).run();
}

}  // namespace phlox::importers
