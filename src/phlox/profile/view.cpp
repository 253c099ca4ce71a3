#include "phlox/profile/view.h"

#include <fmt/format.h>
#include <re2/re2.h>
#include <tsl/robin_map.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "phlox/base/spread.h"
#include "phlox/base/text.h"
#include "phlox/profile/markers.h"
#include "phlox/profile/program_name.h"
#include "phlox/profile/work.h"

namespace phlox::profile {
namespace {

constexpr std::pair<std::string_view, StateChoice> kStates[] = {
    {"running", StateChoice::running},     {"runnable", StateChoice::runnable},
    {"blocked", StateChoice::blocked},     {"gil-holds", StateChoice::gil_holds},
    {"gil-waits", StateChoice::gil_waits}, {"idle", StateChoice::idle}};

constexpr std::pair<std::string_view, Show> kShows[] = {{"work", Show::work},
                                                        {"computing", Show::computing},
                                                        {"waiting", Show::waiting},
                                                        {"everything", Show::everything}};

uint8_t states_of(const Sample& sample) {
  auto bit = [](StateChoice choice) { return static_cast<uint8_t>(choice); };
  unsigned states = 0;
  if (sample.cpu_state == CpuState::running) states |= bit(StateChoice::running);
  if (sample.cpu_state == CpuState::runnable) states |= bit(StateChoice::runnable);
  if (sample.cpu_state == CpuState::blocked) {
    states |= bit(StateChoice::blocked);
    if (sample.gil_state != GilState::waits) states |= bit(StateChoice::idle);
  }
  if (sample.gil_state == GilState::holds) states |= bit(StateChoice::gil_holds);
  if (sample.gil_state == GilState::waits) states |= bit(StateChoice::gil_waits);
  return static_cast<uint8_t>(states);
}

// Calls `word` for each part between commas; stops and returns false when it does.
template <class Word>
bool each_word(std::string_view text, Word&& word) {
  while (true) {
    const size_t comma = text.find(',');
    if (!word(text.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

Result<Nanoseconds> parse_time(std::string_view text) {
  const auto ns = parse_nanoseconds(text);
  // A hundred years, so that sums with it cannot overflow.
  if (!ns || !(*ns >= 0) || *ns > 3.15e18)
    return fail(ErrorKind::usage, fmt::format("cannot read the time '{}'", text),
                "write 1.5, 2s, 500ms, 3m or 1h");
  return static_cast<Nanoseconds>(std::llround(*ns));
}

std::string_view without_extension(std::string_view name) {
  const size_t dot = name.find('.');
  return dot == std::string_view::npos || dot == 0 ? name : name.substr(0, dot);
}

std::string_view first_part(std::string_view path) {
  return without_extension(path.substr(0, path.find('/')));
}

// What follows ".../lib/python3.12/" (also lib64, python3.13t, .../python311.zip/), or nothing.
std::string_view in_standard_library(std::string_view file) {
  for (size_t at = file.rfind("/python"); at != std::string_view::npos && at > 0;
       at = file.rfind("/python", at - 1)) {
    std::string_view rest = file.substr(at + 7);
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos || slash == 0) continue;
    std::string_view version = rest.substr(0, slash);
    const bool is_library =
        base_name(file.substr(0, at)).starts_with("lib") && version.find('.') != std::string_view::npos;
    if (rest[0] >= '2' && rest[0] <= '9' && (is_library || version.ends_with(".zip")))
      return rest.substr(slash + 1);
  }
  return {};
}

struct LabelRules {
  bool line = false;
  bool place = false;
  NativeNames native_names = NativeNames::by_format;
};

Label label_of(const Profile& profile, FrameId id, const LabelRules& rules) {
  const Frame& frame = profile.frame(id);
  Label label;
  label.kind = frame.kind;
  // Of C++ and Rust the short form: the full one, with every template argument, fills a screen.
  const bool whole = frame.kind == FrameKind::python && !frame.qualified_name.empty();
  label.name = whole || frame.function.empty() ? frame.qualified_name : frame.function;
  if (!whole && frame.qualified_name != label.name) label.full = frame.qualified_name;
  label.file = frame.file;
  if (frame.kind == FrameKind::marker) return label;
  label.line = rules.line ? frame.line : frame.first_line;
  if (rules.place && rules.line) label.first_line = frame.first_line;
  if (frame.kind == FrameKind::python) {
    label.module = module_of_file(frame.file);
  } else {
    if (frame.kind == FrameKind::kernel) {
      label.module = "kernel";
    } else if (frame.module && frame.module->value <= profile.modules().size()) {
      label.module = without_extension(base_name(profile.modules()[frame.module->value - 1].path));
    }
    if (label.name.empty())
      label.name = fmt::format("{}+0x{:x}", label.module.empty() ? "?" : label.module, frame.address);
    if (rules.place) label.module_id = frame.module.value_or(ModuleId());
    if (rules.place && rules.line) label.address = frame.address;
    if (rules.native_names == NativeNames::full && !label.full.empty()) label.name = label.full;
    if (rules.native_names != NativeNames::by_format) label.full.clear();
  }
  return label;
}

Label marker(std::string_view name) {
  return {FrameKind::marker, std::string(name)};
}

struct LabelHash {
  size_t operator()(const Label& label) const {
    const std::hash<std::string_view> text;
    size_t hash = text(label.whole_name()) * 0x9e3779b97f4a7c15U + text(label.file);
    hash = (hash ^ static_cast<uint32_t>(label.line)) * 0x9e3779b97f4a7c15U;
    return hash ^ (hash >> 29);
  }
};

// Of samples with one stack: what is shown of them, and all by what was done.
struct Sum {
  int64_t weight = 0;
  int64_t samples = 0;
  std::array<NodePart, kDoings> parts;
};

// Grows the tree; nodes come in the order in which they are met, parents before children.
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

  // The node that stands for a sample's thread and process: the root when `by` asks for neither.
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

  // Breadth first, the children of a node by name.
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
    std::vector<uint32_t> begin(count + 1, 0);  // where the children of a node begin in `kids`
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

}  // namespace

Result<By> parse_by(std::string_view text) {
  By by;
  bool function = false;
  std::string_view wrong;
  const bool read = each_word(text, [&](std::string_view word) {
    wrong = word;
    if (word == "function") return function = true;
    if (word == "line") return by.line = true;
    if (word == "thread") return by.thread = true;
    if (word == "process") return by.process = true;
    if (word == "program") return by.program = true;
    if (word == "label") return by.label = true;
    return false;
  });
  if (!read) {
    return fail(ErrorKind::usage, fmt::format("cannot split by '{}'", wrong),
                "choose from function, line, thread, process, program, label");
  }
  if (function && by.line) {
    return fail(ErrorKind::usage, "a frame is a function or a line, not both",
                "leave one of 'function' and 'line' out");
  }
  return by;
}

Result<uint8_t> parse_states(std::string_view text) {
  unsigned states = 0;
  std::string_view wrong;
  const bool read = each_word(text, [&](std::string_view word) {
    wrong = word;
    for (const auto& [name, state] : kStates) {
      if (word != name) continue;
      states |= static_cast<uint8_t>(state);
      return true;
    }
    return false;
  });
  if (read) return static_cast<uint8_t>(states);
  return fail(ErrorKind::usage, fmt::format("there is no state '{}'", wrong),
              "choose from running, runnable, blocked, gil-holds, gil-waits, idle");
}

Result<Weight> parse_weight(std::string_view text) {
  if (text == "wall") return Weight::wall;
  if (text == "cpu") return Weight::cpu;
  if (text == "samples") return Weight::samples;
  return fail(ErrorKind::usage, fmt::format("cannot weigh by '{}'", text), "choose from wall, cpu, samples");
}

Result<NativeNames> parse_native_names(std::string_view text) {
  if (text == "full") return NativeNames::full;
  if (text == "short") return NativeNames::brief;
  return fail(ErrorKind::usage, fmt::format("native names are not '{}'", text), "choose from full, short");
}

Result<Show> parse_show(std::string_view text) {
  for (const auto& [name, show] : kShows) {
    if (text == name) return show;
  }
  return fail(ErrorKind::usage, fmt::format("cannot show '{}'", text),
              "choose from work, computing, waiting, everything");
}

std::string_view show_name(Show show) {
  for (const auto& [name, value] : kShows) {
    if (show == value) return name;
  }
  return "";
}

Result<TimeRange> parse_time_range(std::string_view text) {
  const size_t dots = text.find("..");
  // "1.5..": the first two dots are the range's, unless a third follows the number's own.
  if (dots == std::string_view::npos) {
    return fail(ErrorKind::usage, fmt::format("cannot read the time range '{}'", text),
                "write FROM..TO, such as 2s..5s or ..500ms");
  }
  TimeRange range;
  const std::string_view from = text.substr(0, dots), to = text.substr(dots + 2);
  if (!from.empty()) {
    const auto parsed = parse_time(from);
    if (!parsed) return fail(parsed);
    range.from = *parsed;
  }
  if (!to.empty()) {
    const auto parsed = parse_time(to);
    if (!parsed) return fail(parsed);
    range.to = *parsed;
  }
  if (range.from >= range.to) {
    return fail(ErrorKind::usage, fmt::format("the time range '{}' is empty", text),
                "FROM must come before TO");
  }
  return range;
}

Nanoseconds recording_start(const Profile& profile) {
  for (const Event& event : profile.events()) {
    if (event.kind == EventKind::recording_start) return event.time;
  }
  Nanoseconds start = profile.samples().empty() ? 0 : profile.samples().front().start;
  for (const Sample& sample : profile.samples()) start = std::min(start, sample.start);
  return start;
}

Result<SampleFilter> SampleFilter::make(const Profile& profile, const Choices& choices) {
  return make(profile, choices, false);
}

Result<SampleFilter> SampleFilter::make_judging(const Profile& profile, const Choices& choices) {
  return make(profile, choices, true);
}

Result<SampleFilter> SampleFilter::make(const Profile& profile, const Choices& choices, bool judging) {
  SampleFilter filter;
  filter.states_ = choices.states;
  filter.weight_ = choices.weight;
  const Nanoseconds start = recording_start(profile);
  auto since_start = [&](Nanoseconds t) {
    Nanoseconds sum = 0;
    return __builtin_add_overflow(start, t, &sum) ? std::numeric_limits<Nanoseconds>::max() : sum;
  };
  filter.from_ = choices.from > 0 ? since_start(choices.from) : std::numeric_limits<Nanoseconds>::min();
  filter.to_ = since_start(choices.to);
  filter.threads_.assign(profile.threads().size(), true);
  // RE2, because the names are the target's: std::regex recurses once a character, until the stack is full.
  std::optional<RE2> pattern;
  if (choices.thread_regex) {
    pattern.emplace(*choices.thread_regex, RE2::Quiet);
    if (!pattern->ok())
      return fail(ErrorKind::usage,
                  fmt::format("cannot read the expression '{}': {}", *choices.thread_regex, pattern->error()),
                  "for a name that has such characters in it, put a backslash before them");
  }
  for (size_t i = 0; i < profile.threads().size(); ++i) {
    const Thread& thread = profile.threads()[i];
    bool passes = true;
    if (choices.pid) {
      passes = thread.process && thread.process.value <= profile.processes().size() &&
               profile.process(thread.process).pid == *choices.pid;
    }
    if (passes && pattern) {
      passes = RE2::PartialMatch(thread.name, *pattern) || RE2::PartialMatch(thread.kernel_name, *pattern) ||
               RE2::PartialMatch(std::to_string(thread.tid), *pattern);
    }
    filter.threads_[i] = passes;
  }
  if (judging || choices.show != Show::everything) {
    filter.rule_ = std::make_shared<WorkRule>(profile, choices, filter);
    filter.show_ = choices.show;
  }
  return filter;
}

SampleFilter::Part SampleFilter::part(const Sample& sample) const {
  Part part = part_of_everything(sample);
  if (part.passes && !is_shown(part.doing, show_)) part.passes = false;
  return part;
}

SampleFilter::Part SampleFilter::part_of_everything(const Sample& sample) const {
  Part part;
  if (!sample.thread || sample.thread.value > threads_.size() || !threads_[sample.thread.value - 1])
    return part;
  if (states_ != 0 && (states_ & states_of(sample)) == 0) return part;
  const Nanoseconds end = sample.start + sample.wall;
  const Nanoseconds from = std::max(sample.start, from_), to = std::min(end, to_);
  if (sample.wall == 0 ? sample.start < from_ || sample.start >= to_ : from >= to) return part;
  part.passes = true;
  if (rule_) part.doing = rule_->of(sample);
  part.start = from;
  part.wall = sample.wall == 0 ? 0 : to - from;
  part.cpu = sample.cpu;
  part.samples = sample.samples;
  if (part.wall < sample.wall) {
    const double share = double(part.wall) / double(sample.wall);
    part.cpu = std::llround(double(sample.cpu) * share);
    part.samples =
        std::min<int64_t>(part.samples, std::max<int64_t>(1, std::llround(double(sample.samples) * share)));
  }
  part.weight = weight_ == Weight::wall ? part.wall : weight_ == Weight::cpu ? part.cpu : part.samples;
  return part;
}

Label rejected_label() {
  return marker("(rejected: could not be read)");
}
Label no_frames_label() {
  return marker("(no Python frames)");
}
Label unknown_frame_label() {
  return marker("(unknown frame)");
}

Label frame_label(const Profile& profile, FrameId frame, const Choices& choices) {
  return label_of(profile, frame, {choices.by.line, choices.by.place, choices.native_names});
}
Label function_label(const Profile& profile, FrameId frame) {
  return label_of(profile, frame, {});
}
Label line_label(const Profile& profile, FrameId frame) {
  return label_of(profile, frame, {.line = true});
}

std::string thread_label(const Thread& thread) {
  std::string name = thread.name.empty() ? thread.kernel_name : thread.name;
  if (thread.interpreter > 0)
    name += fmt::format("{}interpreter {}", name.empty() ? "" : ", ", thread.interpreter);
  if (thread.tid == 0)
    return name.empty() ? fmt::format("Thread 0x{:x}", thread.python_id) : "Thread " + name;
  return name.empty() ? fmt::format("Thread {}", thread.tid)
                      : fmt::format("Thread {} ({})", name, thread.tid);
}

std::string process_label(const Process& process) {
  const std::string& name = process.command_line.empty() ? process.executable : process.command_line;
  return name.empty() ? fmt::format("pid {}", process.pid) : fmt::format("{} (pid {})", name, process.pid);
}

std::string module_of_file(std::string_view file) {
  if (file.starts_with("<frozen ") && file.ends_with(">")) {
    const std::string_view name = file.substr(8, file.size() - 9);
    return std::string(name.substr(0, name.find('.')));
  }
  if (file.starts_with("<")) return std::string(file);
  for (std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = file.rfind(packages);
    if (at != std::string_view::npos) return std::string(first_part(file.substr(at + packages.size())));
  }
  if (const std::string_view rest = in_standard_library(file); !rest.empty()) {
    return std::string(first_part(rest.starts_with("lib-dynload/") ? rest.substr(12) : rest));
  }
  const std::string_view name = base_name(file);
  const std::string_view stem = without_extension(name);
  if ((stem == "__init__" || stem == "__main__") && name.size() < file.size()) {
    const std::string_view folder = base_name(file.substr(0, file.size() - name.size() - 1));
    if (!folder.empty()) return std::string(folder);
  }
  return std::string(stem);
}

namespace {

Result<CallTree> build_tree(const Profile& profile, const Choices& choices, bool whole) {
  const auto filter =
      whole ? SampleFilter::make_judging(profile, choices) : SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);

  // Stretches of equal stack (and thread, when that shows) are one, which makes the rest independent of their
  // number.
  const bool grouped = choices.by.thread || choices.by.process || choices.by.program;
  const auto& stacks = profile.stacks();
  tsl::robin_map<uint64_t, Sum, Spread> sums;  // thread << 32 | stack
  Sum rejected;
  for (const Sample& sample : profile.samples()) {
    const SampleFilter::Part part = whole ? filter->part_of_everything(sample) : filter->part(sample);
    if (!part.passes) continue;
    const uint32_t stack = sample.stack.value <= stacks.size() ? sample.stack.value : 0;
    const uint64_t key = (grouped ? uint64_t{sample.thread.value} << 32 : 0) | stack;
    Sum& sum = sample.quality == Quality::rejected ? rejected : sums[key];
    NodePart& done = sum.parts[static_cast<size_t>(part.doing)];
    done.self += part.weight;
    done.samples += static_cast<uint64_t>(part.samples);
    if (!is_shown(part.doing, choices.show)) continue;
    sum.weight += part.weight;
    sum.samples += part.samples;
  }

  // In the order of the stacks, so that what the tree looks like does not hang on the hash.
  std::vector<std::pair<uint64_t, Sum>> rows(sums.begin(), sums.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  TreeBuilder builder(profile, choices, whole);
  std::vector<uint32_t> node_of(stacks.size() + 1);  // tree node of a stack, in the group of `seen_in`
  std::vector<uint32_t> seen_in(stacks.size() + 1, 0);
  std::vector<uint32_t> path;
  uint32_t epoch = 0;
  for (size_t i = 0; i < rows.size();) {
    const auto thread = static_cast<uint32_t>(rows[i].first >> 32);
    const uint32_t root = builder.group(ThreadId(thread));
    ++epoch;
    node_of[0] = root;
    seen_in[0] = epoch;
    for (; i < rows.size() && rows[i].first >> 32 == thread; ++i) {
      const auto leaf = static_cast<uint32_t>(rows[i].first);
      if (leaf == 0) {
        builder.add(builder.child(root, builder.label(no_frames_label())), rows[i].second);
        continue;
      }
      path.clear();
      uint32_t at = leaf;
      while (seen_in[at] != epoch) {
        path.push_back(at);
        // Parents come before children; what claims otherwise is taken for a root, so this ends.
        const uint32_t parent = stacks[at - 1].parent.value;
        at = parent < at ? parent : 0;
      }
      uint32_t node = node_of[at];
      while (!path.empty()) {
        const uint32_t stack = path.back();
        path.pop_back();
        node = builder.child(node, builder.label(stacks[stack - 1].frame));
        node_of[stack] = node;
        seen_in[stack] = epoch;
      }
      builder.add(node, rows[i].second);
    }
  }
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

Result<CallTree> build_whole_call_tree(const Profile& profile, const Choices& choices) {
  return build_tree(profile, choices, true);
}

}  // namespace phlox::profile
