#include "phlox/view/call_tree.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "phlox/base/spread.h"
#include "phlox/view/markers.h"
#include "phlox/view/program_name.h"
#include "phlox/view/sample_filter.h"

namespace phlox::view {

using namespace profile;

namespace {

struct LabelHash {
  size_t operator()(const Label& label) const {
    const std::hash<std::string_view> text;
    size_t hash = text(label.whole_name()) * 0x9e3779b97f4a7c15U + text(label.file);
    hash = (hash ^ static_cast<uint32_t>(label.line)) * 0x9e3779b97f4a7c15U;
    return hash ^ (hash >> 29);
  }
};

// Sums over samples with one stack: the shown part, and everything by activity.
struct Sum {
  int64_t weight = 0;
  int64_t samples = 0;
  std::array<NodePart, kDoings> parts;
};

// Builds the tree; nodes are in the order in which they are found, parents before children.
class TreeBuilder {
 public:
  TreeBuilder(const Profile& profile, const Choices& choices, bool with_parts)
      : profile_(profile), choices_(choices) {
    tree_.labels.push_back(marker("all"));
    tree_.nodes.emplace_back();
    if (with_parts) tree_.parts.emplace_back();
    frame_labels_.resize(profile.frames().size() + 1, kNone);
  }

  uint32_t label(const Label& label) {
    auto [at, added] = labels_.try_emplace(label, static_cast<uint32_t>(tree_.labels.size()));
    if (added) tree_.labels.push_back(label);
    return at->second;
  }

  uint32_t label(FrameId frame) {
    if (!frame || frame.value > profile_.frames().size()) return label(unknown_frame_label());
    uint32_t& known = frame_labels_[frame.value];
    if (known == kNone) known = label(frame_label(profile_, frame, choices_));
    return known;
  }

  uint32_t child(uint32_t parent, uint32_t label) {
    auto [at, added] =
        children_.try_emplace(uint64_t{parent} << 32 | label, static_cast<uint32_t>(tree_.nodes.size()));
    if (added) {
      tree_.nodes.push_back({parent, label, 0, 0, 0});
      if (!tree_.parts.empty()) tree_.parts.emplace_back();
    }
    return at->second;
  }

  // The node for a sample's thread and process: the root if `by` asks for neither.
  uint32_t group(ThreadId thread) {
    uint32_t node = 0;
    if (!thread || thread.value > profile_.threads().size()) return node;
    const Thread& row = profile_.thread(thread);
    const bool has_process = row.process && row.process.value <= profile_.processes().size();
    if (choices_.by.program && has_process)
      node = child(node, label(marker(program_name(profile_.process(row.process)))));
    if (choices_.by.process && has_process)
      node = child(node, label(marker(process_label(profile_.process(row.process)))));
    if (choices_.by.thread) node = child(node, label(marker(thread_label(row))));
    return node;
  }

  void add(uint32_t node, const Sum& sum) {
    tree_.nodes[node].self += sum.weight;
    tree_.nodes[node].samples += static_cast<uint64_t>(sum.samples);
    tree_.total += sum.weight;
    tree_.samples += static_cast<uint64_t>(sum.samples);
    if (tree_.parts.empty()) return;
    for (size_t doing = 0; doing < kDoings; ++doing) {
      tree_.parts[node][doing].self += sum.parts[doing].self;
      tree_.parts[node][doing].samples += sum.parts[doing].samples;
    }
  }

  CallTree finish() && {
    for (size_t i = 0; i < tree_.nodes.size(); ++i) tree_.nodes[i].total = tree_.nodes[i].self;
    for (size_t i = tree_.nodes.size(); i-- > 1;) {
      CallNode& parent = tree_.nodes[tree_.nodes[i].parent];
      parent.total += tree_.nodes[i].total;
      parent.samples += tree_.nodes[i].samples;
      if (tree_.parts.empty()) continue;
      for (size_t doing = 0; doing < kDoings; ++doing)
        tree_.parts[tree_.nodes[i].parent][doing].samples += tree_.parts[i][doing].samples;
    }
    order();
    return std::move(tree_);
  }

