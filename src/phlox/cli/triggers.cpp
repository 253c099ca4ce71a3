#include "phlox/cli/triggers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/cli/destination.h"
#include "phlox/process/kept_rights.h"
#include "phlox/report/table.h"
#include "phlox/view/signals.h"

namespace phlox::cli {

using incidents::Cause;
using incidents::Condition;
using incidents::Kind;

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(200);
constexpr Nanoseconds kMemoryEvery = kSecond;
// In which each thread was sampled several times, also if it only waits.
constexpr Nanoseconds kTimeToMeetLoop = 20 * kSecond;
// For large files that were not read before.
constexpr Nanoseconds kNamesPatience = 15 * kSecond;
constexpr size_t kLongestLine = 200;

// Of a log file, in one line.
std::string line_words(std::string_view line) {
  std::string words = shortened(line, kLongestLine);
  for (char& c : words) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return words;
}

}  // namespace

Triggers::Triggers(const TriggerRequest& request, const sigset_t& mask, Talk& talk)
    : request_(request),
      talk_(talk),
      files_({request.folder, request.most_bytes, shortest(request.conditions, Kind::stall), mask}, talk),
      plan_(request.before, request.after, request.most_an_hour) {}

Result<std::unique_ptr<Triggers>> Triggers::open(const TriggerRequest& request, const sigset_t& mask,
                                                 Talk& talk) {
  if (auto made = make_incident_folder(request.folder, recording_owner()); !made) return fail(made);
  std::unique_ptr<Triggers> triggers(new Triggers(request, mask, talk));
  for (const Condition& one : request.conditions) {
    if (one.kind == Kind::log) {
      auto tail = LogTail::open(one.file, one.regex, recording_owner());
      if (!tail) return fail(tail);
      triggers->logs_.push_back({*std::move(tail), one.file});
    } else if (one.kind == Kind::http) {
      // Whether it is free, before anything is started.
      const auto port = push::MetricsPort::open(one.address, {});
      if (!port) return fail(port);
    }
  }
  return triggers;
}

Triggers::~Triggers() {
  port_.reset();
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

profile::Sink& Triggers::watch(profile::Sink& to, const std::string& recording, bool is_child) {
  recording_ = recording;
  is_child_ = is_child;
  rows_ = std::make_unique<incidents::RowWatch>(
      request_.conditions, to, [this](Cause cause) { note(std::move(cause)); },
      [this](const profile::Process& process) { meet(process); });
  return *rows_;
}

void Triggers::start() {
  started_ = true;
  no_loop_after_ = clock_now() + kTimeToMeetLoop;
  for (const Condition& one : request_.conditions) {
    if (one.kind != Kind::http || port_) continue;
    auto port = push::MetricsPort::open(
        one.address,
        [](std::string_view path) {
          return path == "/healthz" ? std::optional(push::Page{200, "text/plain; charset=utf-8", "ok\n"})
                                    : std::nullopt;
        },
        [this](std::string_view path) { return posted(path); });
    if (port) {
      port_ = *std::move(port);
      talk_.note(fmt::format("POST /incident on port {} writes an incident", port_->port()));
    } else {
      talk_.error(port.error());
    }
  }
  thread_ = std::thread([this] {
    process::give_up_other_capabilities();
    run();
  });
}

std::optional<push::Page> Triggers::posted(std::string_view path) {
  if (path != "/incident") return {};
  note({Kind::http, clock_now(), "a request was posted", "HTTP request"});
  return push::Page{202, "text/plain; charset=utf-8",
                    fmt::format("noted; the recording is ready in {:.0f} s\n",
                                double(request_.after + TriggerRequest::kRowsSettled) / double(kSecond))};
}

bool Triggers::on_signal(int number) {
  if (!request_.takes_signal(number)) return false;
  const std::string name = view::signal_name(number);
  if (started_) note({Kind::signal, clock_now(), name + " was sent to phlox", name + " to phlox"});
  return true;
}

void Triggers::note(Cause cause) {
  // Names in it are any bytes. Tabs divide the fields of a cause in the recording.
  cause.words = report::plain(cause.words);
  cause.in_short = report::plain(cause.in_short);
  const std::string words = fmt::format("{}: {}", kind_name(cause.kind), cause.words);
  incidents::Plan::Answer answer;
  uint64_t dropped = 0;
  {
    const std::lock_guard lock(mutex_);
    answer = plan_.note(std::move(cause), clock_now());
    dropped = plan_.dropped();
  }
  if (answer == incidents::Plan::Answer::begins) {
    if (names_ != nullptr) names_->hurry();
    talk_.note("incident: " + words);
  }
  if (answer == incidents::Plan::Answer::joins_first) talk_.note("incident, also: " + words);
  if (answer == incidents::Plan::Answer::too_many && (dropped & (dropped - 1)) == 0)
    talk_.warn(
        fmt::format("no incident is written of this: {} ({} so far, after {} in an hour; --max-incidents)",
                    words, count_words(dropped), request_.most_an_hour));
}

// A process begins, its mode is known, or it ends.
void Triggers::meet(const profile::Process& process) {
  if (!process.mode.empty()) {
    for (const std::string& sentence :
         incidents::RowWatch::blind_spots(request_.conditions, process, is_child_)) {
      if (said_.insert(sentence).second) talk_.warn(sentence);
    }
  }
  if (!has(request_.conditions, Kind::memory)) return;
  if (process.end != 0) {
    const std::lock_guard lock(mutex_);
    memory_.erase(process.pid);
    return;
  }
  auto groups = process::find_memory_groups(process.pid);
  const std::lock_guard lock(mutex_);
  if (groups.empty() && !std::exchange(said_no_limit_, true))
    talk_.warn(fmt::format(
        "--on memory: no control group of process {} has a memory limit, so its use is not watched",
        process.pid));
  memory_.insert_or_assign(process.pid, std::move(groups));
}

void Triggers::run() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    changed_.wait_for(lock, kLookEvery, [this] { return over_; });
    lock.unlock();
    look_at_logs();
    look_at_memory();
    say_if_no_loop();
    write_due();
    lock.lock();
  }
}

