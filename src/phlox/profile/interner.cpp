#include "phlox/profile/interner.h"

#include <functional>
#include <string_view>

namespace phlox::profile {

size_t FrameHash::operator()(const Frame& frame) const {
  // The rest rarely differs where these are equal; equality decides.
  const std::hash<std::string_view> text;
  size_t hash = text(frame.qualified_name);
  const auto mix = [&hash](size_t more) { hash = (hash ^ more) * 0x9E3779B97F4A7C15ULL; };
  mix(text(frame.file));
  mix(static_cast<uint32_t>(frame.line));
  mix(static_cast<size_t>(frame.address));
  return hash ^ hash >> 32;
}

FrameId Interner::frame(const Frame& frame) {
  const auto [at, fresh] = frames_.try_emplace(frame, FrameId(static_cast<uint32_t>(frames_.size() + 1)));
  if (fresh) sink_.put_frame(at->second, frame);
  return at->second;
}

StackId Interner::stack(StackId parent, FrameId frame) {
  const uint64_t key = uint64_t{parent.value} << 32 | frame.value;
  const auto [at, fresh] = stacks_.try_emplace(key, StackId(static_cast<uint32_t>(stacks_.size() + 1)));
  if (fresh) sink_.put_stack(at->second, Stack{parent, frame});
  return at->second;
}

}  // namespace phlox::profile
