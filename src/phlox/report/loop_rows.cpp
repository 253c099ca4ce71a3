#include "phlox/report/loop_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "phlox/profile/wait_target.h"
#include "phlox/report/ready_rows.h"
#include "phlox/view/system_calls.h"

namespace phlox::report {
namespace {

// Per loop. To see the others, choose a larger limit for stalls.
constexpr size_t kMostStalls = 1000;

StallRow stall_row(const profile::Profile& profile, view::WaitClasses& classes, const view::Stall& stall) {
  StallRow row;
  row.stall = stall;
  row.words = view::stall_words(profile, classes, stall);
  if (stall.frame) {
    const auto label = view::line_label(profile, stall.frame);
    std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
  }
  if (stall.sample != 0) {
    const profile::Sample& sample = profile.samples()[stall.sample - 1];
    row.waits = classes.of(sample);
    if (sample.system_call >= 0)
      row.what = view::system_call_name(sample.system_call, view::machine_of(profile));
    if (sample.wait_target && sample.wait_target.value <= profile.wait_targets().size())
      row.wait_target = profile::wait_target_words(profile.wait_targets()[sample.wait_target.value - 1]);
  }
  if (stall.holder) row.holder = view::thread_label(profile.thread(stall.holder));
  if (stall.holder_frame) {
    const auto label = view::line_label(profile, stall.holder_frame);
    std::tie(row.holder_name, row.holder_file, row.holder_line) =
        std::tie(label.name, label.file, label.line);
  }
  return row;
}

// ". In the stall at 2.85 s up to 37 tasks were ready to run; one of them waited at least 310 ms for its
// turn". Empty: no census found any, or the stall is not proved.
std::string ready_words(const std::vector<StallRow>& stalls) {
  const auto longest =
      std::max_element(stalls.begin(), stalls.end(),
                       [](const StallRow& a, const StallRow& b) { return a.ready_for < b.ready_for; });
  if (longest == stalls.end() || longest->ready_for <= 0) return {};
  const bool one = longest->ready == 1;
  return fmt::format(
      ". In the stall at {:.2f} s {} ready to run; {} waited at least {} for its turn",
      double(longest->stall.start) * 1e-9,
      one ? std::string("a task was") : fmt::format("up to {} tasks were", count_words(longest->ready)),
      one ? "it" : "one of them", time_words(longest->ready_for));
}

void put_stalls(LoopRow& row, const profile::Profile& profile, view::WaitClasses& classes,
                view::LoopStalls stalls, const std::vector<profile::ReadyTasks>& ready) {
  if (const std::string words = view::stalls_words(profile, stalls); !words.empty())
    row.sentence += ". " + words;
  row.stalls_seen = stalls.rows.size();
  if (stalls.rows.size() > kMostStalls) stalls.rows.resize(kMostStalls);
  const Nanoseconds start = view::recording_start(profile);
  const ThreadMoments moments(profile, ready.empty() ? profile::ThreadId() : row.time.thread);
  for (const view::Stall& stall : std::exchange(stalls.rows, {})) {
    row.stall_rows.push_back(stall_row(profile, classes, stall));
    put_ready(row.stall_rows.back(), start, ready, moments);
  }
  row.sentence += ready_words(row.stall_rows);
  row.stalls = std::move(stalls);
}

}  // namespace

std::vector<LoopRow> loop_rows(const profile::Profile& profile, const view::SampleFilter& filter,
                               Nanoseconds shortest_stall, const profile::TaskRows* tasks) {
  std::vector<LoopRow> rows;
  ReadyOfThread ready = tasks == nullptr ? ReadyOfThread() : ready_of_threads(*tasks);
  std::map<profile::ThreadId, view::LoopStalls> stalls;
  for (view::LoopStalls& one : view::loop_stalls(profile, filter, shortest_stall))
    stalls[one.thread] = std::move(one);
  view::WaitClasses classes(profile);
  for (const view::LoopTime& loop : view::loop_times(profile, filter)) {
    const profile::Thread& thread = profile.thread(loop.thread);
    LoopRow row;
    row.time = loop;
    row.thread = view::thread_label(thread);
    row.tid = thread.tid;
    if (thread.process && thread.process.value <= profile.processes().size())
      row.pid = profile.process(thread.process).pid;
    if (loop.blocked_in) {
      const auto label = view::function_label(profile, loop.blocked_in);
      std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
    }
    row.sentence = view::loop_sentence(profile, loop);
    if (const auto found = stalls.find(loop.thread); found != stalls.end())
      put_stalls(row, profile, classes, std::move(found->second), ready[loop.thread]);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<PoolRow> pool_rows(const profile::Profile& profile, const view::SampleFilter& filter) {
  std::vector<PoolRow> rows;
  for (view::BusyPool& pool : view::busy_pools(profile, filter)) {
    std::string sentence = view::busy_pool_words(profile, pool);
    rows.push_back({std::move(pool), std::move(sentence)});
  }
  return rows;
}

}  // namespace phlox::report
