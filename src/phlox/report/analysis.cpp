#include "phlox/report/analysis.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "phlox/base/spread.h"
#include "phlox/base/text.h"
#include "phlox/profile/declarations.h"
#include "phlox/report/await_error.h"
#include "phlox/report/sample_crossings.h"
#include "phlox/report/sampling_error.h"
#include "phlox/report/seen_stacks.h"
#include "phlox/view/await_time.h"
#include "phlox/view/forks.h"
#include "phlox/view/stack_places.h"

namespace phlox::report {
namespace {

using profile::Frame;
using profile::FrameKind;
using profile::Profile;

struct Key {
  FrameKind kind;
  std::string_view name;
  std::string_view file;
  int32_t first_line;
  std::string_view library;  // path of a native function's module
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    const std::hash<std::string_view> text;
    size_t hash = text(key.name) * 0x9e3779b97f4a7c15U + text(key.file);
    hash =
        (hash ^ static_cast<uint32_t>(key.first_line)) * 0x9e3779b97f4a7c15U + static_cast<size_t>(key.kind);
    hash = hash * 0x9e3779b97f4a7c15U + text(key.library);
    return hash ^ (hash >> 29);
  }
};

Items identify(const Profile& profile, Identity identity) {
  Items items;
  const auto& frames = profile.frames();
  items.function.resize(frames.size() + 1, 0);
  items.line.resize(frames.size() + 1, 0);
  tsl::robin_map<Key, uint32_t, KeyHash> functions;
  tsl::robin_map<uint64_t, uint32_t, Spread> lines;
  std::map<std::pair<uint64_t, std::string_view>, uint32_t> lines_elsewhere;
  for (size_t i = 0; i < frames.size(); ++i) {
    const Frame& frame = frames[i];
    if (frame.kind == FrameKind::marker) continue;
    // A function is identified by where it is declared, whatever file its lines come from.
    const std::string& declared = profile::declared_in(profile, frame);
    const bool elsewhere = frame.file != declared;
    Key key{frame.kind,
            frame.qualified_name.empty() ? frame.function : frame.qualified_name,
            declared,
            frame.first_line,
            {}};
    int32_t line = frame.line;
    if (identity == Identity::portable) {
      key.file = base_name(declared);
      key.first_line = 0;
      if (!elsewhere) line -= frame.first_line;
    } else if (frame.module && frame.module->value != 0 && frame.module->value <= profile.modules().size()) {
      key.library = profile.modules()[frame.module->value - 1].path;
    }
    // Native functions without a name are distinguished by address.
    if (key.name.empty()) key.first_line = static_cast<int32_t>(frame.address ^ (frame.address >> 32));
    const auto [function, added] = functions.try_emplace(key, items.functions + 1);
    if (added) ++items.functions;
    items.function[i + 1] = function->second;
    const uint64_t place = uint64_t{function->second} << 32 | static_cast<uint32_t>(line);
    uint32_t& known = elsewhere ? lines_elsewhere[{place, frame.file}] : lines[place];
    if (known == 0) known = ++items.lines;
    items.line[i + 1] = known;
  }
  return items;
}

struct Children {
  std::vector<uint32_t> begin;  // by node, into `nodes`
  std::vector<uint32_t> nodes;
};

Children children_of(const Tree& tree) {
  const size_t count = tree.parent.size();
  Children children{std::vector<uint32_t>(count + 1, 0), std::vector<uint32_t>(count)};
  for (size_t i = 1; i < count; ++i) ++children.begin[tree.parent[i] + 1];
  for (size_t i = 0; i < count; ++i) children.begin[i + 1] += children.begin[i];
  std::vector<uint32_t> next(children.begin.begin(), children.begin.end() - 1);
  for (uint32_t i = 1; i < count; ++i) children.nodes[next[tree.parent[i]]++] = i;
  return children;
}

// Marks the outermost occurrence of a function (line) on the stack: one walk over the tree with a counter
// each.
void mark_outermost(Tree& tree, const Items& items) {
  const size_t count = tree.parent.size();
  const auto [begin, kids] = children_of(tree);
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);

