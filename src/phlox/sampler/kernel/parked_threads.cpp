#include "phlox/sampler/kernel/parked_threads.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "phlox/base/clock.h"
#include "phlox/base/load.h"
#include "phlox/process/ended_thread.h"
#include "phlox/process/process_state.h"
#include "phlox/process/thread_probe.h"
#include "phlox/python/frame_walk.h"
#include "phlox/python/line_table.h"
#include "phlox/sampler/capture/gil.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/capture/task_ids.h"
#include "phlox/sampler/kernel/wire.h"

namespace phlox::sampler {
namespace {

// Caps on the length of lists in the target's memory.
constexpr size_t kMostInterpreters = 64;
constexpr size_t kMostParked = 4096;
// For all threads: their times begin when the search is over.
constexpr Nanoseconds kLongestSearch = kSecond;
constexpr size_t kMostCounted = 65536;
// Room for the longest walk is made only for a stack that is deeper: it takes megabytes for each process.
constexpr size_t kUsualSteps = 1024;
// For C stacks: all of them go into a ring of twice that size at once.
constexpr size_t kMostNative = size_t{8} << 20;

// Serves the walk's reads: each range separately, kept until the stack is read.
class Pieces {
 public:
  explicit Pieces(memory::RemoteMemory& memory) : memory_(memory) {}
  const std::byte* find(RemoteAddress address, size_t size) {
    auto bytes = std::make_unique<std::byte[]>(size);
    if (!memory_.read(address, std::span(bytes.get(), size))) return nullptr;
    return kept_.emplace_back(std::move(bytes)).get();
  }

 private:
  memory::RemoteMemory& memory_;
  std::vector<std::unique_ptr<std::byte[]>> kept_;
};

class Search {
 public:
  Search(pid_t pid, const python::Interpreter& interpreter, memory::RemoteMemory& memory, bool native,
         std::span<const pid_t> only, const process::ThreadVariable* traces)
      : pid_(pid),
        only_(only),
        traces_(traces),
        copy_(native ? std::make_unique<NativeCopy>() : nullptr),
        interpreter_(interpreter),
        layout_(interpreter.layout),
        memory_(memory),
        ids_(pid, memory),
        entry_frames_(python::has_entry_frames(layout_)) {}

  ParkedThreads run() {
    RemoteAddress at;
    memory_.read_value(interpreter_.interpreters_head, at.value);
    for (size_t i = 0; is_plausible(at) && i < kMostInterpreters; ++i) {
      read_interpreter(at);
      if (!layout_.interpreter.next.present() ||
          !memory_.read_value(at + *layout_.interpreter.next, at.value)) {
        break;
      }
    }
    if (copy_) read_others();
    return std::move(found_);
  }

 private:
  void read_interpreter(RemoteAddress interpreter) {
    int64_t id = 0;
    if (layout_.interpreter.id.present()) memory_.read_value(interpreter + *layout_.interpreter.id, id);
    RemoteAddress gil = interpreter_.gil;
    if (layout_.traits.gil == python::GilOwner::interpreter && layout_.interpreter.ceval_gil.present())
      memory_.read_value(interpreter + *layout_.interpreter.ceval_gil, gil.value);
    const Gil lock(interpreter_, interpreter, gil);
    RemoteAddress state;
    memory_.read_value(interpreter + *layout_.interpreter.threads_head, state.value);
    for (size_t i = 0; is_plausible(state) && i < kMostCounted; ++i) {
      if (i < kMostParked && (!until_ || clock_now() < *until_)) {
        look_at(state, id, lock);
        // Starts after the first one, which lists the ids of all threads.
        if (!until_) until_ = clock_now() + kLongestSearch;
      } else {
        ++found_.not_read;
      }
      if (!memory_.read_value(state + *layout_.thread.next, state.value)) break;
    }
  }