void Triggers::look_at_logs() {
  for (Log& log : logs_) {
    if (const auto line = log.tail->next_match())
      note({Kind::log, clock_now(), fmt::format("{}: {}", log.file, line_words(*line)),
            fmt::format("a line in {}", base_name(log.file))});
    if (log.tail->take_refused())
      talk_.warn(fmt::format(
          "{} is another user's file now, or a file that another user may have put there. Phlox does not "
          "read it, and goes on reading the file that had this name before",
          log.file));
  }
}

void Triggers::look_at_memory() {
  if (!has(request_.conditions, Kind::memory) || clock_now() < next_memory_) return;
  next_memory_ = clock_now() + kMemoryEvery;
  std::map<process::MemoryGroup, pid_t> groups;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [pid, its] : memory_) {
      for (const process::MemoryGroup& group : its) groups.try_emplace(group, pid);
    }
  }
  double least = 1;
  for (const Condition& one : request_.conditions) {
    if (one.kind == Kind::memory) least = std::min(least, one.share);
  }
  std::erase_if(is_full_, [&](const auto& one) { return !groups.contains(one.first); });
  for (const auto& [group, pid] : groups) {
    const auto use = process::read_memory_use(group);
    if (!use) continue;
    bool& full = is_full_[group];
    const bool was_full = std::exchange(full, use->share() > least);
    if (full && !was_full)
      note({Kind::memory, clock_now(),
            fmt::format("the control group {} of process {} uses {} of {} ({:.0f} %)", group.folder, pid,
                        byte_words(use->used), byte_words(use->limit), 100 * use->share()),
            fmt::format("{:.0f} % of a memory limit", 100 * use->share())});
  }
}

// A stall that nobody can have is not waited for in silence.
void Triggers::say_if_no_loop() {
  if (clock_now() < no_loop_after_ || !has(request_.conditions, Kind::stall)) return;
  no_loop_after_ = std::numeric_limits<Nanoseconds>::max();
  if (!rows_->has_met_loop())
    talk_.warn(
        "--on stall: so far no recorded program runs an event loop that phlox knows (asyncio, trio, gevent "
        "and others), and only these can stall");
}

// Of all functions of the first incident that is over, or it has waited for them long enough.
bool Triggers::has_names() {
  if (names_ == nullptr || names_->named_until() > due_->since) return true;
  names_->hurry();
  return clock_now() - due_->since > kNamesPatience;
}

void Triggers::write_due() {
  if (!due_) {
    const Nanoseconds now = clock_now();
    const std::lock_guard lock(mutex_);
    auto incident = plan_.take_due(now - TriggerRequest::kRowsSettled);
    if (!incident) return;
    const Nanoseconds since = incident->to + TriggerRequest::kRowsSettled;
    due_ = {*std::move(incident), since};
  }
  if (!has_names()) return;
  files_.write(due_->incident, recording_);
  due_.reset();
}

void Triggers::finish(const std::string& recording) {
  port_.reset();
  look_at_logs();  // what was written before the end
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  const auto take = [this] {
    auto due = std::exchange(due_, std::nullopt);
    return due ? std::optional(std::move(due->incident)) : plan_.take_rest();
  };
  while (const auto incident = take()) {
    if (recording.empty()) return talk_.warn("an incident is not written: there is no recording of it");
    files_.write(*incident, recording);
  }
}

}  // namespace phlox::cli
