#include "phlox/profile/interner.h"

#include <cstring>
#include <string_view>

namespace phlox::profile {
namespace {

// Eight bytes at a time; the length is hashed first, so that "ab"+"c" and "a"+"bc" differ.
uint64_t hash_bytes(uint64_t seed, std::string_view bytes) {
  auto step = [](uint64_t h, uint64_t word) {
    h = (h ^ word) * 0x9e3779b97f4a7c15U;
    return (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9U + word;
  };
  uint64_t h = step(seed, bytes.size());
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t n = bytes.size() < 8 ? bytes.size() : 8;
    std::memcpy(&word, bytes.data(), n);
    h = step(h, word);
    bytes.remove_prefix(n);
  }
  return h;
}

}  // namespace

Interner::ContentKey Interner::content_key(const Frame& frame, uint32_t owner) {
  const uint64_t numbers[] = {
      static_cast<uint64_t>(frame.kind) | static_cast<uint64_t>(frame.role) << 8,
      static_cast<uint64_t>(static_cast<uint32_t>(frame.first_line)) << 32 |
          static_cast<uint32_t>(frame.line),
      frame.module ? frame.module->value : 0,
      frame.address,
      frame.inlined_in ? frame.inlined_in->value : 0,
      owner,
  };
  auto hash = [&](uint64_t h) {
    for (uint64_t number : numbers) h = Spread{}(h ^ number) + 0x9e3779b97f4a7c15U;
    for (const std::string* text : {&frame.function, &frame.qualified_name, &frame.file, &frame.found_by})
      h = Spread{}(hash_bytes(h, *text));
    return h;
  };
  return {hash(0x6a09e667f3bcc908U), hash(0xbb67ae8584caa73bU)};
}

FrameId Interner::too_many() {
  if (!too_many_) {
    Frame marker;
    marker.kind = FrameKind::marker;
    marker.function = marker.qualified_name = "(a function beyond those that a recording holds)";
    too_many_ = FrameId(++last_frame_);
    sink_.emit(too_many_, marker);
  }
  return too_many_;
}

FrameId Interner::frame(const Frame& frame, uint32_t owner) {
  const ContentKey key = content_key(frame, owner);
  if (const auto found = frames_by_content_.find(key); found != frames_by_content_.end())
    return found->second;
  const size_t bytes = frame.function.size() + frame.qualified_name.size() + frame.file.size();
  if (last_frame_ >= limits_.frames || name_bytes_ + bytes > limits_.name_bytes) {
    ++left_out_;
    return too_many();
  }
  name_bytes_ += bytes;
  const FrameId id(++last_frame_);
  frames_by_content_.emplace(key, id);
  sink_.emit(id, frame);
  return id;
}

FrameId Interner::new_frame() {
  return last_frame_ < limits_.frames ? FrameId(++last_frame_) : FrameId();
}

StackId Interner::stack(StackId parent, FrameId frame) {
  // A root is always added, as long as the table has room: a stack without one would be a thread without
  // Python.
  const bool full = stacks_.size() >= StackTable::kMost || (stacks_.size() >= limits_.stacks && parent);
  if (full) {
    const StackId found = stacks_.find(parent, frame);
    left_out_ += !found;
    return found ? found : parent;
  }
  const auto [id, fresh] = stacks_.add(parent, frame);
  if (fresh) sink_.emit(id, {parent, frame});
  return id;
}

StackId Interner::stack(std::span<const FrameId> frames, StackId parent) {
  for (FrameId id : frames) parent = stack(parent, id);
  return parent;
}

void Interner::stacks(std::span<const Step> steps, std::span<StackId> out) {
  for (const Step& step : steps) stacks_.prefetch(step.parent, step.frame);
  for (const Step& step : steps) stacks_.prefetch_key(step.parent, step.frame);
  for (size_t i = 0; i < steps.size(); ++i) out[i] = stack(steps[i].parent, steps[i].frame);
}

WakerId Interner::waker(const Waker& waker) {
  std::tuple key(waker.thread, waker.stack, waker.other);
  if (const auto found = wakers_.find(key); found != wakers_.end()) return found->second;
  if (wakers_.size() >= limits_.wakers) return {};
  const WakerId id(static_cast<uint32_t>(wakers_.size()) + 1);
  wakers_.emplace(std::move(key), id);
  sink_.emit(id, waker);
  return id;
}

WaitTargetId Interner::wait_target(const WaitTarget& wait_target) {
  std::tuple key(wait_target.kind, wait_target.name, wait_target.other);
  if (const auto found = wait_targets_.find(key); found != wait_targets_.end()) return found->second;
  const size_t bytes = wait_target.name.size() + wait_target.other.size();
  if (wait_targets_.size() >= limits_.wait_targets || name_bytes_ + bytes > limits_.name_bytes) return {};
  name_bytes_ += bytes;
  const WaitTargetId id(static_cast<uint32_t>(wait_targets_.size()) + 1);
  wait_targets_.emplace(std::move(key), id);
  sink_.emit(id, wait_target);
  return id;
}

}  // namespace phlox::profile
