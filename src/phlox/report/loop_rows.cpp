#include "phlox/report/loop_rows.h"

#include <tuple>
#include <utility>

namespace phlox::report {

std::vector<LoopRow> loop_rows(const profile::Profile& profile, const profile::SampleFilter& filter) {
  std::vector<LoopRow> rows;
  for (const profile::LoopTime& loop : profile::loop_times(profile, filter)) {
    const profile::Thread& thread = profile.thread(loop.thread);
    LoopRow row;
    row.time = loop;
    row.thread = profile::thread_label(thread);
    row.tid = thread.tid;
    if (thread.process && thread.process.value <= profile.processes().size())
      row.pid = profile.process(thread.process).pid;
    if (loop.blocked_in) {
      const auto label = profile::function_label(profile, loop.blocked_in);
      std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
    }
    row.sentence = profile::loop_sentence(profile, loop);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<PoolRow> pool_rows(const profile::Profile& profile, const profile::SampleFilter& filter) {
  std::vector<PoolRow> rows;
  for (profile::BusyPool& pool : profile::busy_pools(profile, filter)) {
    std::string sentence = profile::busy_pool_words(profile, pool);
    rows.push_back({std::move(pool), std::move(sentence)});
  }
  return rows;
}

}  // namespace phlox::report
