#include "phlox/top/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "phlox/base/text.h"
#include "phlox/profile/wait_target.h"
#include "phlox/view/gil_holders.h"
#include "phlox/view/loop_stalls.h"
#include "phlox/view/loops_and_pools.h"
#include "phlox/view/quality.h"
#include "phlox/view/system_calls.h"
#include "phlox/view/wait_class.h"

namespace phlox::top {
namespace {

using profile::Profile;

std::string where_of(const view::Label& label) {
  if (label.file.empty()) return label.module;
  auto file = std::string(base_name(label.file));
  // Many files have these names: the folder distinguishes them.
  if ((file == "__init__.py" || file == "__main__.py") && label.file.size() > file.size() + 1) {
    const std::string_view folder(label.file.data(), label.file.size() - file.size() - 1);
    file = std::string(base_name(folder)) + "/" + file;
  }
  return label.line > 0 ? fmt::format("{}:{}", file, label.line) : file;
}

struct Weights {
  int64_t self = 0, total = 0;
};

// By label of the tree; recursion counted once. Time in native code also counts for the Python function
// around it.
std::vector<Weights> weigh(const view::CallTree& tree) {
  std::vector<Weights> sums(tree.labels.size());
  std::vector<uint32_t> python(tree.nodes.size(), 0);  // by node: the node of the innermost Python frame
  for (size_t i = 1; i < tree.nodes.size(); ++i) {
    const view::CallNode& node = tree.nodes[i];
    const bool is_python = tree.labels[node.label].kind == profile::FrameKind::python;
    python[i] = is_python ? static_cast<uint32_t>(i) : python[node.parent];
    Weights& sum = sums[node.label];
    sum.self += node.self;
    if (!is_python && python[i] != 0) sums[tree.nodes[python[i]].label].self += node.self;
    bool again = false;
    for (uint32_t up = node.parent; up != 0 && !again; up = tree.nodes[up].parent)
      again = tree.nodes[up].label == node.label;
    if (!again) sum.total += node.total;
  }
  return sums;
}

// By name, file and place: the same name elsewhere is another function.
using Places = std::map<std::array<std::string, 3>, PlaceRow>;

void add_places(Places& places, const view::CallTree& tree, double PlaceRow::*self, double PlaceRow::*total) {
  if (tree.total <= 0) return;
  const std::vector<Weights> sums = weigh(tree);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].total <= 0) continue;
    const view::Label& label = tree.labels[i];
    PlaceRow& row = places[{label.name, label.file, where_of(label)}];
    row.*self += double(sums[i].self) / double(tree.total);
    row.*total += double(sums[i].total) / double(tree.total);
  }
}

// What a thread waits for; with the system call if the class is not specific.
struct Wait {
  view::WaitClass what = view::WaitClass::none;
  int16_t system_call = -1;
  uint32_t wait_target = 0;  // of WaitTargetGroups
  auto operator<=>(const Wait&) const = default;
};

// Share of a thread's time: a thread that waits less computes, and its row says so.
constexpr double kMostlyWaits = 0.5;

// Whole seconds of threads, as parts of theirs.
struct ThreadSums {
  Nanoseconds wall = 0, cpu = 0, running = 0, runnable = 0, gil_waits = 0, blocked = 0, gil_holds = 0;
  std::map<uint32_t, Nanoseconds> leaves;  // by frame
  std::map<Wait, Nanoseconds> waits;
};

void add(ThreadSums& sums, const Profile& profile, const profile::Sample& sample) {
  sums.wall += sample.wall;
  sums.cpu += sample.cpu;
  if (sample.gil_state == profile::GilState::holds) sums.gil_holds += sample.wall;
  if (sample.gil_state == profile::GilState::waits) {
    sums.gil_waits += sample.wall;
  } else if (sample.cpu_state == profile::CpuState::running) {
    sums.running += sample.wall;
  } else if (sample.cpu_state == profile::CpuState::runnable) {
    sums.runnable += sample.wall;
  } else {
    sums.blocked += sample.wall;
  }
  if (const profile::FrameId frame = view::innermost_python(profile, sample.stack))
    sums.leaves[frame.value] += sample.wall;
}

