// The cost of one native sample beneath the sampler: how long ptrace stops a thread, and the time to unwind a
// frame once its rules are known. Prints one line of JSON.
//
//   native_cost PID [STOPS]
#include <dirent.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/memory/process_memory.h"
#include "phlox/process/thread_probe.h"
#include "phlox/sampler/assemble/address_space.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/session/scheduling.h"
#include "phlox/unwind/unwinder.h"

using namespace phlox;

namespace {

constexpr int kRounds = 200;
// Unwound repeatedly: few enough to stay in the CPU's cache, as a fresh copy does.
constexpr int kStacks = 100;

struct Kept {
  unwind::Registers registers;
  RemoteAddress start;
  std::vector<std::byte> stack;
};

// The thread that has used most CPU: the one that works.
pid_t busiest(pid_t pid) {
  pid_t best = pid;
  uint64_t most = 0;
  const std::string folder = fmt::format("/proc/{}/task", pid);
  DIR* directory = ::opendir(folder.c_str());
  if (directory == nullptr) return pid;
  while (const dirent* entry = ::readdir(directory)) {
    const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (tid <= 0) continue;
    const auto stat = process::ThreadProbe(pid, tid).schedstat();
    if (stat && stat->run_ns > most) {
      most = stat->run_ns;
      best = tid;
    }
  }
  ::closedir(directory);
  return best;
}

double quantile(std::vector<Nanoseconds>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1));
  return static_cast<double>(sorted[at]) * 1e-3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "native_cost PID [STOPS]\n");
    return 2;
  }
  const auto pid = static_cast<pid_t>(std::atoi(argv[1]));
  const int stops = argc > 2 ? std::atoi(argv[2]) : 2000;
  // As in the recorder: woken at once, so that a stop is no longer than the work done in it.
  const bool real_time = sampler::take_best_class() == sampler::SchedulingClass::real_time;
  memory::ProcessMemory memory(pid);
  const pid_t tid = busiest(pid);
  process::ThreadProbe probe(pid, tid);
  process::StopCounts counts;
  sampler::StopCapture stop(pid, counts);
  sampler::NativeCopy copy;
  // All stops, and those of a thread that was on a CPU when the stop was requested: one that waits for a CPU
  // does not run anyway, and is stopped when it gets one.
  std::vector<Nanoseconds> took, took_running;
  std::vector<Kept> kept;
  uint64_t end = 0;
  for (int i = 0; i < stops; ++i) {
    const timespec pause{0, 500'000 + (i * 7919 % 1000) * 1000};
    ::ppoll(nullptr, 0, &pause, nullptr);
    unwind::Registers registers;
    const auto asked = probe.schedstat();
    const Nanoseconds before = clock_now();
    const auto held = stop.hold(tid, probe, registers);
    const bool copied = held == sampler::NativeCapture::Held::yes &&
                        copy.take(memory, registers, sampler::NativeSource::ptrace, {}, end);
    // Read while it is stopped: once released, it may be scheduled in at once. The time to read counts as
    // ours, not as the recorder's.
    const Nanoseconds reading = clock_now();
    const auto stopped = probe.schedstat();
    const Nanoseconds read = clock_now();
    stop.let_go();
    const Nanoseconds after = clock_now();
    if (!copied || !asked || !stopped) continue;
    took.push_back(after - before - (read - reading));
    if (stopped->count == asked->count) took_running.push_back(took.back());
    if (i % std::max(1, stops / kStacks) != 0) continue;
    const auto parts = copy.parts();
    sampler::NativeHead head;
    std::memcpy(&head, parts.head.data(), std::min(sizeof(head), parts.head.size()));
    kept.push_back({registers, RemoteAddress(head.stack_start), {parts.stack.begin(), parts.stack.end()}});
  }
  if (kept.empty()) {
    std::fprintf(stderr, "no thread of process %d could be stopped\n", pid);
    return 1;
  }
  std::sort(took.begin(), took.end());
  std::sort(took_running.begin(), took_running.end());

  sampler::AddressSpace space(pid, memory, {});
  space.refresh(clock_now());
  unwind::Unwinder unwinder(
      space.map(), space.machine(), [&](uint32_t module) { return space.table_of(module); },
      [&](uint32_t module) { return space.code_of(module); });
  unwind::NativeStack out;
  size_t frames = 0, whole = 0;
  const auto all = [&] {
    frames = whole = 0;
    for (const Kept& one : kept) {
      unwinder.unwind({one.registers, one.start, one.stack}, out);
      frames += out.frames.size();
      whole += out.end == unwind::StackEnd::reached_end;
    }
  };
  all();  // builds the tables, warms the rules
  const Nanoseconds cpu = clock_now(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < kRounds; ++i) all();
  const auto unwinding = static_cast<double>(clock_now(CLOCK_THREAD_CPUTIME_ID) - cpu);
  std::printf(
      "%s\n",
      fmt::format("{{\"stops\": {}, \"real_time\": {}, \"stop_median_us\": {:.1f}, \"stop_p99_us\": {:.1f}, "
                  "\"stop_worst_us\": {:.1f}, \"running\": {}, \"running_median_us\": {:.1f}, "
                  "\"running_p99_us\": {:.1f}, "
                  "\"running_worst_us\": {:.1f}, \"frames_a_stack\": {:.1f}, \"whole\": {:.4f}, "
                  "\"frame_ns\": {:.1f}}}",
                  took.size(), real_time, quantile(took, 0.5), quantile(took, 0.99), quantile(took, 1.0),
                  took_running.size(), quantile(took_running, 0.5), quantile(took_running, 0.99),
                  quantile(took_running, 1.0), static_cast<double>(frames) / static_cast<double>(kept.size()),
                  static_cast<double>(whole) / static_cast<double>(kept.size()),
                  unwinding / kRounds / static_cast<double>(frames))
          .c_str());
  return 0;
}
