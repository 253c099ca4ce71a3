#include "phlox/view/rooted_stacks.h"

#include "phlox/view/markers.h"

namespace phlox::view {

using namespace profile;

namespace {

uint64_t key(uint32_t root, uint32_t stack) {
  return uint64_t{root} << 32 | stack;
}

}  // namespace

uint32_t RootedStacks::root(std::string_view text) {
  const auto [at, fresh] = roots_.try_emplace(std::string(text), 0);
  if (fresh) {
    Stack row;
    row.frame = marker(std::string(text));
    at.value() = add(row);
  }
  return at->second;
}

StackId RootedStacks::of(uint32_t root, StackId stack) {
  std::vector<uint32_t> missing;
  uint32_t at = stack.value <= profile_.stacks().size() ? stack.value : 0;
  uint32_t known = root;
  if (at == 0) {
    const auto [found, fresh] = made_.try_emplace(key(root, 0), 0);
    if (fresh) {
      Stack row;
      row.parent = StackId(root);
      row.frame = marker(no_frames_label().name);
      found.value() = add(row);
    }
    return StackId(found->second);
  }
  for (; at != 0; at = parent_of(at)) {
    const auto found = made_.find(key(root, at));
    if (found != made_.end()) {
      known = found->second;
      break;
    }
    missing.push_back(at);
  }
  for (; !missing.empty(); missing.pop_back()) {
    Stack row = profile_.stacks()[missing.back() - 1];
    row.parent = StackId(known);
    known = add(row);
    made_[key(root, missing.back())] = known;
  }
  return StackId(known);
}

// Parents come before children; a row that claims otherwise is treated as a root.
uint32_t RootedStacks::parent_of(uint32_t stack) const {
  const uint32_t parent = profile_.stacks()[stack - 1].parent.value;
  return parent < stack ? parent : 0;
}

uint32_t RootedStacks::add(const Stack& row) {
  stacks_.push_back(row);
  return static_cast<uint32_t>(stacks_.size());
}

FrameId RootedStacks::marker(const std::string& text) {
  const auto [at, fresh] = markers_.try_emplace(text, static_cast<uint32_t>(profile_.frames().size() + 1));
  if (fresh) {
    Frame frame;
    frame.kind = FrameKind::marker;
    frame.function = frame.qualified_name = text;
    profile_.emit(FrameId(at->second), frame);
  }
  return FrameId(at->second);
}

}  // namespace phlox::view
