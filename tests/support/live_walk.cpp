#include "support/live_walk.h"

namespace phlox::test {

const std::byte* FetchedMemory::find(RemoteAddress address, size_t size) {
  auto [at, fresh] = pieces_.try_emplace({address.value, size}, size);
  if (fresh && !memory_.read(address, std::span(at->second))) {
    pieces_.erase(at);
    return nullptr;
  }
  return at->second.data();
}

std::vector<LiveThread> live_threads(const python::Interpreter& interpreter, memory::RemoteMemory& memory) {
  constexpr size_t kMostThreads = 1000, kMostFrames = 50'000;
  const python::Layout& layout = interpreter.layout;
  std::vector<LiveThread> threads;
  uint64_t state = 0, at = 0;
  if (!memory.read_value(interpreter.interpreters_head, state)) return threads;
  if (!memory.read_value(RemoteAddress(state) + *layout.interpreter.threads_head, at)) return threads;
  std::vector<std::byte> bytes(*layout.thread.size);
  while (at != 0 && threads.size() < kMostThreads && memory.read(RemoteAddress(at), std::span(bytes))) {
    LiveThread thread;
    thread.state = RemoteAddress(at);
    thread.python_id = load<uint64_t>(bytes.data() + *layout.thread.thread_id);
    FetchedMemory fetched(memory);
    bool unreadable = false;
    const RemoteAddress top = python::top_frame(layout, bytes.data(), fetched, unreadable);
    thread.frames.resize(kMostFrames);
    thread.walk = python::walk_frames(layout, top, fetched, thread.frames);
    if (unreadable) thread.walk.end = python::WalkEnd::unreadable;
    thread.frames.resize(thread.walk.count);
    at = load<uint64_t>(bytes.data() + *layout.thread.next);
    threads.push_back(std::move(thread));
  }
  return threads;
}

}  // namespace phlox::test