  tree.function.assign(count, 0);
  tree.line.assign(count, 0);
  std::vector<uint32_t> functions_open(items.functions + 1, 0), lines_open(items.lines + 1, 0);
  std::vector<uint32_t> path = {0};
  while (!path.empty()) {
    const uint32_t at = path.back();
    const uint32_t frame = tree.frame[at];
    if (next[at] < begin[at + 1]) {
      const uint32_t kid = kids[next[at]++];
      const uint32_t kid_frame = tree.frame[kid];
      if (functions_open[items.function[kid_frame]]++ == 0) tree.function[kid] = items.function[kid_frame];
      if (lines_open[items.line[kid_frame]]++ == 0) tree.line[kid] = items.line[kid_frame];
      path.push_back(kid);
      continue;
    }
    path.pop_back();
    if (at == 0) continue;
    --functions_open[items.function[frame]];
    --lines_open[items.line[frame]];
  }
}

// If nearly all the weight of stacks with the same beginning passes through a function, it is common to them
// and says nothing: the start of the program, a server's loop, middleware.
constexpr double kCommon = 0.95;
constexpr double kOwn = 0.01;  // a function with this share of self weight is worth a look

// Nodes of one function below the same functions.
struct Group {
  std::vector<uint32_t> nodes;
  int64_t weight = 0;
};

std::map<uint32_t, Group> group_by_function(const Tree& tree, const Items& items, const Children& children,
                                            const std::vector<int64_t>& beneath,
                                            const std::vector<uint32_t>& parents) {
  std::map<uint32_t, Group> groups;
  for (const uint32_t parent : parents) {
    for (uint32_t i = children.begin[parent]; i < children.begin[parent + 1]; ++i) {
      const uint32_t node = children.nodes[i];
      Group& group = groups[items.function[tree.frame[node]]];
      group.nodes.push_back(node);
      group.weight += beneath[node];
    }
  }
  return groups;
}

const std::pair<const uint32_t, Group>* heaviest(const std::map<uint32_t, Group>& groups) {
  const auto found = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.second.weight < b.second.weight;
  });
  return found == groups.end() ? nullptr : &*found;
}

// By function: its rank among the functions common to all stacks with one beginning; 0 for the others. `own`:
// by node, `total`: by function.
std::vector<uint32_t> common_functions(const Tree& tree, const Items& items, const std::vector<int64_t>& own,
                                       const std::vector<int64_t>& total) {
  const Children children = children_of(tree);
  std::vector<int64_t> beneath = own;
  for (size_t node = tree.parent.size(); node-- > 1;) beneath[tree.parent[node]] += beneath[node];
  std::vector<uint32_t> rank(items.functions + 1, 0);
  std::vector<int64_t> here(items.functions + 1, 0);
  std::vector<uint32_t> order;
  const std::map<uint32_t, Group> by_function = group_by_function(tree, items, children, beneath, {0});
  std::vector<std::pair<uint32_t, Group>> beginnings(by_function.begin(), by_function.end());
  std::stable_sort(beginnings.begin(), beginnings.end(),
                   [](const auto& a, const auto& b) { return a.second.weight > b.second.weight; });
  for (auto& [function, group] : beginnings) {
    const auto whole = static_cast<double>(group.weight);
    while (function != 0 && double(group.weight) >= kCommon * whole) {
      int64_t itself = 0;
      for (const uint32_t node : group.nodes) itself += own[node];
      if (double(itself) > kOwn * whole) break;
      for (const uint32_t node : group.nodes) {
        if (tree.function[node] == function) here[function] += beneath[node];
      }
      order.push_back(function);
      const auto below = group_by_function(tree, items, children, beneath, group.nodes);
      const auto* next = heaviest(below);
      if (next == nullptr) break;
      function = next->first;
      group = next->second;
    }
  }
  uint32_t next = 0;
  for (const uint32_t function : order) {
    // A function that is elsewhere as well says something there.
    if (rank[function] == 0 && double(here[function]) >= kCommon * double(total[function]))
      rank[function] = ++next;
  }
  return rank;
}

bool is_native(const Profile& profile, uint32_t frame) {
  if (frame == 0) return false;
  const FrameKind kind = profile.frame(profile::FrameId(frame)).kind;
  return kind == FrameKind::native || kind == FrameKind::kernel;
}

