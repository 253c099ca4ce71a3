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
#include "phlox/profile/forks.h"
#include "phlox/profile/stack_places.h"
#include "phlox/profile/whole_waits.h"
#include "phlox/report/sampling_error.h"
#include "phlox/report/seen_stacks.h"

namespace phlox::report {
namespace {

using profile::Frame;
using profile::FrameKind;
using profile::Profile;

// Enough for a variance that can be believed (t is within 7 % of the normal's), long enough for a second to
// hold many looks.
constexpr uint32_t kBlocks = 30;
constexpr uint64_t kLooksInABlock = 10;  // fewer would be luck, not time

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
    // A function is where it is declared, whatever file its lines come from.
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
    // Native code without a name is kept apart by its address.
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

// Marks where a function (line) is on the stack for the first time: one walk over the tree with a counter
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

// A part of the weight of what begins alike. What nearly all of it goes through is what it has in common, and
// says nothing: where it begins, a server's loop, middleware.
constexpr double kCommon = 0.95;
constexpr double kOwn = 0.01;  // a function that takes this of it itself is somewhere to look at

// Nodes of one function with the same functions above them.
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

// By function its rank among those that all stacks of one beginning have in common, 0 for the others. `own`:
// by node, `total`: by function.
std::vector<uint32_t> common_functions(const Tree& tree, const Items& items, const std::vector<int64_t>& own,
                                       const std::vector<int64_t>& total) {
  const Children children = children_of(tree);
  std::vector<int64_t> beneath = own;
  for (size_t node = tree.parent.size(); node-- > 1;) beneath[tree.parent[node]] += beneath[node];
  std::vector<uint32_t> rank(items.functions + 1, 0);
  std::vector<int64_t> here(items.functions + 1, 0);
  std::vector<uint32_t> order;
  std::map<uint32_t, Group> beginnings = group_by_function(tree, items, children, beneath, {0});
  while (const auto* first = heaviest(beginnings)) {
    uint32_t function = first->first;
    Group group = first->second;
    beginnings.erase(function);
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
    // One that is somewhere else as well tells something there.
    if (rank[function] == 0 && double(here[function]) >= kCommon * double(total[function]))
      rank[function] = ++next;
  }
  return rank;
}

struct Piece {
  uint32_t block;
  uint32_t node;
  int64_t weight;
};

// Sums of one item, and what its variance needs: over blocks, of x² and x·t, in parts of the whole.
struct Sums {
  int64_t weight = 0;
  double xx = 0;
  double xt = 0;
};

class Adder {
 public:
  Adder(size_t items, double whole) : here_(items + 1, 0), sums_(items + 1), whole_(whole) {}
  void add(uint32_t item, int64_t weight) { here_[item] += weight; }
  void close_block(double t) {
    for (size_t i = 1; i < here_.size(); ++i) {
      if (here_[i] == 0) continue;
      const double x = double(here_[i]) / whole_;
      sums_[i].weight += here_[i];
      sums_[i].xx += x * x;
      sums_[i].xt += x * t;
      here_[i] = 0;
    }
  }
  const Sums& of(size_t item) const { return sums_[item]; }