  CallTree& tree() { return tree_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  // Breadth first, children of a node ordered by name.
  void order() {
    const auto& labels = tree_.labels;
    std::vector<uint32_t> by_name(labels.size());
    std::iota(by_name.begin(), by_name.end(), 0U);
    std::sort(by_name.begin(), by_name.end(), [&](uint32_t a, uint32_t b) {
      return std::tie(labels[a].name, labels[a].full, labels[a].file, labels[a].line, a) <
             std::tie(labels[b].name, labels[b].full, labels[b].file, labels[b].line, b);
    });
    std::vector<uint32_t> rank(labels.size());
    for (uint32_t i = 0; i < by_name.size(); ++i) rank[by_name[i]] = i;

    const std::vector<CallNode>& old = tree_.nodes;
    const size_t count = old.size();
    std::vector<uint32_t> begin(count + 1, 0);  // first index of a node's children in `kids`
    for (size_t i = 1; i < count; ++i) ++begin[old[i].parent + 1];
    for (size_t i = 0; i < count; ++i) begin[i + 1] += begin[i];
    std::vector<uint32_t> kids(count), fill(begin.begin(), begin.end() - 1);
    for (uint32_t i = 1; i < count; ++i) kids[fill[old[i].parent]++] = i;

    std::vector<CallNode> nodes;
    std::vector<std::array<NodePart, kDoings>> parts;
    std::vector<uint32_t> source = {0};
    nodes.reserve(count);
    source.reserve(count);
    nodes.push_back(old[0]);
    for (uint32_t i = 0; i < source.size(); ++i) {
      const auto first = kids.begin() + begin[source[i]], last = kids.begin() + begin[source[i] + 1];
      std::sort(first, last, [&](uint32_t a, uint32_t b) { return rank[old[a].label] < rank[old[b].label]; });
      for (auto kid = first; kid != last; ++kid) {
        nodes.push_back(old[*kid]);
        nodes.back().parent = i;
        source.push_back(*kid);
      }
    }
    if (!tree_.parts.empty()) {
      for (const uint32_t i : source) parts.push_back(tree_.parts[i]);
    }
    tree_.nodes = std::move(nodes);
    tree_.parts = std::move(parts);
  }

  const Profile& profile_;
  const Choices& choices_;
  CallTree tree_;
  tsl::robin_map<Label, uint32_t, LabelHash> labels_;
  tsl::robin_map<uint64_t, uint32_t, Spread> children_;  // parent << 32 | label
  std::vector<uint32_t> frame_labels_;
};

// Spans of equal stack (and thread, if shown), so that the remaining cost does not depend on their number.
struct StackSums {
  tsl::robin_map<uint64_t, Sum, Spread> sums;  // thread << 32 | stack
  Sum rejected;

  // Ordered by stack, so that the tree does not depend on the hash.
  std::vector<std::pair<uint64_t, Sum>> rows() const {
    std::vector<std::pair<uint64_t, Sum>> rows(sums.begin(), sums.end());
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return rows;
  }
};

// `event`: 0: the samples that are shown.
StackSums sums_of(const Profile& profile, const Choices& choices, const SampleFilter& filter, bool whole,
                  uint16_t event) {
  const bool grouped = choices.by.thread || choices.by.process || choices.by.program;
  const size_t stacks = profile.stacks().size();
  StackSums out;
  for (const Sample& sample : event == 0 ? profile.samples() : profile.samples_of_others()) {
    if (event != 0 && event_number(sample) != event) continue;
    const SampleFilter::Part part = whole ? filter.part_of_everything(sample) : filter.part(sample);
    if (!part.passes) continue;
    const uint32_t stack = sample.stack.value <= stacks ? sample.stack.value : 0;
    const uint64_t key = (grouped ? uint64_t{sample.thread.value} << 32 : 0) | stack;
    Sum& sum = sample.quality == Quality::rejected ? out.rejected : out.sums[key];
    NodePart& done = sum.parts[static_cast<size_t>(part.doing)];
    done.self += part.weight;
    done.samples += static_cast<uint64_t>(part.samples);
    if (!is_shown(part.doing, choices.show)) continue;
    sum.weight += part.weight;
    sum.samples += part.samples;
  }
  return out;
}

// Adds stacks to the tree, group by group. Within a group, each row of a stack becomes one node.
class StackNodes {
 public:
  StackNodes(const std::vector<Stack>& stacks, TreeBuilder& builder)
      : stacks_(stacks), builder_(builder), node_of_(stacks.size() + 1), seen_in_(stacks.size() + 1, 0) {}

