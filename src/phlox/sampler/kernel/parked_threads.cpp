#include "phlox/sampler/kernel/parked_threads.h"

#include <algorithm>
#include <unordered_map>

#include "phlox/python/frame_walk.h"
#include "phlox/python/line_table.h"
#include "phlox/sampler/capture/gil.h"
#include "phlox/sampler/capture/task_ids.h"
#include "phlox/sampler/kernel/wire.h"
#include "phlox/target/thread_probe.h"

namespace phlox::sampler {
namespace {

// Caps on what another process's lists may claim.
constexpr size_t kMostInterpreters = 64;
constexpr size_t kMostThreads = 4096;

// As the walk asks for bytes: each range by itself, kept until the stack is read.
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
  Search(pid_t pid, const python::Interpreter& interpreter, memory::RemoteMemory& memory)
      : pid_(pid),
        interpreter_(interpreter),
        layout_(interpreter.layout),
        memory_(memory),
        ids_(pid, memory) {}

  ParkedThreads run() {
    RemoteAddress at;
    memory_.read_value(interpreter_.interpreters_head, at.value);
    for (size_t i = 0; is_plausible(at) && i < kMostInterpreters; ++i) {
      look_at_interpreter(at);
      if (!layout_.interpreter.next.present() ||
          !memory_.read_value(at + *layout_.interpreter.next, at.value)) {
        break;
      }
    }
    return std::move(found_);
  }

 private:
  void look_at_interpreter(RemoteAddress interpreter) {
    int64_t id = 0;
    if (layout_.interpreter.id.present()) memory_.read_value(interpreter + *layout_.interpreter.id, id);
    RemoteAddress gil = interpreter_.gil;
    if (layout_.traits.gil == python::GilOwner::interpreter && layout_.interpreter.ceval_gil.present())
      memory_.read_value(interpreter + *layout_.interpreter.ceval_gil, gil.value);
    const Gil lock(interpreter_, interpreter, gil);
    RemoteAddress state;
    memory_.read_value(interpreter + *layout_.interpreter.threads_head, state.value);
    for (size_t i = 0; is_plausible(state) && i < kMostThreads; ++i) {
      look_at(state, id, lock);
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
    thread.interpreter = interpreter;
    // One thread state a thread: the newest interpreter's comes first, and is the one that it is in.
    if (thread.tid == 0 || std::any_of(found_.threads.begin(), found_.threads.end(),
                                       [&](const auto& other) { return other.tid == thread.tid; })) {
      return;
    }
    target::ThreadProbe probe(pid_, thread.tid);
    const auto before = probe.schedstat();
    const auto in = probe.blocked_in();
    if (!before || before->off() || !in || in->running) return;
    thread.system_call = static_cast<int16_t>(in->number);
    thread.gil = lock.state_of(&*in);
    const size_t codes = found_.codes.size();
    const bool read = read_stack(state, thread);
    const auto after = probe.schedstat();
    if (read && after && unmoved(*before, *after)) {
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
    frames_.resize(KERNEL_MOST_STEPS);
    const auto walk = python::walk_frames(layout_, top, pieces, std::span(frames_));
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

  pid_t pid_;
  const python::Interpreter& interpreter_;
  const python::Layout& layout_;
  memory::RemoteMemory& memory_;
  TaskIds ids_;
  ParkedThreads found_;
  std::vector<python::RawFrame> frames_;
  std::unordered_map<uint64_t, size_t> numbers_;  // into found_.codes, by address
};

}  // namespace

ParkedThreads find_parked_threads(pid_t pid, const python::Interpreter& interpreter,
                                  memory::RemoteMemory& memory) {
  return Search(pid, interpreter, memory).run();
}

}  // namespace phlox::sampler