 private:
  std::vector<int64_t> here_;
  std::vector<Sums> sums_;
  double whole_;
};

// Agresti and Coull: the variance of a share of `looks` throws, not zero for 0 and 1. 6.6 is the square
// of 2.58, of 99 %.
double throw_variance(double share, double looks) {
  if (looks <= 0) return 1;
  const double p = (share * looks + 3.3) / (looks + 6.6);
  return p * (1 - p) / looks;
}

bool is_native(const Profile& profile, uint32_t frame) {
  if (frame == 0) return false;
  const FrameKind kind = profile.frame(profile::FrameId(frame)).kind;
  return kind == FrameKind::native || kind == FrameKind::kernel;
}

// Which native code is beneath each function (line). `item`: by frame, the number of its entry.
void put_native(std::vector<Entry>& entries, const std::vector<uint32_t>& item, const Tree& tree,
                const Items& items, const std::vector<Piece>& pieces) {
  struct Beneath {
    int64_t weight = 0;
    uint32_t frame = 0;
  };
  tsl::robin_map<uint64_t, Beneath, Spread> beneath;  // entry << 32 | native function
  for (const Piece& piece : pieces) {
    const uint32_t entry = item[tree.frame[tree.owner[piece.node]]];
    if (tree.owner[piece.node] != piece.node && tree.foreign[piece.node] != 0)
      entries[entry].foreign += piece.weight;
    const uint32_t native = tree.native[piece.node];
    if (native == 0) continue;
    Beneath& sum = beneath[uint64_t{entry} << 32 | items.function[native]];
    sum.weight += piece.weight;
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

// Rows in the order of each thread's time.
std::vector<uint32_t> in_order(const std::vector<profile::Sample>& samples) {
  std::vector<uint32_t> order(samples.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  auto earlier = [&](uint32_t a, uint32_t b) { return samples[a].start < samples[b].start; };
  if (!std::is_sorted(order.begin(), order.end(), earlier))
    std::stable_sort(order.begin(), order.end(), earlier);
  return order;
}

// Waits that the kernel timed, for a CPU among them, begin and end where it says: only time on a CPU is seen
// by samples. `node_of`: by stack.
Crossings crossings_of(const Profile& profile, const profile::SampleFilter& filter,
                       const std::vector<uint32_t>& node_of) {
  const bool exact = profile::waits_are_exact(profile);
  const auto& samples = profile.samples();
  Crossings crossings(profile.threads().size());
  for (const uint32_t i : in_order(samples)) {
    const profile::Sample& sample = samples[i];
    if (!sample.thread || sample.thread.value > profile.threads().size()) continue;
    if (exact &&
        (sample.cpu_state == profile::CpuState::blocked || sample.cpu_state == profile::CpuState::runnable))
      continue;
    const auto part = filter.part(sample);
    if (part.passes && part.weight == 0) continue;
    if (part.passes && sample.samples == 0) {
      crossings.pass(sample.thread.value, double(part.weight));
      continue;
    }
    const bool has_stack =
        sample.quality != profile::Quality::rejected && sample.stack.value < node_of.size();
    const uint32_t node = !part.passes ? kNotChosen : has_stack ? node_of[sample.stack.value] : 0;
    crossings.add(sample.thread.value, part.passes ? part.start : sample.start, node,
                  part.passes ? double(part.weight) : 0,
                  part.passes ? static_cast<uint64_t>(std::max<int64_t>(1, part.samples)) : 1);
  }
  return crossings;
}

}  // namespace

double unseen_variance(const Analysis& analysis) {
  return throw_variance(0, analysis.looks);
}

double quantile(double chance_of_missing, uint32_t blocks) {
  // The normal's: Abramowitz and Stegun 26.2.23 with two Newton steps on erfc.
  const double tail = chance_of_missing / 2;
  const double t = std::sqrt(-2 * std::log(tail));
  double z = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                     (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
  for (int i = 0; i < 2; ++i) {
    const double error = 0.5 * std::erfc(z / std::sqrt(2.0)) - tail;
    z += error / (std::exp(-z * z / 2) / std::sqrt(2 * 3.14159265358979323846));
  }
  if (blocks < 2) return z;
  // Student's from the normal's: Abramowitz and Stegun 26.7.5.
  const double v = blocks - 1, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}

Result<Analysis> analyse(const Profile& profile, const profile::Choices& choices, Identity identity) {
  const auto filter = profile::SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);
  const auto& samples = profile.samples();
  const auto& stacks = profile.stacks();

  Analysis result;
  // First look: how much there is, and when.
  Nanoseconds begin = std::numeric_limits<Nanoseconds>::max(), end = std::numeric_limits<Nanoseconds>::min();
  Nanoseconds last_begin = end;
  std::vector<uint32_t> node_of(stacks.size() + 1, 0);
  double squares = 0;
  for (const auto& sample : samples) {
    const auto part = filter->part(sample);
    if (!part.passes) continue;
    begin = std::min(begin, part.start);
    last_begin = std::max(last_begin, part.start);
    end = std::max(end, part.start + part.wall);
    result.total += part.weight;
    result.wall += part.wall;
    result.cpu += part.cpu;
    result.samples += static_cast<uint64_t>(part.samples);
    squares += double(part.weight) * double(part.weight) / double(std::max<int64_t>(1, part.samples));
    if (sample.quality != profile::Quality::rejected && sample.stack.value <= stacks.size())
      node_of[sample.stack.value] = 1;
  }
  const double whole = double(result.total);
  result.looks = squares > 0 ? whole * whole / squares : 0;
  const uint64_t blocks = std::min<uint64_t>(kBlocks, result.samples / kLooksInABlock);
  const uint32_t count = blocks >= 5 && end > begin ? static_cast<uint32_t>(blocks) : 1;
  result.blocks = count > 1 ? count : 0;

  // The stacks that were seen and what lies beneath them. A parent that does not come before its child is
  // taken for the root.
  auto parent_of = [&](uint32_t stack) {
    const uint32_t parent = stacks[stack - 1].parent.value;
    return parent < stack ? parent : 0;
  };
  for (auto stack = static_cast<uint32_t>(stacks.size()); stack > 0; --stack) {
    if (node_of[stack] != 0) node_of[parent_of(stack)] = 1;
  }
  const std::vector<profile::StackPlace> stack_places = profile::stack_places(profile);
  Tree tree;
  const auto add_node = [&](uint32_t parent, uint32_t frame, uint32_t owner, const profile::StackPlace& at) {
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
    // What begins there begins like what was never forked.
    if (const uint32_t of = stacks[stack - 1].frame.value;
        of != 0 && of <= profile.frames().size() && profile::is_fork_marker(profile.frames()[of - 1])) {
      node_of[stack] = node_of[parent_of(stack)];
      continue;
    }
    const auto node = static_cast<uint32_t>(tree.parent.size());
    node_of[stack] = node;
    const uint32_t frame = stacks[stack - 1].frame.value;
    const profile::StackPlace& at = stack_places[stack];
    const bool python = at.frame && profile.frame(at.frame).kind == FrameKind::python;
    add_node(node_of[parent_of(stack)], frame <= profile.frames().size() ? frame : 0,
             python ? node_of[at.stack.value] : node, at);
  }
  const Items items = identify(profile, identity);
  mark_outermost(tree, items);

  // Second look: the pieces of every stretch, by block.
  std::vector<Piece> pieces;
  pieces.reserve(samples.size() + samples.size() / 8);
  std::vector<int64_t> cpu(tree.parent.size(), 0);
  std::vector<uint64_t> looks(tree.parent.size(), 0);
  const double length = count > 1 ? double(end - begin) / count : 1;
  for (const auto& sample : samples) {
    const auto part = filter->part(sample);
    if (!part.passes) continue;
    const bool has_stack =
        sample.quality != profile::Quality::rejected && sample.stack.value <= stacks.size();
    const uint32_t node = has_stack ? node_of[sample.stack.value] : 0;
    cpu[node] += part.cpu;
    looks[node] += static_cast<uint64_t>(part.samples);
    if (part.weight == 0) continue;
    auto block_of = [&](Nanoseconds time) {
      return std::min(count - 1, static_cast<uint32_t>(double(time - begin) / length));
    };
    uint32_t block = count > 1 ? block_of(part.start) : 0;
    const uint32_t last = count > 1 && part.wall > 0 ? block_of(part.start + part.wall - 1) : block;
    int64_t left = part.weight;
    for (; block < last; ++block) {
      // The part of the stretch up to the end of the block.
      const double until = double(begin - part.start) + length * (block + 1);
      const auto done =
          std::clamp<int64_t>(std::llround(double(part.weight) * until / double(part.wall)), 0, part.weight);
      const int64_t weight = done - (part.weight - left);
      if (weight > 0) {
        pieces.push_back({block, node, weight});
        left -= weight;
      }
    }
    if (left > 0) pieces.push_back({last, node, left});
  }
  std::vector<size_t> first(count + 1, 0);
  for (const Piece& piece : pieces) ++first[piece.block + 1];
  for (uint32_t i = 0; i < count; ++i) first[i + 1] += first[i];
  std::vector<std::pair<uint32_t, int64_t>> by_block(pieces.size());
  {
    std::vector<size_t> next(first.begin(), first.end() - 1);
    for (const Piece& piece : pieces) by_block[next[piece.block]++] = {piece.node, piece.weight};
  }

  // Block by block: weight of each node, added to its parent on the way from the leaves to the root.
  Adder function_self(items.functions, whole), function_total(items.functions, whole);
  Adder line_self(items.lines, whole), line_total(items.lines, whole);
  Adder function_alone(items.functions, whole), line_alone(items.lines, whole);
  std::vector<int64_t> weight(tree.parent.size(), 0);
  double tt = 0;
  for (uint32_t block = 0; block < count; ++block) {
    int64_t t = 0;
    for (size_t i = first[block]; i < first[block + 1]; ++i) {
      const auto [node, w] = by_block[i];
      weight[node] += w;
      t += w;
      const uint32_t frame = tree.frame[node], owner = tree.frame[tree.owner[node]];
      function_self.add(items.function[owner], w);
      line_self.add(items.line[owner], w);
      if (owner != frame) {
        function_self.add(items.function[frame], w);
        line_self.add(items.line[frame], w);
      } else if (is_native(profile, frame)) {
        function_alone.add(items.function[frame], w);
        line_alone.add(items.line[frame], w);
      }
    }
    for (size_t node = tree.parent.size(); node-- > 1;) {
      const int64_t w = weight[node];
      if (w == 0) continue;
      function_total.add(tree.function[node], w);
      line_total.add(tree.line[node], w);
      weight[tree.parent[node]] += w;
      weight[node] = 0;
    }
    weight[0] = 0;
    const double share = whole > 0 ? double(t) / whole : 0;
    tt += share * share;
    for (Adder* adder :
         {&function_self, &function_total, &function_alone, &line_self, &line_total, &line_alone})
      adder->close_block(share);
  }

  Crossings crossings = crossings_of(profile, *filter, node_of);
  result.step = crossings.step();
  // Of a format that does not say when something was nothing is known of neighbours.
  result.timed = last_begin > begin || profile.meta().contains("start_monotonic_ns");
  const std::vector<Crossing> in_time = crossings.in_time();
  const Variances sampling = sampling_variances(tree, items, in_time, crossings.interval());
  result.whole_sampling = result.timed ? sampling.whole : 0;
  auto share_of = [&](const Sums& sums, double of_sampling) {
    Share share;
    share.weight = sums.weight;
    share.sampling = of_sampling;
    if (whole <= 0) return share;
    const double p = share.share = double(sums.weight) / whole;
    share.variance = throw_variance(p, result.looks);
    if (!result.timed) share.sampling = result.step * double(sums.weight) * (1 - p);
    if (count > 1) {
      const double squared = std::max(0.0, sums.xx - 2 * p * sums.xt + p * p * tt);
      share.variance = std::max(share.variance, double(count) / (count - 1) * squared);
    }
    return share;
  };
  std::vector<Entry> functions(items.functions + 1), lines(items.lines + 1);
  std::vector<uint64_t> beneath = looks;
  for (size_t node = tree.parent.size(); node-- > 1;) {
    const uint32_t frame = tree.frame[node];
    functions[tree.function[node]].samples += beneath[node];
    lines[tree.line[node]].samples += beneath[node];
    const uint32_t owner = tree.frame[tree.owner[node]];
    for (const auto& [entries, item] : {std::pair(&functions, &items.function), {&lines, &items.line}}) {
      (*entries)[(*item)[owner]].self_cpu += cpu[node];
      if (owner != frame) (*entries)[(*item)[frame]].self_cpu += cpu[node];
      if (owner == frame && is_native(profile, frame)) (*entries)[(*item)[frame]].alone_cpu += cpu[node];
    }
    beneath[tree.parent[node]] += beneath[node];
    functions[items.function[frame]].frame = profile::FrameId(frame);
    lines[items.line[frame]].frame = profile::FrameId(frame);
  }
  // By node of the innermost Python frame, with what is beneath.
  std::vector<int64_t> own(tree.parent.size(), 0), totals(items.functions + 1, 0);
  for (const Piece& piece : pieces) own[tree.owner[piece.node]] += piece.weight;
  put_native(functions, items.function, tree, items, pieces);
  put_native(lines, items.line, tree, items, pieces);
  for (size_t i = 1; i < totals.size(); ++i) totals[i] = function_total.of(i).weight;
  const std::vector<uint32_t> common = common_functions(tree, items, own, totals);
  result.function_of.assign(profile.frames().size() + 1, 0);
  std::vector<uint32_t> place(items.functions + 1, 0);
  for (size_t i = 1; i < functions.size(); ++i) {
    Entry& entry = functions[i];
    if (!entry.frame) continue;
    entry.self = share_of(function_self.of(i), sampling.function_self[i]);
    entry.alone = share_of(function_alone.of(i), 0);
    entry.total = share_of(function_total.of(i), sampling.function_total[i]);
    entry.common = common[i];
    result.functions.push_back(entry);
    place[i] = static_cast<uint32_t>(result.functions.size());
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    Entry& entry = lines[i];
    if (!entry.frame || profile.frame(entry.frame).line == 0) continue;
    entry.line = profile.frame(entry.frame).line;
    entry.self = share_of(line_self.of(i), sampling.line_self[i]);
    entry.alone = share_of(line_alone.of(i), 0);
    entry.total = share_of(line_total.of(i), sampling.line_total[i]);
    result.lines.push_back(entry);
  }
  for (size_t frame = 1; frame < result.function_of.size(); ++frame)
    result.function_of[frame] = place[items.function[frame]];
  return result;
}

}  // namespace phlox::report
