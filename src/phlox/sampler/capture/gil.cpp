#include "phlox/sampler/capture/gil.h"

#include <cstring>

#include "phlox/base/system_call_numbers.h"

namespace phlox::sampler {
namespace {

using profile::GilState;

constexpr int64_t kFutex = system_call("futex").number(kOnAarch64);

}  // namespace

size_t Gil::ranges(Words& words, std::span<memory::Range> ranges) const {
  const python::Layout& layout = python_->layout;
  size_t count = 0;
  auto add = [&](RemoteAddress address, auto& into) {
    ranges[count++] = {address, std::as_writable_bytes(std::span(&into, 1))};
  };
  if (gil_ && layout.gil_state.last_holder.present()) {
    add(gil_ + *layout.gil_state.locked, words.locked);
    add(gil_ + *layout.gil_state.last_holder, words.last);
  } else if (python_->tstate_current) {
    add(python_->tstate_current, words.last);
  }
  return count;
}

RemoteAddress Gil::holder(Snapshot& snapshot) const {
  Words words;
  std::array<memory::Range, Words::kRanges> ranges;
  const size_t count = this->ranges(words, ranges);
  for (const memory::Range& range : std::span(ranges).first(count)) {
    const std::byte* bytes = snapshot.find(range.address, range.into.size());
    if (bytes == nullptr) return {};
    std::memcpy(range.into.data(), bytes, range.into.size());
  }
  return words.holder();
}

RemoteAddress Gil::holder_now(memory::RemoteMemory& memory) const {
  Words words;
  std::array<memory::Range, Words::kRanges> ranges;
  const size_t count = this->ranges(words, ranges);
  return memory.read(std::span(ranges).first(count)) == count ? words.holder() : RemoteAddress{};
}

GilState Gil::state_of(const process::BlockedIn* in) const {
  const python::Layout& layout = python_->layout;
  if (layout.traits.free_threaded) return GilState::not_applicable;
  if (in != nullptr && !in->running && in->number == kFutex && gil_ && layout.gil_state.size.present()) {
    // take_gil() waits on the condition variable inside the GIL's own struct (Python/ceval_gil.c).
    const uint64_t futex = in->arguments[0];
    if (futex >= gil_.value && futex - gil_.value < *layout.gil_state.size) return GilState::waits;
  }
  return GilState::none;
}

bool Gil::collecting(Snapshot& snapshot) const {
  const python::Layout& layout = python_->layout;
  if (!layout.interpreter.gc_collecting.present()) return false;
  int32_t value = 0;
  return snapshot.load(interpreter_ + *layout.interpreter.gc_collecting, value) && value == 1;
}

}  // namespace phlox::sampler
