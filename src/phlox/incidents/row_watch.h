// Passes the rows of a recording on to its sink, and reports conditions that become true in them: stalls of
// event loops, long waits for the GIL, CPU time, waits for a CPU, ends by a signal. Stalls, holders of the
// GIL and signals are judged by the code of the report. The recorder's thread calls it. Pure.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "phlox/incidents/condition.h"
#include "phlox/incidents/plan.h"
#include "phlox/incidents/recent.h"
#include "phlox/profile/sink.h"

namespace phlox::incidents {

class RowWatch : public profile::Sink {
 public:
  using Report = std::function<void(Cause)>;
  // Conditions of other kinds are ignored. `to` must outlive it. `on_process`: one
  // begins, is read in another mode (at its beginning none is known), or has ended.
  RowWatch(const std::vector<Condition>& conditions, profile::Sink& to, Report report,
           std::function<void(const profile::Process&)> on_process = {});

  void receive(const profile::AnyRow& row) override;
  // Commits, and then judges.
  Result<void> commit() override;

  // A function of an event loop was on a stack: without one, no stall can be found. Any thread may ask.
  bool has_met_loop() const { return has_met_loop_; }

  // What the conditions cannot see of this process, in sentences. `is_child`: we started it.
  static std::vector<std::string> blind_spots(const std::vector<Condition>& conditions,
                                              const profile::Process& process, bool is_child);

 private:
  struct ThreadState {
    Nanoseconds last_end = 0, poll_end = 0;  // of its rows; of the last wait for events, 0: none yet
    bool has_gap = false;                    // between two of these, as long as a stall
    Nanoseconds next_judgement = 0, pause = kSecond;
    Nanoseconds reported_until = 0;
  };
  // Rows of one thread that wait for the GIL, one after the other.
  struct GilWait {
    profile::ThreadId thread;
    Nanoseconds begin = 0, end = 0;
    Nanoseconds judged = 0;  // its length then
    bool is_reported = false;
  };
  // CPU time, and time of threads that waited for a CPU, by second.
  struct Use {
    Nanoseconds first = 0;
    std::map<Nanoseconds, std::pair<Nanoseconds, Nanoseconds>> seconds;
  };

  void take(profile::SampleId id, const profile::Sample& sample);
  void take(const profile::Event& event);
  bool is_poll(const profile::Sample& sample) const;
  void note_poll(ThreadState& state, const profile::Sample& sample);
  void note_gil(const profile::Sample& sample);
  void note_use(const profile::Sample& growth);
  void judge_stalls();
  void judge_stall(profile::ThreadId thread, ThreadState& state);
  void judge_gil_waits();
  void judge_gil(GilWait& wait);
  void judge_use();
  void judge_end(const profile::Event& end);
  std::string process_words(profile::ProcessId id) const;

  profile::Sink& to_;
  Report report_;
  std::function<void(const profile::Process&)> on_process_;
  uint32_t processes_ = 0;                           // that have begun
  std::map<profile::ProcessId, std::string> modes_;  // of those that have not ended
  std::vector<Condition> conditions_;
  Nanoseconds stall_ = 0, gil_ = 0;  // the shortest that is asked for; 0: none
  Recent recent_;
  std::unordered_set<uint32_t> timeouts_;  // wait targets
  std::unordered_map<uint32_t, ThreadState> threads_;
  std::unordered_map<uint32_t, GilWait> gil_waits_;
  std::deque<GilWait> ended_gil_waits_;
  std::map<profile::ProcessId, Use> use_;
  Nanoseconds judged_second_ = 0;
  std::map<std::pair<size_t, profile::ProcessId>, bool> is_above_;  // by condition
  std::deque<profile::Event> signals_;
  std::atomic<bool> has_met_loop_{false};
};

}  // namespace phlox::incidents
