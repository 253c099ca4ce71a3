#include "phlox/sampler/capture/native_capture.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "phlox/base/machine.h"
#include "phlox/process/ended_thread.h"

namespace phlox::sampler {
namespace {

constexpr size_t kStackPage = 4096;
// The maximum number of evaluations in one stack; the outermost ones beyond it have no native frames.
constexpr size_t kMostStarts = 4096;

uint64_t start_of(RemoteAddress sp) {
  return (sp.value - unwind::kRedZone) & ~uint64_t{7};
}

}  // namespace

NativeCapture::Held StopCapture::hold(pid_t, process::ThreadProbe& probe, unwind::Registers& registers) {
  stop_.emplace(pid_, probe, counts_);
  process::UserRegisters user;
  switch (stop_->state()) {
    case process::ThreadStop::State::stopped:
      if (stop_->read_registers(user)) break;
      stop_.reset();
      return Held::gone;
    case process::ThreadStop::State::gone:
      stop_.reset();
      return Held::gone;
    case process::ThreadStop::State::refused:
      stop_.reset();
      return Held::refused;
    case process::ThreadStop::State::signalled:
      stop_.reset();
      return Held::running;
  }
  registers = {user.pc, user.sp, user.fp, user.lr, true, kOnAarch64, !kOnAarch64, user.bx};
  return Held::yes;
}

NativeCapture::Held BlockedCapture::hold(pid_t, process::ThreadProbe& probe, unwind::Registers& registers) {
  const auto in = probe.blocked_in();
  if (!in) return Held::gone;
  last_ = *in;
  if (process::has_ended(*in)) return Held::gone;
  if (in->running || in->stack_pointer == 0) return Held::running;
  // The kernel shows only two registers; frames that need the frame pointer say so (unwinder.h).
  registers = {RemoteAddress(in->instruction_pointer), RemoteAddress(in->stack_pointer), 0, 0, false, false};
  return Held::yes;
}

uint64_t thread_control_block(std::span<const std::byte> stack, uint64_t start) {
  if constexpr (kOnAarch64) return 0;
  constexpr uint64_t kAlign = 64, kSelf = 16;
  for (uint64_t at = (start + kAlign - 1) & ~(kAlign - 1); at - start + kSelf + 8 <= stack.size();
       at += kAlign) {
    uint64_t tcb = 0, self = 0;
    std::memcpy(&tcb, stack.data() + (at - start), sizeof tcb);
    if (tcb != at) continue;
    std::memcpy(&self, stack.data() + (at - start) + kSelf, sizeof self);
    if (self == at) return at;
  }
  return 0;
}

NativeCopy::NativeCopy() : own_(new std::byte[kMostStack]) {
  starts_.reserve(256);
}

void NativeCopy::clear() {
  head_ = NativeHead{};
  starts_.clear();
}

ByteRange NativeCopy::stack_range(RemoteAddress sp, uint64_t end) {
  const uint64_t start = start_of(sp);
  if (!is_plausible(sp) || end <= start || end - start > kMostStack) return {};
  return {RemoteAddress(start), end - start};
}

bool NativeCopy::take(memory::RemoteMemory& memory, const unwind::Registers& registers, NativeSource source,
                      std::span<const uint64_t> kernel, uint64_t& end, const std::byte* have) {
  NativeHead& to = head_;
  to = NativeHead{};
  if (!is_plausible(registers.sp)) return false;
  const uint64_t start = start_of(registers.sp);
  to.pc = registers.pc.value;
  to.sp = registers.sp.value;
  to.fp = registers.fp;
  to.lr = registers.lr;
  to.fp_known = registers.fp_known;
  to.lr_known = registers.lr_known;
  to.bx = registers.bx;
  to.bx_known = registers.bx_known;
  to.kernel = static_cast<uint16_t>(std::min(kernel.size(), kMostKernelFrames));
  std::copy_n(kernel.begin(), to.kernel, kernel_.begin());
  to.source = source;
  to.stack_start = start;
  std::byte* into = own_.get();
  stack_ = into;
  if (const size_t size = stack_range(registers.sp, end).size; size > 0) {
    if (have != nullptr) stack_ = have;
    if (have != nullptr || memory.read(RemoteAddress(start), std::span(into, size))) {
      to.stack = static_cast<uint32_t>(size);
      return true;
    }
    end = 0;
  }
  // The end of the stack is not known, or the thread is on another stack (a greenlet's, a signal's): read
  // page by page, as far as there are pages.
  std::array<memory::Range, kMostStack / kStackPage + 2> ranges;
  size_t count = 0;
  for (uint64_t at = start; at < start + kMostStack;) {
    const uint64_t next = std::min((at | (kStackPage - 1)) + 1, start + kMostStack);
    ranges[count++] = {RemoteAddress(at), std::span(into + (at - start), next - at)};
    at = next;
  }
  const size_t whole = memory.read(std::span(ranges.data(), count));
  if (whole == 0) return false;
  uint64_t reached = ranges[whole - 1].address.value + ranges[whole - 1].into.size();
  if (const uint64_t block = thread_control_block({into, reached - start}, start); block != 0) {
    end = reached = block;
  } else if (whole < count) {
    end = reached;
  }
  to.stack = static_cast<uint32_t>(reached - start);
  return true;
}

void NativeCopy::add_start(const EvaluationStart& start) {
  if (starts_.size() == kMostStarts) return;
  starts_.push_back(start);
}

NativeParts NativeCopy::parts() {
  head_.groups = static_cast<uint32_t>(starts_.size());
  // `stack` is a multiple of 8 unless the stack ends within a page, which none does.
  head_.stack &= ~uint32_t{7};
  return {std::as_bytes(std::span(&head_, 1)),
          {stack_, head_.stack},
          std::as_bytes(std::span(starts_)),
          std::as_bytes(std::span(kernel_).first(head_.kernel))};
}

}  // namespace phlox::sampler