// Finds the native code below each function (line). `item`: by frame, the number of its entry.
void put_native(std::vector<Entry>& entries, const std::vector<uint32_t>& item, const Tree& tree,
                const Items& items, const std::vector<int64_t>& weight) {
  struct Beneath {
    int64_t weight = 0;
    uint32_t frame = 0;
  };
  tsl::robin_map<uint64_t, Beneath, Spread> beneath;  // entry << 32 | native function
  for (size_t node = 1; node < weight.size(); ++node) {
    if (weight[node] == 0) continue;
    const uint32_t entry = item[tree.frame[tree.owner[node]]];
    if (tree.owner[node] != node && tree.foreign[node] != 0) entries[entry].foreign += weight[node];
    const uint32_t native = tree.native[node];
    if (native == 0) continue;
    Beneath& sum = beneath[uint64_t{entry} << 32 | items.function[native]];
    sum.weight += weight[node];
    sum.frame = native;
  }
  for (const auto& [key, sum] : beneath) {
    Entry& entry = entries[key >> 32];
    const bool more = sum.weight > entry.native_weight ||
                      (sum.weight == entry.native_weight && sum.frame < entry.native.value);
    if (!more) continue;
    entry.native_weight = sum.weight;
    entry.native = profile::FrameId(sum.frame);
  }
}

// The tree of sampled stacks, from their roots. `node_of`, by stack: in: not 0 if sampled; out: its node. A
// parent that does not precede its child is treated as the root.
Tree tree_of(const Profile& profile, std::vector<uint32_t>& node_of) {
  const auto& stacks = profile.stacks();
  const auto& frames = profile.frames();
  auto parent_of = [&](uint32_t stack) {
    const uint32_t parent = stacks[stack - 1].parent.value;
    return parent < stack ? parent : 0;
  };
  for (auto stack = static_cast<uint32_t>(stacks.size()); stack > 0; --stack) {
    if (node_of[stack] != 0) node_of[parent_of(stack)] = 1;
  }
  const std::vector<view::StackPlace> stack_places = view::stack_places(profile);
  Tree tree;
  const auto add_node = [&](uint32_t parent, uint32_t frame, uint32_t owner, const view::StackPlace& at) {
    tree.parent.push_back(parent);
    tree.frame.push_back(frame);
    tree.owner.push_back(owner);
    tree.native.push_back(at.native.value);
    tree.foreign.push_back(at.foreign);
  };
  add_node(0, 0, 0, {});
  node_of[0] = 0;
  for (uint32_t stack = 1; stack <= stacks.size(); ++stack) {
    if (node_of[stack] == 0) continue;
    const uint32_t frame = stacks[stack - 1].frame.value;
    const bool known = frame != 0 && frame <= frames.size();
    // Stacks below the marker begin as if they had never been forked.
    if (known && view::is_fork_marker(frames[frame - 1])) {
      node_of[stack] = node_of[parent_of(stack)];
      continue;
    }
    const auto node = static_cast<uint32_t>(tree.parent.size());
    node_of[stack] = node;
    const view::StackPlace& at = stack_places[stack];
    const bool python = at.frame && profile.frame(at.frame).kind == FrameKind::python;
    add_node(node_of[parent_of(stack)], known ? frame : 0, python ? node_of[at.stack.value] : node, at);
  }
  return tree;
}

// The samples that passed, by node.
struct ByNode {
  std::vector<int64_t> weight, cpu;
  std::vector<uint64_t> samples;
};

ByNode by_node(const Profile& profile, const view::SampleFilter& filter, const std::vector<uint32_t>& node_of,
               size_t nodes) {
  ByNode sums{std::vector<int64_t>(nodes, 0), std::vector<int64_t>(nodes, 0),
              std::vector<uint64_t>(nodes, 0)};
  for (const auto& sample : profile.samples()) {
    const auto part = filter.part(sample);
    if (!part.passes) continue;
    const bool has_stack =
        sample.quality != profile::Quality::rejected && sample.stack.value < node_of.size();
    const uint32_t node = has_stack ? node_of[sample.stack.value] : 0;
    sums.weight[node] += part.weight;
    sums.cpu[node] += part.cpu;
    sums.samples[node] += static_cast<uint64_t>(part.samples);
  }
  return sums;
}

