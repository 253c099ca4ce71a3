// Where the intervals of `phlox agent` go: a thread of its own makes a message of each for every server, and
// puts it into that server's outbox, from which another thread sends it. So neither a slow server nor a slow
// disk holds the recorder up.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/talk.h"
#include "phlox/http/curl_http.h"
#include "phlox/profile/profile.h"
#include "phlox/push/outbox.h"
#include "phlox/push/sender.h"
#include "phlox/push/target.h"

namespace phlox::cli {

class AgentOutput {
 public:
  struct Options {
    std::vector<push::Target> targets;
    std::string state;
    uint64_t buffer = 0;  // bytes, of all targets together
    http::ClientOptions http;
    double rate_hz = 0;
  };
  // Opens the outboxes; starts nothing. `talk` must outlive it.
  static Result<std::unique_ptr<AgentOutput>> open(Options options, Talk& talk);
  ~AgentOutput();
  AgentOutput(const AgentOutput&) = delete;
  AgentOutput& operator=(const AgentOutput&) = delete;

  // Starts the threads, which begin with what an earlier run left.
  void start();
  // Whether the last interval is still being turned into messages. Then the next one may become longer.
  bool is_busy() const { return busy_; }
  // Not while it is busy.
  void give(profile::Profile interval);
  // Sends what there is, until that much time has passed; the rest stays in the outboxes. Call it once.
  void finish(Nanoseconds patience);

  struct TargetCounts {
    std::string shown;  // its address
    uint64_t sent = 0, sent_bytes = 0, failures = 0, rejected = 0;
    push::Outbox::Counts outbox;
  };
  std::vector<TargetCounts> counts() const;

 private:
  // One server: the thread is started last and ended first.
  struct Lane {
    push::Target target;
    std::unique_ptr<push::Outbox> outbox;
    std::unique_ptr<http::Client> client;
    std::unique_ptr<push::SenderThread> sender;
    uint64_t say_no_room_at = 0;  // when that many were dropped
    bool disk_refused = false;
  };

  AgentOutput(Options options, Talk& talk) : options_(std::move(options)), talk_(talk) {}
  void encode();
  void put(Lane& lane, const profile::Profile& interval);
  Result<std::string> body_for(const push::Target& target, const profile::Profile& interval) const;
  void end_encoder();

  const Options options_;
  Talk& talk_;
  std::atomic<Nanoseconds> give_up_at_{0};
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<profile::Profile> interval_;
  bool over_ = false;
  std::atomic<bool> busy_{false};
  std::thread encoder_;
};

}  // namespace phlox::cli
