// A Sink that passes calls on from another thread, in order, for a caller that has other work than writing
// (an import). The caller runs at most some thousand calls ahead, and waits for the rest in commit().
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

  void receive(const profile::AnyRow& row) override;
  // Afterwards the sink is the caller's until the next call.
  Result<void> commit() override;

 private:
  // Frequent calls allocate no memory of their own.
  using Call =
      std::variant<std::pair<profile::StackId, profile::Stack>, std::pair<profile::SampleId, profile::Sample>,
                   std::function<void(profile::Sink&)>>;
  using Calls = std::vector<Call>;

  // Copies of what a row refers to.
  void keep(const profile::Meta& meta);
  void keep(profile::StackId id, const profile::Stack& stack) { put(std::pair(id, stack)); }
  void keep(profile::SampleId id, const profile::Sample& sample) { put(std::pair(id, sample)); }
  template <class RowId, class Value>
  void keep(RowId id, const Value& value) {
    put([id, value](profile::Sink& sink) { sink.emit(id, value); });
  }
  template <class Value>
  void keep(const Value& value) {
    put([value](profile::Sink& sink) { sink.emit(value); });
  }
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
