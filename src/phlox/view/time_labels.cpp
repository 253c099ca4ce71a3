#include "phlox/view/time_labels.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/view/rooted_stacks.h"

namespace phlox::view {

using namespace profile;

namespace {

constexpr size_t kMostLabels = 1'000'000;
constexpr size_t kLongestLabel = 1 << 16;
constexpr uint32_t kNoLabel = std::numeric_limits<uint32_t>::max();

// One label, or none, from here to the next piece.
struct Piece {
  Nanoseconds start = 0;
  uint32_t label = kNoLabel;
};

// A label's text may end in a tab and a process id: it then applies to that process and those that it
// started.
struct LabelParts {
  std::string_view words;
  int32_t pid = 0;  // 0: of all processes
};
LabelParts parts_of(const TimeLabel& label) {
  const std::string_view text = label.text;
  const size_t tab = text.rfind('\t');
  if (tab == std::string_view::npos) return {text};
  const auto pid = parse_number<int32_t>(text.substr(tab + 1));
  return pid && *pid > 0 ? LabelParts{text.substr(0, tab), *pid} : LabelParts{text};
}
std::string_view words_of(const TimeLabel& label) {
  return parts_of(label).words;
}
int32_t pid_of(const TimeLabel& label) {
  return parts_of(label).pid;
}

// Which label holds at which time; the last piece has none.
std::vector<Piece> timeline_of(const std::vector<TimeLabel>& labels, const std::vector<uint32_t>& chosen) {
  struct Change {
    Nanoseconds time = 0;
    bool begins = false;
    uint32_t label = 0;
  };
  std::vector<Change> changes;
  for (const uint32_t index : chosen) {
    if (labels[index].start >= labels[index].end) continue;
    changes.push_back({labels[index].start, true, index});
    changes.push_back({labels[index].end, false, index});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
  std::vector<Piece> pieces = {{std::numeric_limits<Nanoseconds>::min(), kNoLabel}};
  std::set<std::pair<Nanoseconds, uint32_t>> open;  // by start: the last one holds
  for (size_t i = 0; i < changes.size();) {
    const Nanoseconds time = changes[i].time;
    for (; i < changes.size() && changes[i].time == time; ++i) {
      const std::pair key(labels[changes[i].label].start, changes[i].label);
      if (changes[i].begins) {
        open.insert(key);
      } else {
        open.erase(key);
      }
    }
    const uint32_t holds = open.empty() ? kNoLabel : open.rbegin()->second;
    if (pieces.back().label != holds) pieces.push_back({time, holds});
  }
  return pieces;
}

int64_t share(int64_t whole, Nanoseconds part, Nanoseconds of) {
  return of > 0 ? std::llround(double(whole) * (double(part) / double(of))) : 0;
}

// Stacks that begin with a label. Labels with the same text are one.
class LabelledStacks {
 public:
  LabelledStacks(Profile& profile, const std::vector<TimeLabel>& labels)
      : labels_(labels), stacks_(profile), roots_(labels.size() + 1, 0) {}

  StackId of(uint32_t label, StackId stack) {
    uint32_t& root = roots_[label == kNoLabel ? labels_.size() : label];
    if (root == 0) root = stacks_.root(label == kNoLabel ? "(no label)" : words_of(labels_[label]));
    return stacks_.of(root, stack);
  }
  std::vector<Stack> take() { return stacks_.take(); }

 private:
  const std::vector<TimeLabel>& labels_;
  RootedStacks stacks_;
  std::vector<uint32_t> roots_;  // by label; the last one: of none
};

// Calls `visit` for each part of a span with a different label, or none.
template <class Visit>
void each_part(const Sample& sample, const std::vector<Piece>& pieces, Visit&& visit) {
  const Nanoseconds end = sample.start + sample.wall;
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), sample.start,
                                [](Nanoseconds time, const Piece& p) { return time < p.start; }) -
               1;
  Nanoseconds from = sample.start;
  do {
    const auto next = piece + 1;
    const Nanoseconds to = next == pieces.end() ? end : std::min(end, next->start);
    Sample part = sample;
    part.start = from;
    part.wall = to - from;
    if (to != end) part.waker = {};
    if (part.wall != sample.wall) {
      const Nanoseconds before = from - sample.start, after = to - sample.start;
      part.cpu = share(sample.cpu, after, sample.wall) - share(sample.cpu, before, sample.wall);
      part.samples = static_cast<uint32_t>(share(sample.samples, after, sample.wall) -
                                           share(sample.samples, before, sample.wall));
    }
    visit(part, piece->label);
    from = to;
    piece = next;
  } while (from < end && piece != pieces.end());
}

// The timeline of a process: its own labels, or those of its nearest ancestor that has any.
class TimelineOfProcess {
 public:
  TimelineOfProcess(const Profile& profile, const std::vector<TimeLabel>& labels,
                    const std::vector<uint32_t>& chosen)
      : profile_(profile) {
    // Which processes have labels does not depend on the chosen ones.
    for (const TimeLabel& label : labels) timelines_[pid_of(label)];
    for (auto& [pid, timeline] : timelines_) {
      std::vector<uint32_t> of_it;
      for (const uint32_t index : chosen) {
        const int32_t of = pid_of(labels[index]);
        if (of == 0 || of == pid) of_it.push_back(index);
      }
      timeline = timeline_of(labels, of_it);
    }
    timelines_.try_emplace(0, std::vector<Piece>{{std::numeric_limits<Nanoseconds>::min(), kNoLabel}});
  }

