#include "phlox/cli/agent_output.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/exporters/otlp.h"
#include "phlox/exporters/parca.h"
#include "phlox/exporters/pyroscope.h"
#include "phlox/push/gzip.h"
#include "phlox/view/native_frames.h"

namespace phlox::cli {
namespace {

// RFC 9562, version 4.
std::string new_id() {
  std::string id(16, '\0');
  if (::getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) {
    std::random_device random;
    for (char& byte : id) byte = static_cast<char>(random());
  }
  id[6] = static_cast<char>((id[6] & 0x0f) | 0x40);
  id[8] = static_cast<char>((id[8] & 0x3f) | 0x80);
  return id;
}

std::string new_uuid() {
  std::string text;
  const std::string id = new_id();
  for (size_t i = 0; i < id.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(id[i]));
  }
  return text;
}

// FNV-1a: a name that is the same in the next run.
std::string folder_of(const push::Target& target) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : target.url) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{}-{:016x}", push::protocol_name(target.protocol), hash);
}

}  // namespace

Result<std::unique_ptr<AgentOutput>> AgentOutput::open(Options options, Talk& talk) {
  std::unique_ptr<AgentOutput> output(new AgentOutput(std::move(options), talk));
  const uint64_t share = output->options_.buffer / output->options_.targets.size();
  for (const push::Target& target : output->options_.targets) {
    auto outbox = push::Outbox::open(output->options_.state + "/" + folder_of(target), share);
    if (!outbox) return fail(outbox);
    auto lane = std::make_unique<Lane>();
    lane->target = target;
    lane->outbox = *std::move(outbox);
    lane->client = http::make_client(output->options_.http, &output->give_up_at_);
    const auto left = lane->outbox->counts();
    if (left.items > 0)
      talk.note(fmt::format("{} left by an earlier run will be sent to {}",
                            left.items == 1 ? "one push" : count_words(left.items) + " pushes",
                            target.shown));
    output->lanes_.push_back(std::move(lane));
  }
  return output;
}

AgentOutput::~AgentOutput() {
  end_encoder();
  // Requests end now; the destructors of the threads wait for that.
  give_up_at_ = 1;
  for (const auto& lane : lanes_) lane->sender.reset();
}

void AgentOutput::start() {
  for (const auto& lane : lanes_) {
    auto sender = std::make_unique<push::Sender>(
        lane->target, *lane->outbox, *lane->client,
        push::Sender::Notes{[this](const std::string& text, const std::string& hint) {
                              talk_.warn(hint.empty() ? text : fmt::format("{}; {}", text, hint));
                            },
                            [this](const std::string& text) { talk_.note(text); }},
        [random = std::mt19937(std::random_device()())]() mutable {
          return std::uniform_real_distribution<double>(0, 1)(random);
        });
    lane->sender = std::make_unique<push::SenderThread>(std::move(sender));
  }
  encoder_ = std::thread([this] { encode(); });
}

void AgentOutput::give(profile::Profile interval) {
  {
    const std::lock_guard lock(mutex_);
    interval_ = std::move(interval);
    busy_ = true;
  }
  changed_.notify_all();
}

void AgentOutput::encode() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return interval_ || over_; });
    if (!interval_) return;
    profile::Profile interval = *std::exchange(interval_, std::nullopt);
    lock.unlock();
    view::show_native_frames(interval, {});
    for (const auto& lane : lanes_) put(*lane, interval);
    lock.lock();
    busy_ = false;
  }
}

Result<std::string> AgentOutput::body_for(const push::Target& target,
                                          const profile::Profile& interval) const {
  view::Choices choices;
  choices.by.line = true;
  choices.show = view::Show::everything;
  if (target.protocol == push::Protocol::pyroscope)
    return exporters::pyroscope_message(interval, choices, {new_uuid, options_.rate_hz});
  if (target.protocol == push::Protocol::parca)
    return exporters::parca_message(interval, choices, options_.rate_hz);
  const auto message = exporters::otlp_message(interval, choices, {new_id, true});
  if (!message) return fail(message);
  return message->empty() ? *message : push::gzip(*message);
}

void AgentOutput::put(Lane& lane, const profile::Profile& interval) {
  const auto body = body_for(lane.target, interval);
  if (!body) return talk_.error(body.error());
  if (body->empty()) return;
  const bool kept = lane.outbox->put(*body);
  const int error = errno;
  if (!kept && !lane.disk_refused)
    talk_.warn(fmt::format("cannot store profiles for {} in {}: {}; they are dropped", lane.target.shown,
                           lane.outbox->folder(), std::strerror(error)));
  lane.disk_refused = !kept;
  const auto counts = lane.outbox->counts();
  if (kept && counts.no_room > 0 && counts.no_room >= lane.say_no_room_at) {
    talk_.warn(fmt::format(
        "the buffer for {} is full: {} dropped so far, the oldest first; a larger --buffer keeps more",
        lane.target.shown, counts.no_room == 1 ? "one push" : count_words(counts.no_room) + " pushes"));
    lane.say_no_room_at = 10 * counts.no_room;
  }
  if (lane.sender) lane.sender->notify();
}

void AgentOutput::end_encoder() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (encoder_.joinable()) encoder_.join();
}

void AgentOutput::finish(Nanoseconds patience) {
  end_encoder();
  const Nanoseconds deadline = clock_now() + patience;
  give_up_at_ = deadline;
  for (const auto& lane : lanes_) {
    if (lane->sender) lane->sender->finish(deadline);
  }
  for (const auto& lane : lanes_) {
    if (lane->sender) lane->sender->wait();
    if (const auto left = lane->outbox->counts(); left.items > 0)
      talk_.note(fmt::format("{} of profiles for {} stay in {} until the next start", byte_words(left.bytes),
                             lane->target.shown, lane->outbox->folder()));
  }
}

std::vector<AgentOutput::TargetCounts> AgentOutput::counts() const {
  std::vector<TargetCounts> all;
  for (const auto& lane : lanes_) {
    TargetCounts one;
    one.shown = lane->target.shown;
    one.outbox = lane->outbox->counts();
    if (lane->sender) {
      const auto& sent = lane->sender->sender().counts();
      one.sent = sent.sent;
      one.sent_bytes = sent.bytes;
      one.failures = sent.failures;
      one.rejected = sent.rejected;
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace phlox::cli
