// A Sink whose calls another thread passes on to a sink in their order, for a caller that has other work than
// writing (an import). The caller runs at most some thousand calls ahead, and waits for the rest in commit().
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "phlox/profile/sink.h"

namespace phlox::recording {

class WriterThread : public profile::Sink {
 public:
  explicit WriterThread(profile::Sink& sink);
  // Rows that were not committed may be lost.
  ~WriterThread() override;
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  void put_meta(std::string_view key, std::string_view value) override;
  void put_process(profile::ProcessId id, const profile::Process& process) override;
  void put_thread(profile::ThreadId id, const profile::Thread& thread) override;
  void put_module(profile::ModuleId id, const profile::Module& module) override;
  void put_frame(profile::FrameId id, const profile::Frame& frame) override;
  void put_stack(profile::StackId id, const profile::Stack& stack) override { put(std::pair(id, stack)); }
  void put_wake(profile::WakeId id, const profile::Wake& wake) override;
  void put_awaited(profile::AwaitedId id, const profile::Awaited& awaited) override;
  void put_sample(profile::SampleId id, const profile::Sample& sample) override {
    put(std::pair(id, sample));
  }
  void put_event(const profile::Event& event) override;
  void put_tally(const profile::Tally& tally) override;
  // After it, the sink is the caller's until the next call.
  Result<void> commit() override;

 private:
  // Frequent calls allocate no memory of their own.
  using Call =
      std::variant<std::pair<profile::StackId, profile::Stack>, std::pair<profile::SampleId, profile::Sample>,
                   std::function<void(profile::Sink&)>>;
  using Calls = std::vector<Call>;

  void put(Call call);
  void hand_over();
  void run();

  profile::Sink& sink_;
  Calls calls_;  // the caller's
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Calls> waiting_;
  bool writes_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace phlox::recording