  void look_at(RemoteAddress state, int64_t interpreter, const Gil& lock) {
    ParkedThreads::Thread thread;
    uint64_t native_id = 0;
    if (!memory_.read_value(state + *layout_.thread.thread_id, thread.python_id)) return;
    if (layout_.thread.native_thread_id.present())
      memory_.read_value(state + *layout_.thread.native_thread_id, native_id);
    thread.tid = ids_.find(thread.python_id, native_id).tid;
    if (!only_.empty() && std::find(only_.begin(), only_.end(), thread.tid) == only_.end()) return;
    thread.interpreter = interpreter;
    seen_.insert(thread.tid);
    // One thread state per thread: the newest interpreter's comes first, and is the current one.
    if (thread.tid == 0 || parked_.contains(thread.tid)) return;
    process::ThreadProbe probe(pid_, thread.tid);
    const auto before = probe.schedstat();
    const auto in = probe.blocked_in();
    if (!before || before->off() || !in || in->running || process::has_ended(*in)) return;
    thread.system_call = static_cast<int16_t>(in->number);
    thread.waits_for = process::waits_for(*in, memory_);
    thread.gil = lock.state_of(&*in);
    const size_t codes = found_.codes.size();
    thread.state = state.value;
    const bool read = read_stack(state, thread);
    if (read && copy_) read_native(probe, thread);
    if (read) thread.trace = read_trace(thread.python_id);
    const auto after = probe.schedstat();
    if (read && after && unmoved(*before, *after)) {
      parked_.insert(thread.tid);
      found_.threads.push_back(std::move(thread));
      return;
    }
    found_.codes.resize(codes);
    std::erase_if(numbers_, [&](const auto& one) { return one.second >= codes; });
  }

  bool read_stack(RemoteAddress state, ParkedThreads::Thread& thread) {
    Pieces pieces(memory_);
    const std::byte* bytes = pieces.find(state, *layout_.thread.size);
    if (bytes == nullptr) return false;
    bool unreadable = false;
    const RemoteAddress top = python::top_frame(layout_, bytes, pieces, unreadable);
    if (unreadable) return false;
    python::WalkResult walk;
    for (const size_t most : {kUsualSteps, size_t{KERNEL_MOST_STEPS}}) {
      if (frames_.size() < most) frames_.resize(most);
      walk = python::walk_frames(layout_, top, pieces, std::span(frames_).first(most));
      if (walk.end != python::WalkEnd::full) break;
    }
    switch (walk.end) {
      case python::WalkEnd::base:
      case python::WalkEnd::empty:
        break;
      case python::WalkEnd::detached:
        thread.quality = profile::Quality::detached;
        break;
      case python::WalkEnd::full:
        thread.quality = profile::Quality::cut;
        break;
      default:
        return false;
    }
    if (copy_) note_starts(std::span(frames_).first(walk.count));
    const auto begin = frames_.begin();
    const auto end = std::remove_if(begin, begin + static_cast<ptrdiff_t>(walk.count),
                                    [](const python::RawFrame& frame) { return !frame.code; });
    const auto count = static_cast<size_t>(end - begin);
    constexpr size_t kHalf = KERNEL_MAX_FRAMES / 2;
    const bool rootless = walk.end == python::WalkEnd::full;
    if (!rootless && count > KERNEL_MAX_FRAMES) {
      thread.left_out = count - KERNEL_MAX_FRAMES;
      thread.quality = profile::Quality::cut;
    }
    for (size_t i = 0; i < (rootless ? std::min(count, kHalf) : count); ++i) {
      if (i >= kHalf && i < kHalf + thread.left_out) continue;
      if (!append(frames_[i], pieces, thread)) return false;
    }
    return true;
  }

  bool append(const python::RawFrame& frame, Pieces& pieces, ParkedThreads::Thread& thread) {
    const auto [known, fresh] = numbers_.try_emplace(frame.code.value, found_.codes.size());
    if (fresh) {
      auto capture = std::make_unique<python::CodeCapture>();
      if (!python::capture_code(layout_, memory_, frame.code, *capture)) {
        numbers_.erase(known);
        return false;
      }
      found_.codes.push_back(std::move(capture));
    }
    const python::CodeCapture& code = *found_.codes[known->second];
    const RemoteAddress bytecode =
        python::bytecode_of_frame(layout_, frame.frame, frame.code, code.first_instruction, pieces);
    if (!bytecode) return false;
    thread.frames.push_back(
        {known->second, python::instruction_offset(layout_.traits, bytecode, frame.instruction)});
    return true;
  }

  std::optional<profile::TraceIds> read_trace(uint64_t self) {
    if (traces_ == nullptr) return {};
    const auto context = process::read_thread_context(
        *traces_, self,
        [this](RemoteAddress at, std::span<std::byte> into) { return memory_.read(at, into); });
    return context ? std::optional(profile::TraceIds{context->trace, context->span}) : std::nullopt;
  }