  void begin_group(ThreadId thread) {
    ++epoch_;
    root_ = builder_.group(thread);
    node_of_[0] = root_;
    seen_in_[0] = epoch_;
  }

  uint32_t node(uint32_t leaf) {
    if (leaf == 0) return builder_.child(root_, builder_.label(no_frames_label()));
    path_.clear();
    uint32_t at = leaf;
    while (seen_in_[at] != epoch_) {
      path_.push_back(at);
      // Parents come before children; a row that claims otherwise is treated as a root, so the loop ends.
      const uint32_t parent = stacks_[at - 1].parent.value;
      at = parent < at ? parent : 0;
    }
    uint32_t node = node_of_[at];
    while (!path_.empty()) {
      const uint32_t stack = path_.back();
      path_.pop_back();
      node = builder_.child(node, builder_.label(stacks_[stack - 1].frame));
      node_of_[stack] = node;
      seen_in_[stack] = epoch_;
    }
    return node;
  }

 private:
  const std::vector<Stack>& stacks_;
  TreeBuilder& builder_;
  std::vector<uint32_t> node_of_;  // tree node of a stack, in the group of `seen_in_`
  std::vector<uint32_t> seen_in_;
  std::vector<uint32_t> path_;
  uint32_t epoch_ = 0, root_ = 0;
};

Result<CallTree> build_tree(const Profile& profile, const Choices& choices, bool whole, uint16_t event = 0) {
  const auto filter =
      whole ? SampleFilter::make_judging(profile, choices) : SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);
  const StackSums sums = sums_of(profile, choices, *filter, whole, event);
  const auto rows = sums.rows();
  TreeBuilder builder(profile, choices, whole);
  StackNodes nodes(profile.stacks(), builder);
  for (size_t i = 0; i < rows.size();) {
    const auto thread = static_cast<uint32_t>(rows[i].first >> 32);
    nodes.begin_group(ThreadId(thread));
    for (; i < rows.size() && rows[i].first >> 32 == thread; ++i)
      builder.add(nodes.node(static_cast<uint32_t>(rows[i].first)), rows[i].second);
  }
  const Sum& rejected = sums.rejected;
  const bool any_rejected = std::any_of(rejected.parts.begin(), rejected.parts.end(),
                                        [](const NodePart& part) { return part.samples > 0; });
  if (any_rejected) {
    builder.add(builder.child(0, builder.label(rejected_label())), rejected);
    builder.tree().rejected = rejected.weight;
  }
  return std::move(builder).finish();
}

}  // namespace

Result<CallTree> build_call_tree(const Profile& profile, const Choices& choices) {
  return build_tree(profile, choices, false);
}

Result<CallTree> build_call_tree_of_event(const Profile& profile, const Choices& choices, uint16_t event) {
  return build_tree(profile, choices, false, event);
}

Result<CallTree> build_whole_call_tree(const Profile& profile, const Choices& choices) {
  return build_tree(profile, choices, true);
}

}  // namespace phlox::view
