#include "phlox/sampler/session/task_census.h"

#include <algorithm>
#include <utility>

#include "phlox/sampler/session/host.h"

namespace phlox::sampler {

CensusPace::CensusPace(std::optional<double> max_overhead_percent, double rate_hz, uint64_t seed,
                       Nanoseconds begin)
    : begin_(begin), every_(kMostOften), schedule_(kLeastOften, seed) {
  if (rate_hz > 0)
    every_ = std::clamp(static_cast<Nanoseconds>(2 * kSecond / rate_hz), kMostOften, kLeastOften);
  if (max_overhead_percent) budget_ = *max_overhead_percent / 100;
}

void CensusPace::taken(Nanoseconds now, const Taken& census) {
  cost_ = cost_ ? (*cost_ + census.cost) / 2 : census.cost;
  const double share = budget_ ? *budget_ * (census.tasks < kFew ? kShareOfFew : kShare) : kMost;
  const auto affordable = static_cast<Nanoseconds>(static_cast<double>(*cost_) / share);
  if (census.tasks > 0 && !census.unchanged) changed_ = now;
  const bool seldom = !changed_ || now - *changed_ >= kIdle;
  const bool rarely = seldom && census.tasks == 0 && now - begin_ >= kFirst;
  schedule_.set_interval(std::max(rarely ? kRarely : seldom ? kLeastOften : every_, affordable));
  due_ = now + schedule_.draw();
}

TaskCensus::TaskCensus(Host& host, profile::ProcessId process, Nanoseconds begin,
                       const python::Interpreter& interpreter, memory::RemoteMemory& memory,
                       const process::ProcessClock& clock, profile::TaskSink& sink,
                       profile::Interner& interner, TaskRowIds& ids,
                       std::optional<double> max_overhead_percent, double rate_hz)
    : host_(host),
      interpreter_(interpreter),
      memory_(memory),
      clock_(clock),
      sink_(sink),
      ids_(ids),
      sums_(process, sink, interner, ids, begin),
      pace_(max_overhead_percent, rate_hz, static_cast<uint64_t>(begin) ^ process.value, begin),
      last_(begin) {
  counts_.process = process;
}

// Whether the tasks must be the same as at the last census.
bool TaskCensus::is_as_it_was(std::optional<Nanoseconds> used) {
  // Modules are counted, not compared: an error in that lasts for at most this many censuses.
  constexpr int kMostNotRead = 20;
  // The kernel counts a running thread's time only up to its last tick: the next census shows what the thread
  // did in these milliseconds.
  if (used && used == used_ && last_counts_.unproved + last_counts_.ended == 0) return true;
  used_ = used;
  if (imported_ || not_read_ >= kMostNotRead) return false;
  const uint64_t stamp = python::modules_stamp(interpreter_, memory_);
  return stamp != 0 && stamp == stamp_;
}

void TaskCensus::read(Nanoseconds weight, const TaskSums::ThreadOf& thread_of,
                      const std::function<void()>& between) {
  python::TaskSources sources;
  sources.chains_only = true;
  sources.between = between;
  sources.pages = pages_ ? &*pages_ : nullptr;
  stamp_ = python::modules_stamp(interpreter_, memory_);
  known_.is_now(stamp_);
  if (stamp_ != 0) sources.known = &known_;
  const auto found = python::read_async_tasks(interpreter_, memory_, sources);
  const Nanoseconds took = host_.now() - last_;
  imported_ = found.imported;
  if (imported_ && !pages_) pages_.emplace(memory_);
  last_counts_.tasks = found.tasks.size();
  last_counts_.unproved = found.unproved;
  last_counts_.ended = found.ended;
  last_counts_.beyond = found.beyond;
  counts_.problem = found.problem;  // asyncio may have been half imported before
  sums_.add(found, weight, thread_of, took);
}

void TaskCensus::take(Nanoseconds now, const TaskSums::ThreadOf& thread_of,
                      const std::function<void()>& between) {
  const Nanoseconds weight = now - std::exchange(last_, now);
  const Nanoseconds before = host_.read_clock(CLOCK_THREAD_CPUTIME_ID);
  Nanoseconds elsewhere = 0;
  const bool unchanged = is_as_it_was(clock_.used());
  if (unchanged) {
    ++not_read_;
    sums_.add_again(weight);
  } else {
    not_read_ = 0;
    read(weight, thread_of, [&] {
      const Nanoseconds left = host_.read_clock(CLOCK_THREAD_CPUTIME_ID);
      between();
      elsewhere += host_.read_clock(CLOCK_THREAD_CPUTIME_ID) - left;
    });
  }
  const Nanoseconds cost = host_.read_clock(CLOCK_THREAD_CPUTIME_ID) - before - elsewhere;
  counts_.tasks += last_counts_.tasks;
  counts_.unproved += last_counts_.unproved;
  counts_.ended += last_counts_.ended;
  counts_.beyond += last_counts_.beyond;
  const size_t tasks = last_counts_.tasks + last_counts_.unproved + last_counts_.ended;
  const bool found = tasks > 0;
  // Counts from the middle between the last census that found nothing and the first that found tasks.
  const bool first = std::exchange(any_, any_ || found) != any_;
  if (any_ || !counts_.problem.empty()) {
    counts_.times += 1;
    counts_.span += first && not_first_ ? weight - weight / 2 : weight;
    counts_.cost += cost;
  }
  not_first_ = true;
  pace_.taken(now, {cost, tasks, unchanged});
}

void TaskCensus::end(Nanoseconds now) {
  const Nanoseconds weight = now - last_;
  if (weight <= 0 || last_counts_.tasks == 0) return;
  last_ = now;
  sums_.end(weight);
  counts_.span += weight;
  put_ = 0;
}

void TaskCensus::put() {
  if ((!any_ && counts_.problem.empty()) || std::exchange(put_, counts_.times) == counts_.times) return;
  if (!id_) id_ = profile::TaskCensusId(++ids_.censuses);
  counts_.without_stack = sums_.without_stack();
  sink_.put_task_census(id_, counts_);
  sums_.put();
}

}  // namespace phlox::sampler
