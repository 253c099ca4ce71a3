#include "phlox/sampler/capture/state_words.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "phlox/base/load.h"

namespace phlox::sampler {
namespace {

// A freed state may be in unmapped memory, which ends a read of many states.
constexpr size_t kFailedReadsAhead = 16;
// PyThreadState._status.active, "currently in use" (3.12 and later: Include/cpython/pystate.h).
constexpr uint32_t kActive = 1U << 4;

}  // namespace

StateReader::StateReader(const python::Layout& layout, memory::RemoteMemory& memory, Snapshot& snapshot)
    : layout_(layout), memory_(memory), snapshot_(snapshot) {
  const auto& thread = layout_.thread;
  from_ = *thread.next;
  to_ = from_ + sizeof(uint64_t);
  const auto hold = [this](const auto& field, size_t bytes) {
    if (!field.present()) return;
    from_ = std::min<uint32_t>(from_, *field);
    to_ = std::max<uint32_t>(to_, *field + static_cast<uint32_t>(bytes));
  };
  hold(thread.interp, sizeof(uint64_t));
  hold(thread.thread_id, sizeof(uint64_t));
  hold(thread.native_thread_id, sizeof(uint64_t));
  hold(thread.status, sizeof(uint32_t));
  bytes_.resize(size());
}

StateWords StateReader::parse(const std::byte* bytes) const {
  const auto word = [&](const auto& field) {
    return field.present() ? load<uint64_t>(bytes + (*field - from_)) : 0;
  };
  StateWords words;
  words.next = RemoteAddress(word(layout_.thread.next));
  words.interp = word(layout_.thread.interp);
  words.python_id = word(layout_.thread.thread_id);
  words.native_id = word(layout_.thread.native_thread_id);
  if (layout_.thread.status.present())
    words.active = (load<uint32_t>(bytes + (*layout_.thread.status - from_)) & kActive) != 0;
  return words;
}

void StateReader::read_ahead(std::span<const RemoteAddress> states) {
  ahead_.clear();
  const size_t at_once = std::min(states.size(), memory::RemoteMemory::kMaxRanges);
  bytes_.resize(std::max(bytes_.size(), at_once * size()));
  std::vector<memory::Range> ranges;
  for (size_t failed = 0; !states.empty() && failed < kFailedReadsAhead;) {
    ranges.clear();
    for (const RemoteAddress state : states.first(std::min(states.size(), at_once)))
      ranges.push_back({state + from_, std::span(bytes_).subspan(ranges.size() * size(), size())});
    const size_t got = memory_.read(ranges);
    for (size_t i = 0; i < got; ++i) ahead_[states[i].value] = parse(ranges[i].into.data());
    const bool all = got == ranges.size();
    if (!all) ++failed;
    states = states.subspan(all ? got : got + 1);
  }
}

bool StateReader::read(RemoteAddress state, bool from_copy, StateWords& words) {
  if (from_copy) {
    const std::byte* bytes = snapshot_.find(state + from_, size());
    if (bytes != nullptr) words = parse(bytes);
    return bytes != nullptr;
  }
  if (const auto found = ahead_.find(state.value); found != ahead_.end()) {
    words = found->second;
    return true;
  }
  if (!memory_.read(state + from_, std::span(bytes_).first(size()))) return false;
  words = parse(bytes_.data());
  return true;
}

}  // namespace phlox::sampler