  const std::vector<Piece>& of(ThreadId thread) {
    if (!thread || thread.value > profile_.threads().size()) return timelines_.at(0);
    const ProcessId process = profile_.thread(thread).process;
    const auto [at, fresh] = known_.try_emplace(process, nullptr);
    if (fresh) at->second = &timelines_.at(labelled_above(process));
    return *at->second;
  }

 private:
  int32_t labelled_above(ProcessId process) const {
    // Parents in a damaged file may form a circle: stop after the number of processes.
    for (size_t i = 0;
         process && process.value <= profile_.processes().size() && i < profile_.processes().size(); ++i) {
      const Process& row = profile_.process(process);
      if (row.pid != 0 && timelines_.contains(row.pid)) return row.pid;
      process = row.parent.value_or(ProcessId());
    }
    return 0;
  }

  const Profile& profile_;
  std::map<int32_t, std::vector<Piece>> timelines_;  // by pid; 0: of no process in particular
  std::map<ProcessId, const std::vector<Piece>*> known_;
};

Result<std::vector<uint32_t>> chosen_of(const std::vector<TimeLabel>& labels, const Choices& choices) {
  std::optional<RE2> pattern;
  if (choices.label_regex) {
    pattern.emplace(*choices.label_regex, RE2::Quiet);
    if (!pattern->ok())
      return fail(ErrorKind::usage,
                  fmt::format("cannot read the expression '{}': {}", *choices.label_regex, pattern->error()),
                  "for a name that has such characters in it, put a backslash before them");
  }
  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < labels.size(); ++i) {
    if (!pattern || RE2::PartialMatch(words_of(labels[i]), *pattern)) chosen.push_back(i);
  }
  if (pattern && chosen.empty()) {
    return fail(ErrorKind::usage, fmt::format("no label matches '{}'", *choices.label_regex),
                fmt::format("there are {}, such as: {}", labels.size(), words_of(labels.front())));
  }
  return chosen;
}

}  // namespace

Result<void> show_time_labels(Profile& profile, const Choices& choices) {
  if (!choices.label_regex && !choices.by.label) return {};
  const std::vector<TimeLabel> labels = profile.time_labels();
  if (labels.empty()) {
    return fail(
        ErrorKind::usage, "this recording has no labels",
        "pytest --phlox makes one with tests as labels; phlox label gives a recording those of a file");
  }
  const auto chosen = chosen_of(labels, choices);
  if (!chosen) return fail(chosen);
  TimelineOfProcess timelines(profile, labels, *chosen);
  LabelledStacks stacks(profile, labels);
  std::vector<Sample> samples;
  for (const Sample& sample : profile.samples()) {
    each_part(sample, timelines.of(sample.thread), [&](Sample& part, uint32_t label) {
      if (choices.label_regex && label == kNoLabel) return;
      if (choices.by.label) part.stack = stacks.of(label, part.stack);
      samples.push_back(part);
    });
  }
  profile.replace_samples(std::move(samples), stacks.take());
  return {};
}

Result<std::vector<TimeLabel>> parse_time_labels(std::string_view text) {
  std::vector<TimeLabel> labels;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    TimeLabel label;
    const char* const last = line.data() + line.size();
    const auto start = std::from_chars(line.data(), last, label.start);
    const bool begun = start.ec == std::errc() && start.ptr != last && *start.ptr == '\t';
    const auto stop = begun ? std::from_chars(start.ptr + 1, last, label.end) : start;
    const bool whole = begun && stop.ec == std::errc() && stop.ptr != last && *stop.ptr == '\t';
    if (whole) label.text = std::string(stop.ptr + 1, last);
    if (!whole || label.text.empty() || label.text.size() > kLongestLabel || label.start < 0 ||
        label.end < label.start || labels.size() == kMostLabels) {
      return fail(ErrorKind::input, fmt::format("line {} is no label", number),
                  "a line is START, END and TEXT, divided by tabs: nanoseconds of CLOCK_MONOTONIC "
                  "(time.monotonic_ns() in Python)");
    }
    labels.push_back(std::move(label));
  }
  return labels;
}

}  // namespace phlox::view
