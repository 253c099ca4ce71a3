#include "phlox/push/sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "phlox/push/divide.h"
#include "phlox/push/grpc.h"

namespace phlox::push {
namespace {

// The repeated field that has what is sent: series of Parca, resources of OTLP, series of Pyroscope.
uint32_t carried_field(Protocol protocol) {
  return protocol == Protocol::parca ? 2 : 1;
}

std::vector<Header> headers_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::otlp:
      return {{"Content-Type", "application/x-protobuf"}, {"Content-Encoding", "gzip"}};
    case Protocol::otlp_grpc:
      return {{"Content-Type", "application/grpc"}, {"TE", "trailers"}, {"grpc-encoding", "gzip"}};
    case Protocol::pyroscope:
      return {{"Content-Type", "application/proto"}, {"Connect-Protocol-Version", "1"}};
    case Protocol::parca:
      return {{"Content-Type", "application/grpc"}, {"TE", "trailers"}};
  }
  return {};
}

Answer send_body(http::Client& client, const Target& target, std::string_view body) {
  http::Request request;
  request.url = target.url;
  request.headers = headers_of(target.protocol);
  request.headers.insert(request.headers.end(), target.headers.begin(), target.headers.end());
  request.body = body;
  if (!is_grpc(target.protocol)) return client.send(request);
  const std::string frame = grpc_frame(body, target.protocol == Protocol::otlp_grpc);
  request.body = frame;
  request.http2 = true;
  request.keep_headers = kGrpcHeaders;
  return client.send(request);
}

}  // namespace

std::optional<Nanoseconds> Sender::step(Nanoseconds now) {
  if (now < due_) return due_ - now;
  const auto item = outbox_.first();
  if (!item) return {};
  const Verdict verdict = verdict_on(send_body(client_, target_, item->body), target_);
  failing_ = verdict.action == Action::again;
  if (verdict.action != Action::done) ++counts_.failures;
  say(verdict);
  switch (verdict.action) {
    case Action::done:
      outbox_.remove(item->number);
      ++counts_.sent;
      counts_.bytes += item->body.size();
      counts_.rejected += verdict.rejected;
      break;
    case Action::again: {
      const Nanoseconds asked = std::min(verdict.retry_after.value_or(0), Backoff::kMostAsked);
      due_ = now + std::max(backoff_.next(random_()), asked);
      return due_ - now;
    }
    case Action::divide:
      divide(*item);
      break;
    case Action::drop:
      outbox_.drop(item->number);
      break;
  }
  backoff_.reset();
  return 0;
}

void Sender::divide(const Outbox::Item& item) {
  const auto halves = divided(item.body, carried_field(target_.protocol));
  if (!halves || !outbox_.replace(item.number, halves->first, halves->second)) outbox_.drop(item.number);
}

void Sender::say(const Verdict& verdict) {
  // The server accepts the halves, so this would be reported for every interval.
  if (verdict.action == Action::divide) {
    if (!std::exchange(said_too_large_, true) && notes_.warn) notes_.warn(verdict.message, verdict.hint);
    return;
  }
  if (verdict.message.empty()) {
    if (!said_.empty() && notes_.note) notes_.note(fmt::format("{} accepts profiles again", target_.shown));
    said_.clear();
  } else if (verdict.key != said_) {
    said_ = verdict.key;
    if (notes_.warn) notes_.warn(verdict.message, verdict.hint);
  }
}

SenderThread::SenderThread(std::unique_ptr<Sender> sender)
    : sender_(std::move(sender)), thread_([this] { run(); }) {}

SenderThread::~SenderThread() {
  finish(0);
  wait();
}

void SenderThread::wait() {
  if (thread_.joinable()) thread_.join();
}

void SenderThread::notify() {
  {
    const std::lock_guard lock(mutex_);
    news_ = true;
  }
  changed_.notify_one();
}

void SenderThread::finish(Nanoseconds deadline) {
  {
    const std::lock_guard lock(mutex_);
    deadline_ = deadline_ ? std::min(*deadline_, deadline) : deadline;
  }
  changed_.notify_one();
}

void SenderThread::run() {
  std::unique_lock lock(mutex_);
  bool hurried = false;
  while (true) {
    if (deadline_) {
      if (clock_now() >= *deadline_ || (hurried && sender_->is_failing())) return;
      if (!hurried) sender_->hurry();
      hurried = true;
    }
    news_ = false;
    lock.unlock();
    const auto wait = sender_->step(clock_now());
    lock.lock();
    if (wait && *wait == 0) continue;
    if (deadline_ && hurried) return;
    const auto is_due = [&] { return deadline_ || (!wait && news_); };
    if (wait) {
      changed_.wait_for(lock, std::chrono::nanoseconds(*wait), is_due);
    } else {
      changed_.wait(lock, is_due);
    }
  }
}

}  // namespace phlox::push
