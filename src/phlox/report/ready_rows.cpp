#include "phlox/report/ready_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "phlox/view/frame_labels.h"
#include "phlox/view/loop_stacks.h"

namespace phlox::report {
namespace {

using profile::ReadyTasks;
using profile::Sample;

constexpr std::string_view kOfLoop = "the loop itself", kNotKnown = "not known";
// Fewer ready tasks at a time are not worth a table.
constexpr double kWorthTelling = 0.05;

std::string_view state_words(const Sample& sample) {
  if (sample.gil_state == profile::GilState::waits) return "waiting for the GIL";
  switch (sample.cpu_state) {
    case profile::CpuState::running:
      return sample.collecting ? "collecting garbage" : "on a CPU";
    case profile::CpuState::runnable:
      return "waiting for a CPU";
    case profile::CpuState::blocked:
      return "blocked";
    case profile::CpuState::unknown:
      break;
  }
  return kNotKnown;
}

// Adds up the ready tasks of one loop by what its thread did.
class ReadyPlaces {
 public:
  void add(const view::LoopPlace& place, const Sample* sample, uint64_t tasks) {
    std::string_view words = kNotKnown;
    profile::FrameId frame;
    if (sample != nullptr && place.at == view::InLoop::callback) {
      words = state_words(*sample);
      frame = place.program;
    } else if (place.at == view::InLoop::own || place.at == view::InLoop::poll) {
      words = kOfLoop;
    }
    ReadyRow& row = rows_[{frame, words}];
    row.share += double(tasks);
    row.most = std::max(row.most, tasks);
    ++row.times;
    all_ += double(tasks);
  }

  std::vector<ReadyRow> rows(const profile::Profile& profile) && {
    std::vector<ReadyRow> out;
    for (auto& [key, row] : rows_) {
      if (key.first) {
        const auto label = view::line_label(profile, key.first);
        std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
      }
      row.words = key.second;
      row.share /= all_;
      out.push_back(std::move(row));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const ReadyRow& a, const ReadyRow& b) { return a.share > b.share; });
    return out;
  }

 private:
  std::map<std::pair<profile::FrameId, std::string_view>, ReadyRow> rows_;
  double all_ = 0;
};

}  // namespace

ThreadMoments::ThreadMoments(const profile::Profile& profile, profile::ThreadId thread)
    : samples_(profile.samples()) {
  for (uint32_t i = 0; i < samples_.size(); ++i) {
    if (samples_[i].thread == thread) rows_.push_back(i);
  }
  std::stable_sort(rows_.begin(), rows_.end(),
                   [this](uint32_t a, uint32_t b) { return samples_[a].start < samples_[b].start; });
}

const Sample* ThreadMoments::at(Nanoseconds time) const {
  auto next = std::upper_bound(rows_.begin(), rows_.end(), time,
                               [this](Nanoseconds t, uint32_t row) { return t < samples_[row].start; });
  if (next == rows_.begin()) return nullptr;
  const Sample& sample = samples_[*--next];
  // Such a row has the stack of another moment (docs/recording.md).
  const bool is_told = sample.samples > 0 || sample.cpu_state == profile::CpuState::blocked;
  return is_told && time < sample.start + sample.wall ? &sample : nullptr;
}

const Sample* ThreadMoments::wait_of(Nanoseconds wall, Nanoseconds from, Nanoseconds to) const {
  auto next = std::lower_bound(rows_.begin(), rows_.end(), from,
                               [this](uint32_t row, Nanoseconds t) { return samples_[row].start < t; });
  for (; next != rows_.end() && samples_[*next].start < to; ++next) {
    const Sample& sample = samples_[*next];
    if (sample.wall == wall && sample.cpu_state == profile::CpuState::blocked) return &sample;
  }
  return nullptr;
}

