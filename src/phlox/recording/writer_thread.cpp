#include "phlox/recording/writer_thread.h"

#include <string>

namespace phlox::recording {
namespace {

// Calls in a batch, and waiting batches: a hundred KiB each.
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

void WriterThread::receive(const profile::AnyRow& row) {
  profile::take_apart(row, [this](const auto&... parts) { keep(parts...); });
}

void WriterThread::keep(const profile::Meta& meta) {
  put([key = std::string(meta.key), value = std::string(meta.value)](Sink& sink) {
    sink.emit_meta(key, value);
  });
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
      if (const auto* stack = std::get_if<0>(&call)) sink_.emit(stack->first, stack->second);
      if (const auto* sample = std::get_if<1>(&call)) sink_.emit(sample->first, sample->second);
      if (const auto* other = std::get_if<2>(&call)) (*other)(sink_);
    }
    lock.lock();
    writes_ = false;
    changed_.notify_all();
  }
}

}  // namespace phlox::recording
