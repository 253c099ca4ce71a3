#include "phlox/python/search/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "phlox/python/frame_walk.h"

namespace phlox::python {
namespace {

constexpr int kMostInterpreters = 4096;
constexpr int kMostThreads = 64;  // checked per interpreter

// Memory for walk_frames(): every piece is fetched on demand.
class ReadThrough {
 public:
  explicit ReadThrough(memory::RemoteMemory& memory) : memory_(memory) {}
  const std::byte* find(RemoteAddress address, size_t size) {
    auto& piece = pieces_.emplace_back(size);
    return memory_.read(address, piece) ? piece.data() : nullptr;
  }

 private:
  memory::RemoteMemory& memory_;
  std::deque<std::vector<std::byte>> pieces_;
};

bool leads_to_code(const Layout& l, RemoteAddress top, memory::RemoteMemory& memory) {
  ReadThrough reader(memory);
  std::array<RawFrame, 32> frames;
  const WalkResult walk = walk_frames(l, top, reader, frames);
  return std::any_of(frames.begin(), frames.begin() + static_cast<ptrdiff_t>(walk.count),
                     [&](const auto& frame) {
                       RemoteAddress type, name;
                       std::array<char, 5> text{};
                       return frame.code && memory.read_value(frame.code + *l.object.ob_type, type.value) &&
                              memory.read_value(type + *l.type.tp_name, name.value) &&
                              memory.read(name, std::as_writable_bytes(std::span(text))) &&
                              std::memcmp(text.data(), "code", 5) == 0;
                     });
}

// Whether frames of some threads lead to code objects. Running threads change meanwhile, hence several tries.
bool trial_walk(const Layout& l, std::span<const RemoteAddress> threads, memory::RemoteMemory& memory,
                std::string& reason) {
  constexpr int kTries = 6;
  bool any_frames = false;
  std::vector<std::byte> state(*l.thread.size);
  for (int i = 0; i < kTries; ++i) {
    for (const RemoteAddress thread : threads) {
      ReadThrough reader(memory);
      if (!memory.read(thread, state)) continue;
      bool unreadable = false;
      const RemoteAddress top = top_frame(l, state.data(), reader, unreadable);
      if (!top && !unreadable) continue;
      any_frames = true;
      if (leads_to_code(l, top, memory)) return true;
      // Or the thread was stopped while it enters an evaluation.
      const RemoteAddress outer = outer_frame(l, thread, state.data(), reader);
      if (outer && leads_to_code(l, outer, memory)) return true;
    }
    if (!any_frames) return true;  // no thread runs Python at this moment
  }
  reason = "its frames do not lead to code objects";
  return false;
}

}  // namespace

Verdict validate(const Interpreter& candidate, memory::RemoteMemory& memory, std::string& reason) {
  const Layout& l = candidate.layout;
  RemoteAddress interpreter;
  if (!memory.read_value(candidate.interpreters_head, interpreter.value)) {
    reason = "its memory cannot be read";
    return Verdict::wrong;
  }
  if (!interpreter) {
    reason = "no interpreter is up";
    return Verdict::not_up;
  }
  // The main interpreter is the oldest in the list. Without this check a thread state can pass for an
  // interpreter and vice versa: in 3.11 each has the pointer to the other at byte 16.
  std::optional<uint64_t> main;
  if (candidate.runtime && l.runtime.interpreters_main.present()) {
    main.emplace();
    if (!memory.read_value(candidate.runtime + *l.runtime.interpreters_main, *main)) {
      reason = "its memory cannot be read";
      return Verdict::wrong;
    }
  }
  std::vector<RemoteAddress> threads;
  for (int count = 0; interpreter; ++count) {
    if (main == interpreter.value) main.reset();
    if (!is_pointer(interpreter.value) || count == kMostInterpreters) {
      reason = fmt::format("the list of interpreters holds {:#x}", interpreter.value);
      return Verdict::wrong;
    }
    RemoteAddress thread, next;
    if (!memory.read_value(interpreter + *l.interpreter.threads_head, thread.value) ||
        !memory.read_value(interpreter + *l.interpreter.next, next.value)) {
      reason = "the interpreter's memory cannot be read";
      return Verdict::wrong;
    }
    for (int i = 0; thread && i < kMostThreads; ++i) {
      RemoteAddress back;
      if (!is_pointer(thread.value) || !memory.read_value(thread + *l.thread.interp, back.value) ||
          back != interpreter) {
        reason = "a thread state does not point back to its interpreter";
        return Verdict::wrong;
      }
      threads.push_back(thread);
      if (!memory.read_value(thread + *l.thread.next, thread.value)) {
        reason = "the list of thread states cannot be read";
        return Verdict::wrong;
      }
    }
    interpreter = next;
  }
  if (main) {
    reason = fmt::format("interpreters.main is {:#x}, which is not in the list of interpreters", *main);
    return Verdict::wrong;
  }
  if (threads.empty()) {
    reason = "the interpreter has no thread state";
    return Verdict::not_up;
  }
  return trial_walk(l, threads, memory, reason) ? Verdict::valid : Verdict::wrong;
}

}  // namespace phlox::python