// By item (a function, a line): `item` by frame, `outermost` by node.
struct ByItem {
  std::vector<int64_t> self, alone, total, self_cpu, alone_cpu, alone_total;
  std::vector<uint64_t> samples;
};

ByItem by_item(const Profile& profile, const Tree& tree, const ByNode& sums,
               const std::vector<uint32_t>& item, const std::vector<uint32_t>& outermost, size_t items) {
  const std::vector<int64_t> none(items + 1, 0);
  ByItem found{none, none, none, none, none, none, std::vector<uint64_t>(items + 1, 0)};
  std::vector<int64_t> beneath = sums.weight;
  std::vector<uint64_t> samples = sums.samples;
  for (size_t node = tree.parent.size(); node-- > 1;) {
    const uint32_t frame = tree.frame[node], owner = tree.frame[tree.owner[node]];
    found.self[item[owner]] += sums.weight[node];
    found.self_cpu[item[owner]] += sums.cpu[node];
    if (owner != frame) {
      found.self[item[frame]] += sums.weight[node];
      found.self_cpu[item[frame]] += sums.cpu[node];
    } else if (is_native(profile, frame)) {
      found.alone[item[frame]] += sums.weight[node];
      found.alone_cpu[item[frame]] += sums.cpu[node];
    }
    found.total[outermost[node]] += beneath[node];
    if (owner == frame) found.alone_total[outermost[node]] += beneath[node];
    found.samples[outermost[node]] += samples[node];
    beneath[tree.parent[node]] += beneath[node];
    samples[tree.parent[node]] += samples[node];
  }
  return found;
}

// The totals, and whether samples have times. Marks sampled stacks in `seen`.
void measure(const Profile& profile, const view::SampleFilter& filter, Analysis& result,
             std::vector<uint32_t>& seen) {
  Nanoseconds begin = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds last = std::numeric_limits<Nanoseconds>::min();
  for (const auto& sample : profile.samples()) {
    const auto part = filter.part(sample);
    if (!part.passes) continue;
    begin = std::min(begin, part.start);
    last = std::max(last, part.start);
    result.total += part.weight;
    result.wall += part.wall;
    result.cpu += part.cpu;
    result.cpu_squares += double(part.cpu) * double(part.cpu) / std::max(1.0, double(part.samples));
    result.samples += static_cast<uint64_t>(part.samples);
    if (sample.quality != profile::Quality::rejected && sample.stack.value < seen.size())
      seen[sample.stack.value] = 1;
  }
  // Formats without times do not show which samples are neighbours.
  result.timed = last > begin || profile.meta().contains("start_monotonic_ns");
}

// The step is set too.
Variances of_samples(const Profile& profile, const view::SampleFilter& filter,
                     const std::vector<uint32_t>& node_of, const Tree& tree, const Items& items,
                     double& step) {
  Crossings crossings = crossings_of(profile, filter, node_of);
  step = crossings.step();
  const std::vector<Crossing> in_time = crossings.in_time();
  return sampling_variances(tree, items, in_time, crossings.interval());
}

Variances of_awaits(const Profile& profile, const view::SampleFilter& filter, const profile::TaskRows& tasks,
                    const std::vector<uint32_t>& node_of, const Tree& tree, const Items& items,
                    double& step) {
  const CensusError error = census_error(profile, tasks);
  step = error.step;
  std::vector<AwaitAt> rows;
  for (const profile::Sample& sample : profile.samples()) {
    const auto number = static_cast<size_t>(sample.value);
    if (number == 0 || number > tasks.times.size() || sample.stack.value >= node_of.size()) continue;
    if (!filter.part(sample).passes) continue;
    rows.push_back({node_of[sample.stack.value], ChangeSum::bins_of(tasks, tasks.times[number - 1], error)});
  }
  return await_variances(tree, items, rows);
}

Share share_of(const Analysis& analysis, int64_t weight, double variance) {
  Share share{weight, 0, variance};
  if (analysis.total <= 0) return share;
  share.share = double(weight) / double(analysis.total);
  if (!analysis.timed) share.variance = analysis.step * double(weight) * (1 - share.share);
  return share;
}