std::string busiest_of(const Profile& profile, const ThreadSums& sums) {
  std::map<std::string, Nanoseconds> functions;
  for (const auto& [frame, wall] : sums.leaves)
    functions[view::function_label(profile, profile::FrameId(frame)).name] += wall;
  const auto best = std::max_element(functions.begin(), functions.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == functions.end() ? std::string() : best->first;
}

double part(Nanoseconds of, Nanoseconds whole) {
  return whole > 0 ? double(of) / double(whole) : 0;
}

// What the samples of one profile wait for.
class Waits {
 public:
  explicit Waits(const Profile& profile) : profile_(profile), classes_(profile), wait_targets_(profile) {}

  void add(ThreadSums& sums, const profile::Sample& sample) {
    if (sample.quality == profile::Quality::rejected) return;
    const view::WaitClass what = classes_.of(sample);
    if (what == view::WaitClass::none) return;
    const bool is_named = !view::wait_class_words(what).empty();
    sums.waits[{what, is_named ? int16_t{-1} : sample.system_call, wait_targets_.of(sample.wait_target)}] +=
        sample.wall;
  }

  void put_longest(ThreadRow& row, const ThreadSums& sums) const {
    const auto longest = std::max_element(sums.waits.begin(), sums.waits.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    if (longest == sums.waits.end() || part(longest->second, sums.wall) < kMostlyWaits) return;
    const Wait& wait = longest->first;
    row.waits = part(longest->second, sums.wall);
    std::string call;
    if (view::wait_class_words(wait.what).empty())
      call = view::system_call_name(wait.system_call, view::machine_of(profile_));
    row.waits_for = view::wait_words(wait.what, call, wait_targets_[wait.wait_target].words);
  }

 private:
  const Profile& profile_;
  view::WaitClasses classes_;
  const profile::WaitTargetGroups wait_targets_;
};

std::string thread_name(const profile::Thread& thread) {
  return !thread.name.empty() ? thread.name : thread.kernel_name;
}

void add_threads(Picture& picture, const Profile& profile, Nanoseconds span) {
  std::map<uint32_t, ThreadSums> sums;
  Waits waits(profile);
  for (const profile::Sample& sample : profile.samples()) {
    if (!sample.thread || sample.thread.value > profile.threads().size()) continue;
    ThreadSums& sum = sums[sample.thread.value];
    add(sum, profile, sample);
    waits.add(sum, sample);
  }
  std::map<uint32_t, ProcessRow> processes;
  std::map<uint32_t, double> busiest;  // CPU share of a process's busiest thread
  for (const auto& [id, sum] : sums) {
    const profile::Thread& thread = profile.thread(profile::ThreadId(id));
    ThreadRow row;
    row.id = profile::ThreadId(id);
    row.name = thread_name(thread);
    row.tid = thread.tid;
    row.cpu = part(sum.cpu, span);
    row.running = part(sum.running, sum.wall);
    row.runnable = part(sum.runnable, sum.wall);
    row.gil_waits = part(sum.gil_waits, sum.wall);
    row.blocked = part(sum.blocked, sum.wall);
    row.gil_holds = part(sum.gil_holds, span);
    row.busiest = busiest_of(profile, sum);
    waits.put_longest(row, sum);
    if (thread.process && thread.process.value <= profile.processes().size()) {
      const profile::Process& process = profile.process(thread.process);
      row.pid = process.pid;
      ProcessRow& of = processes[thread.process.value];
      of.id = thread.process;
      of.pid = process.pid;
      of.command = process.command_line;
      of.how_ended = process.how_ended;
      of.cpu += row.cpu;
      of.gil_holds += row.gil_holds;
      of.gil_waits += part(sum.gil_waits, span);
      ++of.threads;
      if (of.busiest.empty() || row.cpu > busiest[of.id.value]) {
        busiest[of.id.value] = row.cpu;
        of.busiest = row.busiest;
      }
    }
    picture.threads_seen.push_back(std::move(row));
  }
  for (auto& [id, row] : processes) {
    picture.cpu += row.cpu;
    picture.gil_holds = std::max(picture.gil_holds, row.gil_holds);
    picture.gil_waits += row.gil_waits;
    picture.processes_seen.push_back(std::move(row));
  }
  picture.threads = picture.threads_seen.size();
  picture.processes = picture.processes_seen.size();
  std::stable_sort(picture.threads_seen.begin(), picture.threads_seen.end(),
                   [](const ThreadRow& a, const ThreadRow& b) {
                     return std::tuple(b.cpu, b.gil_waits, a.tid) < std::tuple(a.cpu, a.gil_waits, b.tid);
                   });
  std::stable_sort(picture.processes_seen.begin(), picture.processes_seen.end(),
                   [](const ProcessRow& a, const ProcessRow& b) { return a.cpu > b.cpu; });
}

Result<void> add_loops(Picture& picture, const Profile& profile, const view::Choices& choices) {
  const auto filter = view::SampleFilter::make_judging(profile, choices);
  if (!filter) return fail(filter);
  std::map<profile::ThreadId, std::string> stalls;
  for (const view::LoopStalls& one : view::loop_stalls(profile, *filter, view::kStall))
    stalls[one.thread] = view::longest_stall_words(profile, one);
  for (const view::LoopTime& loop : view::loop_times(profile, *filter)) {
    const profile::Thread& thread = profile.thread(loop.thread);
    LoopRow row;
    row.id = loop.thread;
    row.name = thread_name(thread);
    row.tid = thread.tid;
    row.kind = loop.kind;
    row.idle = part(loop.idle, loop.wall);
    row.running = part(loop.running, loop.wall);
    row.blocked = part(loop.blocked, loop.wall);
    row.gil_waits = part(loop.gil, loop.wall);
    row.runnable = part(loop.cpu, loop.wall);
    row.unknown = part(loop.unknown, loop.wall);
    if (loop.blocked_in) {
      const view::Label label = view::function_label(profile, loop.blocked_in);
      const std::string where = where_of(label);
      row.blocked_in = where.empty() ? label.name : fmt::format("{} ({})", label.name, where);
    }
    row.stall = stalls[loop.thread];
    picture.loops.push_back(std::move(row));
  }
  return {};
}

// The heaviest leaf whose path to the root contains the place.
void add_stack(Picture& picture, const view::CallTree& tree, const PictureOptions& options) {
  const auto is_it = [&](const view::Label& label) {
    return label.name == options.stack_name && where_of(label) == options.stack_where;
  };
  std::vector<bool> through(tree.nodes.size());
  uint32_t best = 0;
  for (uint32_t i = 1; i < tree.nodes.size(); ++i) {
    const view::CallNode& node = tree.nodes[i];
    through[i] = through[node.parent] || is_it(tree.labels[node.label]);
    if (through[i] && node.self > tree.nodes[best].self) best = i;
  }
  if (best == 0) return;
  picture.stack_share = part(tree.nodes[best].self, tree.total);
  for (uint32_t at = best; at != 0; at = tree.nodes[at].parent) {
    const view::Label& label = tree.labels[tree.nodes[at].label];
    picture.stack.push_back({label.name, where_of(label)});
  }
}

// Short, for the end of a line of 80 columns.
std::string quality_words(const Profile& profile) {
  const auto quality = view::summarize_quality(profile);
  if (!quality.recorded_by.empty()) return "recorded by " + quality.recorded_by;
  std::string words;
  if (quality.achieved_rate > 0) words = fmt::format("{:.0f} Hz", quality.achieved_rate);
  if (quality.rejected > 0)
    words += fmt::format("{}{} rejected", words.empty() ? "" : ", ",
                         count_words(static_cast<uint64_t>(quality.rejected)));
  return words;
}

}  // namespace

Result<Picture> make_picture(const Seen& seen, const PictureOptions& options) {
  const auto lately = view::build_call_tree(seen.lately, options.choices);
  if (!lately) return fail(lately);
  const auto all = view::build_call_tree(seen.all, options.choices);
  if (!all) return fail(all);
  Picture picture;
  picture.span = seen.lately_span;
  picture.since_start = seen.all_span;
  Places places;
  add_places(places, *lately, &PlaceRow::self, &PlaceRow::total);
  add_places(places, *all, &PlaceRow::self_all, &PlaceRow::total_all);
  for (auto& [key, row] : places) {
    row.name = key[0];
    row.where = key[2];
    picture.places.push_back(std::move(row));
  }
  add_threads(picture, seen.lately, seen.lately_span);
  if (auto added = add_loops(picture, seen.lately, options.choices); !added) return fail(added);
  if (!options.stack_name.empty()) add_stack(picture, *lately, options);
  picture.quality = quality_words(seen.all);
  Nanoseconds kept = 0;
  for (const profile::Sample& sample : seen.all.samples()) kept += sample.wall;
  picture.left_out = part(seen.left_out, kept + seen.left_out);
  return picture;
}

}  // namespace phlox::top
