#include "phlox/incidents/row_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/view/gil_holders.h"
#include "phlox/view/known_waits.h"
#include "phlox/view/loop_stalls.h"
#include "phlox/view/loop_turns.h"
#include "phlox/view/quality.h"
#include "phlox/view/sample_filter.h"
#include "phlox/view/signals.h"
#include "phlox/view/system_calls.h"

namespace phlox::incidents {

using namespace profile;
using namespace view;

namespace {

// Longer than the longest stall that can be asked for; a row takes at most a second (Spans::kLongest).
constexpr Nanoseconds kWindowOfStalls = 20 * kSecond, kWindowOfUse = 3 * kSecond;
// A thread that polls but runs no event loop is looked at less and less often, but within the window.
constexpr Nanoseconds kLongestPause = 8 * kSecond;
// A thread that waits for the GIL wakes up now and then, for less than this.
constexpr Nanoseconds kWakesUp = 2'000'000;
constexpr size_t kMostGilWaits = 100, kMostSignals = 1000;
constexpr Nanoseconds kSignalsAge = 60 * kSecond;
constexpr size_t kLongestCommand = 60;
constexpr Nanoseconds kMillisecond = 1'000'000;

constexpr SystemCall kSelectCalls[] = {system_call("select"), system_call("pselect6")};

bool is_signal_event(const Event& event) {
  return event.kind == EventKind::signal_sent || event.kind == EventKind::signal_received ||
         event.kind == EventKind::signal_delivered;
}

bool asks_to_end(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

std::string thread_words(const Thread& thread) {
  const std::string& name = thread.name.empty() ? thread.kernel_name : thread.name;
  return name.empty() ? fmt::format("thread {}", thread.tid)
                      : fmt::format("thread {} ({})", name, thread.tid);
}

// A program that handles one of these ends nevertheless, a moment later: gunicorn's arbiter sends SIGABRT to
// a worker that takes too long, and the worker calls sys.exit().
constexpr Nanoseconds kEndsAfterAbort = 10 * kSecond;

bool is_of_a_crash(int signal) {
  return signal == SIGABRT || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGSEGV ||
         signal == SIGSYS;
}

std::string sender_words(const Signal& signal) {
  if (signal.no_memory) return "memory had run out";
  if (signal.sent_by == Signal::Sender::own_fault) return "its own fault";
  if (signal.sent_by == Signal::Sender::kernel) return "the kernel sent it";
  return signal.sender.empty() ? "sender not known" : signal.sender + " sent it";
}

// The number in "signal 9 (SIGKILL)"; 0: none.
int signal_in(std::string_view how_ended) {
  constexpr std::string_view kWord = "signal ";
  int number = 0;
  if (!how_ended.starts_with(kWord)) return 0;
  how_ended.remove_prefix(kWord.size());
  return take_number(how_ended, number) ? number : 0;
}

}  // namespace

RowWatch::RowWatch(const std::vector<Condition>& conditions, Sink& to, Report report,
                   std::function<void(const Process&)> on_process)
    : to_(to),
      report_(std::move(report)),
      on_process_(std::move(on_process)),
      conditions_(conditions),
      stall_(shortest(conditions, Kind::stall)),
      gil_(shortest(conditions, Kind::gil)),
      recent_(stall_ > 0 || gil_ > 0 ? kWindowOfStalls : kWindowOfUse) {}

void RowWatch::receive(const AnyRow& row) {
  to_.receive(row);
  if (const auto* sample = std::get_if<Numbered<SampleId>>(&row)) return take(sample->id, sample->value);
  if (const auto* event = std::get_if<Unnumbered<Event>>(&row)) return take(event->value);
  if (const auto* target = std::get_if<Numbered<WaitTargetId>>(&row);
      target != nullptr && target->value.kind == WaitTargetKind::time)
    timeouts_.insert(target->id.value);
  recent_.receive(row);
  if (const auto* frame = std::get_if<Numbered<FrameId>>(&row)) {
    const KnownFunction* known = known_function(frame->value);
    if (known != nullptr && (known->role == Role::loop || known->role == Role::native_loop))
      has_met_loop_ = true;
  }
  const auto* process = std::get_if<Numbered<ProcessId>>(&row);
  if (process == nullptr || !on_process_) return;
  std::string& mode = modes_[process->id];
  const bool is_news =
      process->id.value > processes_ || mode != process->value.mode || process->value.end != 0;
  processes_ = std::max(processes_, process->id.value);
  mode = process->value.mode;
  if (process->value.end != 0) modes_.erase(process->id);
  if (is_news) on_process_(process->value);
}

Result<void> RowWatch::commit() {
  auto done = to_.commit();
  if (stall_ > 0) judge_stalls();
  if (gil_ > 0) judge_gil_waits();
  if (!use_.empty()) judge_use();
  return done;
}

void RowWatch::take(SampleId id, const Sample& sample) {
  const Sample growth = recent_.put(id, sample);
  if (!sample.thread) return;
  if (stall_ > 0) note_poll(threads_[sample.thread.value], sample);
  if (gil_ > 0 && sample.gil_state == GilState::waits) note_gil(sample);
  if (has(conditions_, Kind::cpu) || has(conditions_, Kind::cpu_wait)) note_use(growth);
}

// Before 3.11, time.sleep() is a select() without descriptors.
bool RowWatch::is_poll(const Sample& sample) const {
  if (sample.cpu_state != CpuState::blocked || sample.gil_state == GilState::waits) return false;
  if (timeouts_.contains(sample.wait_target.value)) return false;
  const bool is_select = is_call(kSelectCalls, sample.system_call, recent_.is_aarch64());
  return (sample.wait_target || !is_select) && is_poll_call(sample.system_call, recent_.is_aarch64());
}

void RowWatch::note_poll(ThreadState& state, const Sample& sample) {
  state.last_end = std::max(state.last_end, sample.start + sample.wall);
  if (!is_poll(sample)) return;
  if (state.poll_end != 0 && sample.start - state.poll_end >= stall_) state.has_gap = true;
  state.poll_end = std::max(state.poll_end, sample.start + sample.wall);
}

void RowWatch::judge_stalls() {
  for (auto at = threads_.begin(); at != threads_.end();) {
    ThreadState& state = at->second;
    const bool goes_on = state.last_end - state.poll_end >= stall_;
    if (state.poll_end != 0 && (state.has_gap || goes_on) && recent_.newest() >= state.next_judgement)
      judge_stall(ThreadId(at->first), state);
    at = state.last_end < recent_.newest() - kWindowOfStalls ? threads_.erase(at) : std::next(at);
  }
}

void RowWatch::judge_stall(ThreadId thread, ThreadState& state) {
  const Thread* row = recent_.thread(thread);
  if (row == nullptr) return;
  state.has_gap = false;
  const Profile part =
      recent_.part(0, row->process, [&](const Sample& sample) { return sample.thread == thread; });
  const auto filter = SampleFilter::make_judging(part, {});
  std::vector<LoopStalls> all;
  if (filter) all = loop_stalls(part, *filter, stall_);
  state.pause = all.empty() ? std::min(2 * state.pause, kLongestPause) : kSecond;
  state.next_judgement = recent_.newest() + state.pause;
  if (all.empty()) return;
  LoopStalls& found = all.front();
  const Nanoseconds start = recording_start(part);
  // What continues one that was reported is not another one.
  std::vector<Stall> fresh = found.rows;
  std::stable_sort(fresh.begin(), fresh.end(),
                   [](const Stall& a, const Stall& b) { return a.start < b.start; });
  std::erase_if(fresh, [&](const Stall& stall) {
    const bool is_old = start + stall.start <= state.reported_until;
    if (is_old) state.reported_until = std::max(state.reported_until, start + stall.start + stall.wall);
    return is_old;
  });
  if (fresh.empty()) return;
  const Stall longest = *std::max_element(fresh.begin(), fresh.end(),
                                          [](const Stall& a, const Stall& b) { return a.wall < b.wall; });
  for (const Stall& stall : fresh)
    state.reported_until = std::max(state.reported_until, start + stall.start + stall.wall);
  found.rows = {longest};
  found.proved = longest.least >= stall_ ? 1 : 0;
  report_({Kind::stall, start + longest.start,
           fmt::format("an event loop in {}, process {}: {}", thread_words(*row), process_words(row->process),
                       longest_stall_words(part, found)),
           (found.proved > 0 ? "stall of " : "no wait for events for ") + stall_length(longest)});
}

void RowWatch::note_gil(const Sample& sample) {
  GilWait& wait = gil_waits_[sample.thread.value];
  const Nanoseconds end = sample.start + sample.wall;
  if (wait.end != 0 && sample.start <= wait.end + kWakesUp) {
    wait.end = std::max(wait.end, end);
    return;
  }
  if (wait.end - wait.begin >= gil_ && !wait.is_reported && ended_gil_waits_.size() < kMostGilWaits)
    ended_gil_waits_.push_back(wait);
  wait = {sample.thread, sample.start, end, 0, false};
}

void RowWatch::judge_gil_waits() {
  for (GilWait& wait : ended_gil_waits_) judge_gil(wait);
  ended_gil_waits_.clear();
  for (auto at = gil_waits_.begin(); at != gil_waits_.end();) {
    GilWait& wait = at->second;
    const Nanoseconds length = wait.end - wait.begin;
    // While it goes on, it is judged again when it is half as long again.
    if (length >= gil_ && !wait.is_reported && 2 * length >= 3 * wait.judged && length > wait.judged)
      judge_gil(wait);
    at = wait.end < recent_.newest() - kWindowOfStalls ? gil_waits_.erase(at) : std::next(at);
  }
}

void RowWatch::judge_gil(GilWait& wait) {
  wait.judged = wait.end - wait.begin;
  const Thread* waiter = recent_.thread(wait.thread);
  if (waiter == nullptr) return;
  const Profile part = recent_.part(wait.begin, waiter->process, [&](const Sample& sample) {
    const Thread* row = recent_.thread(sample.thread);
    return row != nullptr && row->process == waiter->process && sample.start < wait.end;
  });
  std::vector<const Sample*> waits;
  for (const Sample& sample : part.samples()) {
    const Thread& thread = part.thread(sample.thread);
    if (sample.gil_state == GilState::waits && thread.tid == waiter->tid && thread.start == waiter->start)
      waits.push_back(&sample);
  }
  if (waits.empty()) return;
  const GilWaiter found = GilLines(part).waiter(waits);
  if (found.threads.empty() || found.threads.front().wall < gil_) return;
  wait.is_reported = true;
  const GilPlace& holder = found.threads.front();
  FrameId frame;
  for (const GilPlace& place : found.holders) {
    if (place.thread == holder.thread && !frame) frame = place.frame;
  }
  const std::string place = stall_place(part, frame);
  report_({Kind::gil, wait.begin,
           fmt::format("{} of process {} waited {} ms for the GIL; {} held it for {} ms{}",
                       thread_words(*waiter), process_words(waiter->process), wait.judged / kMillisecond,
                       thread_words(part.thread(holder.thread)), holder.wall / kMillisecond,
                       place.empty() ? "" : " in " + place),
           fmt::format("wait of {} ms for the GIL", wait.judged / kMillisecond)});
}

void RowWatch::note_use(const Sample& growth) {
  const Thread* thread = recent_.thread(growth.thread);
  if (thread == nullptr) return;
  Use& use = use_[thread->process];
  if (use.first == 0) use.first = growth.start;
  // The second in which it ended: `growth` has the new part of it.
  const Nanoseconds end = recent_.newest() / kSecond;
  auto& [cpu, ready] = use.seconds[std::min(end, (growth.start + growth.wall) / kSecond)];
  cpu += growth.cpu;
  if (growth.cpu_state == CpuState::runnable) ready += growth.wall;
}

// The last two seconds are not complete yet: sleeping processes are reported once a second.
void RowWatch::judge_use() {
  const Nanoseconds end = recent_.newest() / kSecond - 1;
  if (end <= judged_second_) return;
  judged_second_ = end;
  for (size_t i = 0; i < conditions_.size(); ++i) {
    const Condition& condition = conditions_[i];
    if (condition.kind != Kind::cpu && condition.kind != Kind::cpu_wait) continue;
    const Nanoseconds length = std::max(Nanoseconds{1}, condition.over / kSecond);
    for (const auto& [process, use] : use_) {
      if (use.first > (end - length) * kSecond) continue;
      Nanoseconds sum = 0;
      for (auto at = use.seconds.lower_bound(end - length); at != use.seconds.lower_bound(end); ++at)
        sum += condition.kind == Kind::cpu ? at->second.first : at->second.second;
      const double share = double(sum) / double(length * kSecond);
      bool& above = is_above_[{i, process}];
      if (share > condition.share && !above) {
        const bool is_use = condition.kind == Kind::cpu;
        const std::string words =
            is_use ? fmt::format("process {} used {:.0f} % of a CPU over {} s", process_words(process),
                                 100 * share, length)
                   : fmt::format("threads of process {} waited for a CPU for {:.0f} % of {} s",
                                 process_words(process), 100 * share, length);
        report_({condition.kind, (end - length) * kSecond, words,
                 fmt::format("{}{:.0f} % of {} s", is_use ? "CPU use of " : "waits for a CPU for ",
                             100 * share, length)});
      }
      above = share > condition.share;
    }
  }
  Nanoseconds longest = kSecond;
  for (const Condition& one : conditions_) longest = std::max(longest, one.over);
  for (auto& [process, use] : use_)
    use.seconds.erase(use.seconds.begin(), use.seconds.lower_bound(end - longest / kSecond - 1));
}

void RowWatch::take(const Event& event) {
  if (event.kind == EventKind::process_end && event.process) {
    use_.erase(*event.process);
    std::erase_if(is_above_, [&](const auto& one) { return one.first.second == *event.process; });
    if (has(conditions_, Kind::death)) judge_end(event);
  }
  if (!has(conditions_, Kind::death) || !is_signal_event(event)) return;
  signals_.push_back(event);
  while (signals_.size() > kMostSignals || signals_.front().time < event.time - kSignalsAge)
    signals_.pop_front();
}

// A signal that asks a program to end is no death. The last signal that ended it counts.
void RowWatch::judge_end(const Event& end) {
  const bool has_signal = std::any_of(signals_.begin(), signals_.end(),
                                      [&](const Event& one) { return one.process == end.process; });
  std::string words, in_short;
  Nanoseconds time = end.time;
  const auto pid = [&] {
    const Process* process = recent_.process(*end.process);
    return process == nullptr ? 0 : process->pid;
  };
  if (has_signal) {
    Profile rows = recent_.rows_without_samples();
    for (const Event& one : signals_) rows.emit(one);
    rows.emit(end);
    for (const Signal& signal : signals(rows)) {
      const bool ended = signal.outcome == Signal::Outcome::ended;
      const bool aborted = signal.outcome == Signal::Outcome::handled && is_of_a_crash(signal.number) &&
                           signal.ended_after >= 0 && signal.ended_after <= kEndsAfterAbort;
      if (signal.process != *end.process || (!ended && !aborted)) continue;
      words.clear();
      if (asks_to_end(signal.number)) continue;
      time = signal.time;
      const std::string name = signal_name(signal.number), process = process_words(*end.process);
      words = ended ? fmt::format("{} ended process {}: {}", name, process, sender_words(signal))
                    : fmt::format("process {} handled {}, and ended {} ms later: {}", process, name,
                                  signal.ended_after / kMillisecond, sender_words(signal));
      in_short = ended ? fmt::format("{} ended process {}", name, pid())
                       : fmt::format("process {} ended after {}", pid(), name);
    }
  } else if (const int number = signal_in(end.text); number != 0 && !asks_to_end(number)) {
    words = fmt::format("{} ended process {}", signal_name(number), process_words(*end.process));
    in_short = fmt::format("{} ended process {}", signal_name(number), pid());
  }
  if (!words.empty()) report_({Kind::death, time, words, in_short});
}

std::string RowWatch::process_words(ProcessId id) const {
  const Process* process = recent_.process(id);
  if (process == nullptr) return "(not known)";
  return fmt::format("{} ({})", process->pid, shortened(process->command(), kLongestCommand));
}

std::vector<std::string> RowWatch::blind_spots(const std::vector<Condition>& conditions,
                                               const Process& process, bool is_child) {
  std::vector<std::string> sentences;
  const bool has_gil = !process.python_build.starts_with("free-threaded");
  if (has(conditions, Kind::gil) && !has_gil)
    sentences.emplace_back(
        "--on gil: phlox sees no GIL in a free-threaded Python, so this never becomes true for it");
  if (is_in_kernel(process.mode)) return sentences;
  if (has(conditions, Kind::death))
    sentences.push_back(is_child
                            ? "--on death: outside the kernel only the end of the program itself is known, "
                              "not how other processes end, and not who sent a signal"
                            : "--on death: how a process ends is known only when phlox samples inside the "
                              "kernel, which it does not do here (phlox doctor says why)");
  if (has(conditions, Kind::stall))
    sentences.emplace_back(
        "--on stall: outside the kernel stalls are found by samples, so their length is known to one sample, "
        "and short ones may be missed");
  if (has(conditions, Kind::gil) && has_gil)
    sentences.emplace_back(
        "--on gil: outside the kernel waits for the GIL are found by samples, so short ones may be missed");
  return sentences;
}

}  // namespace phlox::incidents
