#include "phlox/recording/writer_thread.h"

#include <string>

namespace phlox::recording {
namespace {

// At once, and so often: a hundred KiB each.
constexpr size_t kCallsAtOnce = 1024, kMostWaiting = 8;

}  // namespace

WriterThread::WriterThread(profile::Sink& sink) : sink_(sink) {
  calls_.reserve(kCallsAtOnce);
  thread_ = std::thread([this] { run(); });
}

WriterThread::~WriterThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WriterThread::put_meta(std::string_view key, std::string_view value) {
  put([key = std::string(key), value = std::string(value)](Sink& sink) { sink.put_meta(key, value); });
}

void WriterThread::put_process(profile::ProcessId id, const profile::Process& process) {
  put([id, process](Sink& sink) { sink.put_process(id, process); });
}

void WriterThread::put_thread(profile::ThreadId id, const profile::Thread& thread) {
  put([id, thread](Sink& sink) { sink.put_thread(id, thread); });
}

void WriterThread::put_module(profile::ModuleId id, const profile::Module& module) {
  put([id, module](Sink& sink) { sink.put_module(id, module); });
}

void WriterThread::put_frame(profile::FrameId id, const profile::Frame& frame) {
  put([id, frame](Sink& sink) { sink.put_frame(id, frame); });
}

void WriterThread::put_wake(profile::WakeId id, const profile::Wake& wake) {
  put([id, wake](Sink& sink) { sink.put_wake(id, wake); });
}

void WriterThread::put_awaited(profile::AwaitedId id, const profile::Awaited& awaited) {
  put([id, awaited](Sink& sink) { sink.put_awaited(id, awaited); });
}

void WriterThread::put_event(const profile::Event& event) {
  put([event](Sink& sink) { sink.put_event(event); });
}

void WriterThread::put_tally(const profile::Tally& tally) {
  put([tally](Sink& sink) { sink.put_tally(tally); });
}

Result<void> WriterThread::commit() {
  hand_over();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !writes_; });
  return sink_.commit();
}

void WriterThread::put(Call call) {
  calls_.push_back(std::move(call));
  if (calls_.size() >= kCallsAtOnce) hand_over();
}

void WriterThread::hand_over() {
  if (calls_.empty()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.size() < kMostWaiting; });
  waiting_.push_back(std::exchange(calls_, {}));
  lock.unlock();
  changed_.notify_all();
  calls_.reserve(kCallsAtOnce);
}

void WriterThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    const Calls calls = std::move(waiting_.front());
    waiting_.pop_front();
    writes_ = true;
    lock.unlock();
    for (const Call& call : calls) {
      if (const auto* stack = std::get_if<0>(&call)) sink_.put_stack(stack->first, stack->second);
      if (const auto* sample = std::get_if<1>(&call)) sink_.put_sample(sample->first, sample->second);
      if (const auto* other = std::get_if<2>(&call)) (*other)(sink_);
    }
    lock.lock();
    writes_ = false;
    changed_.notify_all();
  }
}

}  // namespace phlox::recording
