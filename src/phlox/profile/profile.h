// A recording in memory: every row of the model, by id. Filled by recording::read (or, in tests and for
// `dump`, directly by the sampler, because it is a Sink). Rows are in vectors: id.value - 1 is the index.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "phlox/profile/sink.h"

namespace phlox::profile {

class Profile : public Sink {
 public:
  void receive(const AnyRow& row) override;
  Result<void> commit() override { return {}; }

  void put_time_label(TimeLabel label) { time_labels_.push_back(std::move(label)); }

  // From now on samples() are those of this event (sampled_events.h); 0: of none, all of them.
  void show_samples_of(uint16_t event);
  uint16_t shown_event() const { return shown_event_; }

  // Replaces the samples and the stacks that they refer to. Removes samples of events that are not shown.
  void replace_samples(std::vector<Sample> samples, std::vector<Stack> stacks);
  void replace_trace_times(std::vector<TraceTime> times) { trace_times_ = std::move(times); }
  // Gives each sample another stack, or the one that it has.
  void move_samples(const std::function<StackId(const Sample&)>& stack_of);
  // Replaces the stacks. `new_of`: the new id, by the old one, for the samples.
  void replace_stacks(std::vector<Stack> stacks, const std::vector<StackId>& new_of);

  const std::map<std::string, std::string, std::less<>>& meta() const { return meta_; }
  const std::vector<Process>& processes() const { return processes_; }
  const std::vector<Thread>& threads() const { return threads_; }
  const std::vector<Module>& modules() const { return modules_; }
  const std::vector<Frame>& frames() const { return frames_; }
  const std::vector<Stack>& stacks() const { return stacks_; }
  const std::vector<Waker>& wakers() const { return wakers_; }
  const std::vector<WaitTarget>& wait_targets() const { return wait_targets_; }
  const std::vector<Sample>& samples() const { return samples_; }
  const std::vector<TraceTime>& trace_times() const { return trace_times_; }
  // Samples of the events that are not shown.
  const std::vector<Sample>& samples_of_others() const { return samples_of_others_; }
  const std::vector<Event>& events() const { return events_; }
  const std::vector<Counter>& counters() const { return counters_; }
  const std::vector<TimeLabel>& time_labels() const { return time_labels_; }

  // The id must have been put.
  const Process& process(ProcessId id) const { return processes_[id.value - 1]; }
  const Thread& thread(ThreadId id) const { return threads_[id.value - 1]; }
  const Frame& frame(FrameId id) const { return frames_[id.value - 1]; }
  const Stack& stack(StackId id) const { return stacks_[id.value - 1]; }

  // Sum over all processes and the recorder; 0 when there is none of that name.
  int64_t counter(std::string_view name) const;

  // Emits every row, in an order in which no row refers to a later one.
  void emit_all(Sink& sink) const;

 private:
  void add(const Meta& meta);
  void add(ProcessId id, const Process& process);
  void add(ThreadId id, const Thread& thread);
  void add(ModuleId id, const Module& module);
  void add(FrameId id, const Frame& frame);
  void add(StackId id, const Stack& stack);
  void add(WakerId id, const Waker& waker);
  void add(WaitTargetId id, const WaitTarget& wait_target);
  void add(SampleId id, const Sample& sample);
  void add(TraceTimeId id, const TraceTime& time);
  void add(const Event& event);
  void add(const Counter& counter);

  std::map<std::string, std::string, std::less<>> meta_;
  std::vector<Process> processes_;
  std::vector<Thread> threads_;
  std::vector<Module> modules_;
  std::vector<Frame> frames_;
  std::vector<Stack> stacks_;
  std::vector<Waker> wakers_;
  std::vector<WaitTarget> wait_targets_;
  std::vector<Sample> samples_, samples_of_others_;
  uint16_t shown_event_ = 0;
  std::vector<TraceTime> trace_times_;
  std::vector<Event> events_;
  std::vector<Counter> counters_;
  std::vector<TimeLabel> time_labels_;
};

}  // namespace phlox::profile