// The entries of one kind; [0]: no item.
std::vector<Entry> entries_of(const Analysis& analysis, const ByItem& sums, const ItemVariances& variances) {
  std::vector<Entry> entries(sums.self.size());
  for (size_t i = 1; i < entries.size(); ++i) {
    Entry& entry = entries[i];
    entry.self = share_of(analysis, sums.self[i], variances.self[i]);
    entry.alone = share_of(analysis, sums.alone[i], variances.alone[i]);
    entry.total = share_of(analysis, sums.total[i], variances.total[i]);
    entry.self_cpu = sums.self_cpu[i];
    entry.alone_cpu = sums.alone_cpu[i];
    entry.alone_total = sums.alone_total[i];
    entry.samples = sums.samples[i];
  }
  return entries;
}

}  // namespace

double quantile(double chance_of_missing, uint32_t values) {
  // For the normal distribution: Abramowitz and Stegun 26.2.23 with two Newton steps on erfc.
  const double tail = chance_of_missing / 2;
  const double t = std::sqrt(-2 * std::log(tail));
  double z = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                     (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
  for (int i = 0; i < 2; ++i) {
    const double error = 0.5 * std::erfc(z / std::sqrt(2.0)) - tail;
    z += error / (std::exp(-z * z / 2) / std::sqrt(2 * 3.14159265358979323846));
  }
  if (values < 2) return z;
  // Student's from the normal one: Abramowitz and Stegun 26.7.5.
  const double v = values - 1, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}

Result<Analysis> analyse(const Profile& profile, const view::Choices& choices, Identity identity,
                         const profile::TaskRows* tasks) {
  const auto filter = view::SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);
  Analysis result;
  std::vector<uint32_t> node_of(profile.stacks().size() + 1, 0);
  measure(profile, *filter, result, node_of);
  Tree tree = tree_of(profile, node_of);
  const Items items = identify(profile, identity);
  mark_outermost(tree, items);
  const ByNode sums = by_node(profile, *filter, node_of, tree.parent.size());

  const bool of_tasks = tasks != nullptr && view::shows_await_time(profile);
  const Variances variances = of_tasks
                                  ? of_awaits(profile, *filter, *tasks, node_of, tree, items, result.step)
                                  : of_samples(profile, *filter, node_of, tree, items, result.step);
  result.timed = result.timed || of_tasks;  // rows of await time have no moments, and their changes instead
  result.variance = result.timed ? variances.whole : 0;

  const ByItem of_functions = by_item(profile, tree, sums, items.function, tree.function, items.functions);
  const ByItem of_lines = by_item(profile, tree, sums, items.line, tree.line, items.lines);
  std::vector<Entry> functions = entries_of(result, of_functions, variances.functions);
  std::vector<Entry> lines = entries_of(result, of_lines, variances.lines);
  put_native(functions, items.function, tree, items, sums.weight);
  put_native(lines, items.line, tree, items, sums.weight);
  for (size_t node = tree.parent.size(); node-- > 1;) {
    const uint32_t frame = tree.frame[node];
    functions[items.function[frame]].frame = profile::FrameId(frame);
    lines[items.line[frame]].frame = profile::FrameId(frame);
  }

  // By node of the innermost Python frame, including native code below it.
  std::vector<int64_t> own(tree.parent.size(), 0);
  for (size_t node = 1; node < own.size(); ++node) own[tree.owner[node]] += sums.weight[node];
  const std::vector<uint32_t> common = common_functions(tree, items, own, of_functions.total);
  std::vector<uint32_t> place(items.functions + 1, 0);
  for (size_t i = 1; i < functions.size(); ++i) {
    if (!functions[i].frame) continue;
    functions[i].common = common[i];
    result.functions.push_back(functions[i]);
    place[i] = static_cast<uint32_t>(result.functions.size());
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    if (!lines[i].frame || profile.frame(lines[i].frame).line == 0) continue;
    lines[i].line = profile.frame(lines[i].frame).line;
    result.lines.push_back(lines[i]);
  }
  result.function_of.assign(profile.frames().size() + 1, 0);
  for (size_t frame = 1; frame < result.function_of.size(); ++frame)
    result.function_of[frame] = place[items.function[frame]];
  return result;
}

}  // namespace phlox::report