  // Threads that run no Python.
  void read_others() {
    for (const process::ThreadName& one : process::read_threads(pid_)) {
      if (found_.threads.size() >= kMostParked) return;
      if (seen_.count(one.tid) != 0) continue;
      ParkedThreads::Thread thread;
      thread.tid = one.tid;
      process::ThreadProbe probe(pid_, one.tid);
      const auto stat = probe.stat();
      if (!stat || process::is_kernel_worker(stat->flags)) continue;
      const auto before = probe.schedstat();
      const auto in = probe.blocked_in();
      if (!before || before->off() || !in || in->running) continue;
      thread.system_call = static_cast<int16_t>(in->number);
      thread.waits_for = process::waits_for(*in, memory_);
      thread.gil = profile::GilState::not_applicable;
      starts_.clear();
      read_native(probe, thread);
      const auto after = probe.schedstat();
      if (thread.native && after && unmoved(*before, *after)) found_.threads.push_back(std::move(thread));
    }
  }

  // Like note_start() in native.bpf.h.
  void note_starts(std::span<const python::RawFrame> frames) {
    starts_.clear();
    uint64_t inner = 0, inside = 0;
    for (const python::RawFrame& frame : frames) {
      if (inner == 0) inner = frame.frame.value;
      if (frame.code) ++inside;
      if (!frame.entry || (!entry_frames_ && !frame.code) || starts_.size() == KERNEL_MAX_STARTS) continue;
      starts_.push_back((entry_frames_ ? frame.frame.value : inner) << 16 | inside);
      inner = 0;
    }
  }

  void read_native(process::ThreadProbe& probe, ParkedThreads::Thread& thread) {
    unwind::Registers registers;
    uint64_t end = 0;
    if (native_bytes_ >= kMostNative ||
        BlockedCapture().hold(thread.tid, probe, registers) != NativeCapture::Held::yes ||
        !copy_->take(memory_, registers, NativeSource::syscall, {}, end)) {
      return;
    }
    const auto parts = copy_->parts();
    const auto head = load<NativeHead>(parts.head, 0);
    kernel_native half{};
    half.thread = static_cast<uint32_t>(thread.tid);
    half.away = 1;
    half.time = static_cast<uint64_t>(clock_now());
    half.pc = head.pc;
    half.sp = head.sp;
    half.stack_start = head.stack_start;
    half.starts = static_cast<uint16_t>(starts_.size());
    half.stack = static_cast<uint32_t>(parts.stack.size());
    if (thread.state != 0 && !entry_frames_ && layout_.thread.cframe.present() &&
        layout_.cframe.previous.present())
      memory_.read_value(RemoteAddress(thread.state) + *layout_.thread.cframe, half.cframe);
    const auto words = std::as_bytes(std::span(starts_));
    thread.native_bytes.assign(words.begin(), words.end());
    thread.native_bytes.insert(thread.native_bytes.end(), parts.stack.begin(), parts.stack.end());
    thread.native = half;
    native_bytes_ += thread.native_bytes.size();
  }

  pid_t pid_;
  std::span<const pid_t> only_;
  const process::ThreadVariable* traces_;
  std::unique_ptr<NativeCopy> copy_;
  size_t native_bytes_ = 0;
  std::unordered_set<pid_t> seen_;  // threads that run Python, parked or not
  std::unordered_set<pid_t> parked_;
  std::optional<Nanoseconds> until_;
  const python::Interpreter& interpreter_;
  const python::Layout& layout_;
  memory::RemoteMemory& memory_;
  TaskIds ids_;
  // An evaluation begins with a frame of its own.
  const bool entry_frames_;
  ParkedThreads found_;
  std::vector<python::RawFrame> frames_;
  std::vector<uint64_t> starts_;                  // kernel_native's
  std::unordered_map<uint64_t, size_t> numbers_;  // into found_.codes, by address
};

}  // namespace

ParkedThreads find_parked_threads(pid_t pid, const python::Interpreter& interpreter,
                                  memory::RemoteMemory& memory, bool native, std::span<const pid_t> only,
                                  const process::ThreadVariable* traces) {
  return Search(pid, interpreter, memory, native, only, traces).run();
}

}  // namespace phlox::sampler
