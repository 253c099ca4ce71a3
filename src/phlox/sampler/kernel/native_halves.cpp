#include "phlox/sampler/kernel/native_halves.h"

#include <algorithm>
#include <optional>

#include "phlox/base/load.h"
#include "phlox/base/machine.h"

namespace phlox::sampler {
namespace {

// For some thousand threads that are blocked deep in their stacks.
constexpr size_t kMostHalvesKept = size_t{64} << 20;
// More nested evaluations than a copied stack holds.
constexpr size_t kMostHalfEvaluations = 4096;

struct Link {
  uint64_t cframe = 0, current = 0;
};

// Reads a word of the copied stack, by its address in the target.
bool word_at(const KernelNative& native, uint64_t address, uint64_t& word) {
  const auto stack = native.stack();
  const uint64_t at = address - native.half.stack_start;
  if (at >= stack.size() || stack.size() - at < sizeof word) return false;
  word = load<uint64_t>(stack, at);
  return true;
}

// The chain of CFrames, innermost first. False: the rest of it was not copied.
bool follow_cframes(const python::Layout& layout, const KernelNative& native, uint64_t state,
                    std::vector<Link>& chain) {
  const bool has_current = layout.cframe.current_frame.present();
  // The last one is in the thread state itself (capture/stack_reader.cpp: find_anchors).
  for (uint64_t at = native.half.cframe; at - state >= *layout.thread.size;) {
    Link link{at, 0};
    uint64_t previous = 0;
    if (chain.size() == kMostHalfEvaluations || !word_at(native, at + *layout.cframe.previous, previous) ||
        (has_current && !word_at(native, at + *layout.cframe.current_frame, link.current))) {
      return false;
    }
    chain.push_back(link);
    at = previous;
  }
  return true;
}

constexpr size_t kLeafEnd = KERNEL_MAX_FRAMES / 2;

// The position of the outermost of the `inside` innermost frames; none: it is left out.
std::optional<size_t> position_of(const StackShape& shape, size_t inside) {
  if (shape.left_out > 0 && inside > kLeafEnd) {
    if (inside <= kLeafEnd + shape.left_out) return {};
    inside = inside - shape.left_out + 1;
  }
  if (inside + shape.markers > shape.locations) return {};
  return shape.locations - inside;
}

// Every frame is an evaluation of its own; CFrames do not name their frames, and are counted from the root.
void find_object_starts(const std::vector<Link>& chain, const StackShape& shape,
                        std::vector<EvaluationStart>& starts) {
  size_t from_root = 0;
  for (size_t i = shape.markers; i < shape.locations; ++i) {
    if (shape.left_out > 0 && i + kLeafEnd + 1 == shape.locations) {
      from_root += shape.left_out;
      continue;
    }
    EvaluationStart start{0, static_cast<uint32_t>(i), 0};
    if (shape.markers == 0 && from_root < chain.size())
      start.anchor = chain[chain.size() - 1 - from_root].cframe;
    starts.push_back(start);
    ++from_root;
  }
}

}  // namespace

void find_starts(const python::Layout& layout, const KernelNative& native, uint64_t state,
                 const StackShape& shape, std::vector<EvaluationStart>& starts) {
  starts.clear();
  if (state == 0) return;
  std::vector<Link> chain;
  const bool whole = native.half.cframe != 0 && follow_cframes(layout, native, state, chain);
  if (!layout.traits.interpreter_frames) {
    if (!whole) chain.clear();
    find_object_starts(chain, shape, starts);
    return;
  }
  const bool by_cframe = native.half.cframe != 0;
  const auto words = native.starts();
  auto link = chain.begin();
  for (size_t i = 0; i < native.half.starts; ++i) {
    const auto word = load<uint64_t>(words, i * sizeof(uint64_t));
    EvaluationStart start{word >> 16, 0, 0};
    if (by_cframe) {
      const auto its =
          std::find_if(link, chain.end(), [&](const Link& one) { return one.current == word >> 16; });
      start.anchor = its != chain.end() ? its->cframe : 0;
      if (its != chain.end()) link = its + 1;
    }
    const auto position = position_of(shape, word & 0xffff);
    if (!position) continue;
    start.position = static_cast<uint32_t>(*position);
    starts.push_back(start);
  }
  std::reverse(starts.begin(), starts.end());
}

void NativeHalves::take(const KernelNative& record, Registers registers) {
  if (kept_ > kMostHalvesKept) {
    halves_.clear();
    kept_ = 0;
  }
  auto& halves = halves_[static_cast<pid_t>(record.half.thread)];
  const bool away = record.half.away != 0;
  if (away && record.half.keep != 0 && halves[left].half.time == record.half.keep)
    std::swap(halves[left], halves[still]);
  Half& half = halves[away ? left : found];
  const size_t before = half.bytes.capacity();
  half.half = record.half;
  half.registers = registers;
  half.bytes.assign(record.bytes.begin(), record.bytes.end());
  kept_ += half.bytes.capacity() - before;
}

void NativeHalves::forget(pid_t thread) {
  const auto at = halves_.find(thread);
  if (at == halves_.end()) return;
  for (const Half& half : at->second) kept_ -= half.bytes.capacity();
  halves_.erase(at);
}

NativeParts NativeHalves::parts(const python::Layout& layout, const kernel_sample& sample,
                                const StackShape& shape) {
  const auto at = halves_.find(static_cast<pid_t>(sample.thread));
  if (sample.native == 0 || at == halves_.end()) return {};
  const auto& halves = at->second;
  const bool away = sample.off_since != 0;
  const Half& half = !away                                      ? halves[found]
                     : halves[still].half.time == sample.native ? halves[still]
                                                                : halves[left];
  if (half.half.time != sample.native) return {};
  KernelNative native{half.half, half.bytes};
  find_starts(layout, native, sample.stack.state, shape, starts_);
  const kernel_native& from = half.half;
  head_ = NativeHead{};
  head_.pc = from.pc;
  head_.sp = from.sp;
  head_.fp = from.fp;
  head_.lr = from.lr;
  head_.bx = from.bx;
  head_.fp_known = half.registers == Registers::all;
  head_.lr_known = head_.fp_known && kOnAarch64;
  head_.bx_known = head_.fp_known && !kOnAarch64;
  head_.stack_start = from.stack_start;
  head_.stack = from.stack & ~uint32_t{7};
  head_.groups = static_cast<uint32_t>(starts_.size());
  head_.kernel = from.kernel;
  head_.source = NativeSource::kernel;
  return {std::as_bytes(std::span(&head_, 1)), native.stack().first(head_.stack),
          std::as_bytes(std::span(starts_)), native.kernel()};
}

}  // namespace phlox::sampler