std::map<profile::EventLoopId, std::vector<ReadyRow>> ready_rows(const profile::Profile& profile,
                                                                 const view::SampleFilter& filter,
                                                                 const profile::TaskRows& tasks) {
  std::map<profile::EventLoopId, std::vector<ReadyRow>> out;
  std::map<profile::EventLoopId, ReadyPlaces> places;
  std::map<profile::ThreadId, ThreadMoments> threads;
  view::LoopStacks stacks(profile, filter.rule().places());
  for (const ReadyTasks& ready : tasks.ready) {
    const profile::ThreadId thread =
        ready.loop ? tasks.loops[ready.loop.value - 1].thread : profile::ThreadId();
    if (!thread || ready.tasks == 0) continue;
    const auto moments = threads.try_emplace(thread, profile, thread).first;
    const Sample* sample = moments->second.at(ready.time + ready.took / 2);
    places[ready.loop].add(sample == nullptr ? view::LoopPlace() : stacks.of(*sample), sample, ready.tasks);
  }
  for (auto& [loop, of] : places) out[loop] = std::move(of).rows(profile);
  return out;
}

ReadyOfThread ready_of_threads(const profile::TaskRows& tasks) {
  ReadyOfThread out;
  for (const ReadyTasks& ready : tasks.ready) {
    const profile::ThreadId thread =
        ready.loop ? tasks.loops[ready.loop.value - 1].thread : profile::ThreadId();
    if (thread && ready.tasks > 0) out[thread].push_back(ready);
  }
  for (auto& [thread, rows] : out) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const ReadyTasks& a, const ReadyTasks& b) { return a.time < b.time; });
  }
  return out;
}

void put_ready(StallRow& row, Nanoseconds start, const std::vector<ReadyTasks>& ready,
               const ThreadMoments& moments) {
  // Starts of samples have a resolution of one microsecond.
  constexpr Nanoseconds kRounding = 2'000;
  const view::Stall& stall = row.stall;
  const Nanoseconds begin = start + stall.start, end = begin + stall.wall;
  const Nanoseconds from = begin + stall.error, to = end - stall.error;
  // A single wait of `least` is somewhere in the stall, and so takes at least this part of its middle.
  Nanoseconds wait_from = end + stall.error - stall.least, wait_to = begin - stall.error + stall.least;
  const Sample* wait = stall.least > 0 ? moments.wait_of(stall.least, begin - kRounding, end) : nullptr;
  if (wait != nullptr) {
    wait_from = wait->start + kRounding;
    wait_to = wait->start + wait->wall - kRounding;
  }
  auto one = std::lower_bound(ready.begin(), ready.end(), from,
                              [](const ReadyTasks& a, Nanoseconds time) { return a.time < time; });
  for (; one != ready.end() && one->time + one->took <= to; ++one) {
    row.ready = std::max(row.ready, one->tasks);
    if (stall.least > 0 && one->time >= wait_from)
      row.ready_for = std::max(row.ready_for, wait_to - (one->time + one->took));
  }
}

Table ready_table(const LoopAwaitRow& loop) {
  constexpr size_t kMost = 5;
  Table table;
  if (loop.census.span <= 0 || double(loop.ready) < kWorthTelling * double(loop.census.span)) return table;
  table.title = fmt::format("What ran while tasks were ready to run: {}", plain(loop.thread));
  table.note = fmt::format(
      "As the same censuses found it: at most {} tasks at once waited for their turn. Shares are of these "
      "tasks.",
      count_words(loop.most_ready));
  table.columns = {{"share", true},          {"most tasks", true},         {"found", true},
                   {"in", false, Fit::name}, {"where", false, Fit::place}, {"what it did"}};
  for (const ReadyRow& row : loop.ready_rows) {
    if (table.rows.size() == kMost) break;
    table.rows.push_back({share_words(row.share), count_words(row.most), fmt::format("{} times", row.times),
                          plain(row.name), location_words(row.file, row.line), row.words});
  }
  table.left_out = loop.ready_rows.size() - table.rows.size();
  return table;
}

}  // namespace phlox::report
