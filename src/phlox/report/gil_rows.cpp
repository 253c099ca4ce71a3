#include "phlox/report/gil_rows.h"

#include <algorithm>
#include <map>
#include <utility>

#include "phlox/report/estimate.h"

namespace phlox::report {
namespace {

using profile::Profile;

// Per waiter. Further lines hold it for too short to matter.
constexpr size_t kMostHolders = 10;

template <class Row>
void put_place(Row& row, const Profile& profile, profile::FrameId frame) {
  if (!frame || frame.value > profile.frames().size()) {
    row.name = "(no Python frames)";
    return;
  }
  const auto label = view::line_label(profile, frame);
  row.name = label.name;
  row.file = label.file;
  row.line = label.line;
}

// Threads that held it in the same line share a row.
std::vector<GilHolderRow> holder_rows(const Profile& profile, const view::GilWaiter& waiter) {
  std::map<profile::FrameId, size_t> known;
  std::vector<std::pair<profile::FrameId, GilHolderRow>> rows;
  for (const view::GilPlace& holder : waiter.holders) {
    const auto [at, fresh] = known.try_emplace(holder.frame, rows.size());
    if (fresh) {
      rows.emplace_back(holder.frame, GilHolderRow{});
      // The longest holder comes first.
      rows.back().second.thread = view::thread_label(profile.thread(holder.thread));
    }
    GilHolderRow& row = rows[at->second].second;
    row.wall += holder.wall;
    ++row.threads;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.wall > b.second.wall; });
  if (rows.size() > kMostHolders) rows.resize(kMostHolders);
  std::vector<GilHolderRow> named;
  for (auto& [frame, row] : rows) {
    put_place(row, profile, frame);
    row.share = time_share(row.wall, waiter.wall);
    named.push_back(std::move(row));
  }
  return named;
}

}  // namespace

std::vector<GilWaitRow> gil_wait_rows(const Profile& profile, const std::vector<view::GilWaiter>& waiters,
                                      const std::vector<ThreadRow>& threads, size_t limit) {
  std::map<profile::ThreadId, const ThreadRow*> by_id;
  for (const ThreadRow& thread : threads) by_id[thread.id] = &thread;
  std::vector<GilWaitRow> rows;
  for (const view::GilWaiter& waiter : waiters) {
    if (rows.size() == limit) break;
    GilWaitRow row;
    row.id = waiter.thread;
    row.thread = view::thread_label(profile.thread(waiter.thread));
    if (const auto thread = by_id.find(waiter.thread); thread != by_id.end()) {
      row.pid = thread->second->pid;
      row.tid = thread->second->tid;
      row.share = time_share(waiter.wall, thread->second->wall);
    }
    row.wall = waiter.wall;
    row.unseen = waiter.unseen;
    row.free = waiter.free;
    if (!waiter.places.empty()) {
      put_place(row, profile, waiter.places.front().frame);
      row.place_share = time_share(waiter.places.front().wall, waiter.wall);
    }
    if (!waiter.threads.empty()) {
      row.holder = view::thread_label(profile.thread(waiter.threads.front().thread));
      row.holder_share = time_share(waiter.threads.front().wall, waiter.wall);
    }
    row.holders = holder_rows(profile, waiter);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace phlox::report
