// Sends what is in the outbox of one server, the oldest first: one body at a time, again after a failure, and
// divided if it is too large. Reports a problem once, and again when it changes. step() has no clock and no
// thread of its own; SenderThread calls it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "phlox/base/clock.h"
#include "phlox/http/http.h"
#include "phlox/push/backoff.h"
#include "phlox/push/outbox.h"
#include "phlox/push/target.h"
#include "phlox/push/verdict.h"

namespace phlox::push {

class Sender {
 public:
  struct Notes {
    // `hint` may be empty. Called by the thread that calls step().
    std::function<void(const std::string& text, const std::string& hint)> warn;
    std::function<void(const std::string& text)> note;
  };
  // All of these must outlive it. `random`: from 0 to 1.
  Sender(const Target& target, Outbox& outbox, http::Client& client, Notes notes,
         std::function<double()> random)
      : target_(target),
        outbox_(outbox),
        client_(client),
        notes_(std::move(notes)),
        random_(std::move(random)) {}

  // Sends the first body, if one is due. Returns the time until the next one is due; none if the outbox is
  // empty.
  std::optional<Nanoseconds> step(Nanoseconds now);
  // Makes the next step send at once.
  void hurry() { due_ = 0; }
  // Whether the last attempt failed.
  bool is_failing() const { return failing_; }

  struct Counts {
    std::atomic<uint64_t> sent{0};      // bodies
    std::atomic<uint64_t> bytes{0};     // of these
    std::atomic<uint64_t> failures{0};  // attempts
    std::atomic<uint64_t> rejected{0};  // profiles that the server rejected in bodies that it accepted
  };
  const Counts& counts() const { return counts_; }
  const Target& target() const { return target_; }

 private:
  void say(const Verdict& verdict);
  void divide(const Outbox::Item& item);

  const Target& target_;
  Outbox& outbox_;
  http::Client& client_;
  Notes notes_;
  std::function<double()> random_;
  Backoff backoff_;
  Nanoseconds due_ = 0;
  bool failing_ = false;
  std::string said_;  // the key of the last problem; empty: none
  bool said_too_large_ = false;
  Counts counts_;
};

// Calls a sender's steps on a thread of its own, until finish().
class SenderThread {
 public:
  explicit SenderThread(std::unique_ptr<Sender> sender);
  ~SenderThread();
  SenderThread(const SenderThread&) = delete;
  SenderThread& operator=(const SenderThread&) = delete;

  // Something was put into the outbox.
  void notify();
  // From now on, ends when the outbox is empty, at the first failure, or at the deadline.
  void finish(Nanoseconds deadline);
  // Waits for the end, after finish().
  void wait();
  const Sender& sender() const { return *sender_; }

 private:
  void run();

  std::unique_ptr<Sender> sender_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool news_ = false;
  std::optional<Nanoseconds> deadline_;
  std::thread thread_;
};

}  // namespace phlox::push
