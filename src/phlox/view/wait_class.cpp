#include "phlox/view/wait_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "phlox/view/known_waits.h"
#include "phlox/view/markers.h"
#include "phlox/view/system_calls.h"

namespace phlox::view {

using namespace profile;

namespace {

struct FunctionThatWaits {
  std::string_view file;      // how it ends
  std::string_view function;  // "": all functions of that file
  WaitClass waits;
};

// If several are on the stack, the outermost is the most precise: Queue.get calls Condition.wait.
constexpr FunctionThatWaits kFunctions[] = {
    {"/threading.py", "wait", WaitClass::condition},
    {"/threading.py", "acquire", WaitClass::semaphore},
    {"/threading.py", "join", WaitClass::thread},
    {"/threading.py", "_wait_for_tstate_lock", WaitClass::thread},
    {"/threading.py", "_shutdown", WaitClass::thread},
    {"/queue.py", "get", WaitClass::queue},
    {"/queue.py", "put", WaitClass::queue},
    {"/queue.py", "join", WaitClass::queue},
    {"/concurrent/futures/thread.py", "_worker", WaitClass::queue},
    {"/concurrent/futures/_base.py", "result", WaitClass::future},
    {"/concurrent/futures/_base.py", "exception", WaitClass::future},
    {"/concurrent/futures/_base.py", "wait", WaitClass::future},
    {"/concurrent/futures/_base.py", "as_completed", WaitClass::future},
    {"/multiprocessing/queues.py", "get", WaitClass::queue},
    {"/multiprocessing/queues.py", "put", WaitClass::queue},
    {"/multiprocessing/queues.py", "_feed", WaitClass::queue},
    {"/multiprocessing/pool.py", "get", WaitClass::future},
    {"/multiprocessing/pool.py", "wait", WaitClass::future},
    {"/multiprocessing/synchronize.py", "__enter__", WaitClass::lock},
    {"/multiprocessing/connection.py", "_recv", WaitClass::pipe},
    {"/multiprocessing/connection.py", "_send", WaitClass::pipe},
    {"/multiprocessing/connection.py", "recv_bytes", WaitClass::pipe},
    {"/multiprocessing/connection.py", "_recv_bytes", WaitClass::pipe},
    {"/multiprocessing/popen_fork.py", "", WaitClass::child},
    {"/multiprocessing/popen_forkserver.py", "", WaitClass::child},
    {"/subprocess.py", "", WaitClass::child},
    {"/socket.py", "", WaitClass::socket},
    {"/ssl.py", "", WaitClass::socket},
    {"/http/client.py", "", WaitClass::socket},
    {"/selectors.py", "select", WaitClass::poll},
};

// Library files: their functions are neither the reason of a wait nor its waker.
constexpr std::string_view kLibraries[] = {"/threading.py",
                                           "/queue.py",
                                           "/socket.py",
                                           "/ssl.py",
                                           "/selectors.py",
                                           "/subprocess.py",
                                           "/asyncio/",
                                           "/concurrent/futures/_base.py",
                                           "/concurrent/futures/thread.py",
                                           "/multiprocessing/",
                                           "/http/client.py"};

struct KnownCalls {
  WaitClass waits;
  std::string_view names;  // each between blanks
};
constexpr KnownCalls kCalls[] = {
    {WaitClass::lock, " futex futex_waitv flock semop semtimedop "},
    {WaitClass::sleep, " nanosleep clock_nanosleep pause rt_sigsuspend rt_sigtimedwait "},
    {WaitClass::child, " wait4 waitid vfork "},
    {WaitClass::socket, " accept accept4 connect sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg "},
    {WaitClass::stream, " read write readv writev sendfile splice tee vmsplice "},
    {WaitClass::file,
     " pread64 pwrite64 preadv pwritev preadv2 pwritev2 open openat openat2 close fsync fdatasync "
     "sync_file_range "
     "copy_file_range getdents64 stat fstat lstat newfstatat statx unlink unlinkat rename renameat2 mkdir "
     "mkdirat fallocate ftruncate io_getevents io_pgetevents io_uring_enter "},
    {WaitClass::poll, " poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 "},
    {WaitClass::memory, " mmap munmap mprotect mremap madvise brk msync "},
};

struct Words {
  std::string_view key, words;
};
constexpr Words kWords[] = {{"none", ""},
                            {"gil", "the GIL"},
                            {"cpu", "a CPU"},
                            {"lock", "a lock"},
                            {"condition", "a condition"},
                            {"semaphore", "a semaphore"},
                            {"event", "an event"},
                            {"queue", "a queue"},
                            {"future", "a future"},
                            {"thread", "a thread's end"},
                            {"child", "a child process"},
                            {"sleep", "sleep"},
                            {"socket", "a socket"},
                            {"pipe", "a pipe"},
                            {"file", "a file"},
                            {"device", "a device"},
                            {"stream", "a file or pipe"},
                            {"poll", "events"},
                            {"memory", "memory"},
                            {"other", ""}};

WaitClass class_of(const Frame& frame) {
  if (frame.kind != FrameKind::python) return WaitClass::none;
  for (const FunctionThatWaits& known : kFunctions) {
    if (!known.function.empty() && frame.function != known.function) continue;
    if (!frame.file.ends_with(known.file)) continue;
    return known.waits;
  }
  return WaitClass::none;
}

// Combines the class of the call with that of a standard library function, which knows more: a lock may be a
// queue's, a read may be from a socket.
WaitClass both(WaitClass call, WaitClass functions) {
  const bool of_threads = functions >= WaitClass::lock && functions <= WaitClass::thread;
  switch (call) {
    case WaitClass::lock:
      return of_threads ? functions : call;
    case WaitClass::poll:
    case WaitClass::stream:
      return functions != WaitClass::none ? functions : call;
    case WaitClass::sleep:
      // Polls at intervals.
      return functions == WaitClass::child || of_threads ? functions : call;
    default:
      return call;
  }
}

}  // namespace

std::string_view wait_class_key(WaitClass what) {
  return kWords[static_cast<size_t>(what)].key;
}
std::string_view wait_class_words(WaitClass what) {
  return kWords[static_cast<size_t>(what)].words;
}

std::string wait_words(WaitClass what, const std::string& system_call, const std::string& wait_target) {
  std::string words(wait_class_words(what));
  if (what == WaitClass::gil || what == WaitClass::cpu) return words;
  const bool has_class = !words.empty();
  if (!has_class) words = system_call;
  // Sleep already says that it was only for time.
  if (!wait_target.empty() && what != WaitClass::sleep) words += ", " + wait_target;
  return has_class && !system_call.empty() ? fmt::format("{} ({})", words, system_call) : words;
}

FrameId asking_frame(const Profile& profile, StackId stack) {
  FrameId innermost;
  for (StackId at = stack; at && at.value <= profile.stacks().size();) {
    const Stack& row = profile.stack(at);
    if (row.frame && row.frame.value <= profile.frames().size()) {
      const Frame& frame = profile.frame(row.frame);
      const bool library =
          std::any_of(std::begin(kLibraries), std::end(kLibraries),
                      [&](std::string_view name) { return frame.file.find(name) != std::string::npos; });
      if (frame.kind == FrameKind::python && !library) return row.frame;
      if (!innermost || profile.frame(innermost).kind != FrameKind::python) innermost = row.frame;
    }
    at = row.parent < at ? row.parent : StackId();
  }
  return innermost;
}

WaitClasses::WaitClasses(const Profile& profile)
    : profile_(profile),
      machine_(machine_of(profile)),
      by_frame_(profile.frames().size() + 1, WaitClass::none),
      known_stack_(profile.stacks().size() + 1),
      by_stack_(profile.stacks().size() + 1, WaitClass::none) {
  for (size_t i = 0; i < profile.frames().size(); ++i) by_frame_[i + 1] = class_of(profile.frames()[i]);
}

WaitClass WaitClasses::by_stack(StackId stack) {
  if (stack.value >= by_stack_.size()) return WaitClass::none;
  WaitClass& found = by_stack_[stack.value];
  if (known_stack_[stack.value]) return found;
  known_stack_[stack.value] = true;
  bool seen = false;  // a frame of Python
  for (StackId at = stack; at && at.value < by_stack_.size();) {
    const Stack& row = profile_.stack(at);
    if (row.frame && row.frame.value < by_frame_.size() &&
        profile_.frame(row.frame).kind == FrameKind::python) {
      const WaitClass here = by_frame_[row.frame.value];
      if (here == WaitClass::none && seen) break;
      if (here == WaitClass::none) return found;
      // Event.wait calls Condition.wait; before 3.11 their names are the same.
      found = here == WaitClass::condition && found == here ? WaitClass::event : here;
      seen = true;
    }
    at = row.parent < at ? row.parent : StackId();
  }
  return found;
}

WaitClass WaitClasses::by_call(int16_t system_call) {
  const auto known = std::find_if(by_call_.begin(), by_call_.end(),
                                  [&](const auto& one) { return one.first == system_call; });
  if (known != by_call_.end()) return known->second;
  WaitClass waits = system_call < 0 ? WaitClass::memory : WaitClass::other;
  const std::string name = " " + system_call_name(system_call, machine_) + " ";
  for (const KnownCalls& calls : kCalls) {
    if (calls.names.find(name) != std::string_view::npos) waits = calls.waits;
  }
  by_call_.emplace_back(system_call, waits);
  return waits;
}

// If neither the call nor the functions show it, the file does.
WaitClass WaitClasses::named(const Sample& sample, WaitClass found) {
  if (!sample.wait_target || sample.wait_target.value > profile_.wait_targets().size()) return found;
  switch (profile_.wait_targets()[sample.wait_target.value - 1].kind) {
    case WaitTargetKind::file:
      return WaitClass::file;
    case WaitTargetKind::socket:
    case WaitTargetKind::client:
    case WaitTargetKind::listener:
      return WaitClass::socket;
    case WaitTargetKind::pipe:
      return WaitClass::pipe;
    case WaitTargetKind::device:
      return WaitClass::device;
    case WaitTargetKind::process:
      return WaitClass::child;
    case WaitTargetKind::time:
      // An epoll instance also waits for other things.
      return is_call(kEventCalls, sample.system_call, machine_ == "aarch64") ? found : WaitClass::sleep;
    case WaitTargetKind::object:
      return WaitClass::poll;
    case WaitTargetKind::other:
    case WaitTargetKind::poll:
      break;
  }
  return found;
}

WaitClass WaitClasses::of(const Sample& sample) {
  if (sample.gil_state == GilState::waits) return WaitClass::gil;
  if (sample.cpu_state == CpuState::runnable) return WaitClass::cpu;
  if (sample.cpu_state != CpuState::blocked) return WaitClass::none;
  if (sample.system_call == kCallNotRecorded) {
    const WaitClass found = by_stack(sample.stack);
    return found == WaitClass::none ? WaitClass::other : found;
  }
  const WaitClass call = by_call(sample.system_call);
  // Without a stack, the reason can be anything the call is used for.
  if (call == WaitClass::lock && is_not_read(profile_, sample.stack)) return WaitClass::other;
  const WaitClass found = both(call, by_stack(sample.stack));
  return found == WaitClass::stream || found == WaitClass::poll ? named(sample, found) : found;
}

}  // namespace phlox::view
