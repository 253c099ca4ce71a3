// The cost of an empty wake-up: the minimum for every sampler that sleeps between its samples. An empty
// thread of the best permitted class interrupts a busy process on CPU 0 --rate times a second for --seconds,
// woken by the clock and, where it may be opened, by a perf event of the CPU. Also the cost of one sample's
// copy: a page of thread state and stack, and 50 small ranges on as many pages. Prints one line of JSON:
// microseconds of CPU.
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

int64_t now(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

double by_clock(int wakes, int64_t interval) {
  int64_t at = now(CLOCK_MONOTONIC);
  const int64_t cpu = now(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < wakes; ++i) {
    at += interval;
    const timespec t{at / 1'000'000'000, at % 1'000'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
  }
  return static_cast<double>(now(CLOCK_THREAD_CPUTIME_ID) - cpu) / wakes / 1e3;
}

// -1: not permitted.
double by_event(int wakes, int64_t interval) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = static_cast<uint64_t>(interval);
  attr.wakeup_events = 1;
  const int fd = static_cast<int>(::syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd < 0) return -1;
  void* ring = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (ring == MAP_FAILED) return -1;
  auto& head = *static_cast<volatile perf_event_mmap_page*>(ring);
  const int64_t cpu = now(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < wakes; ++i) {
    pollfd wanted{fd, POLLIN, 0};
    ::poll(&wanted, 1, 1000);
    head.data_tail = head.data_head;
  }
  return static_cast<double>(now(CLOCK_THREAD_CPUTIME_ID) - cpu) / wakes / 1e3;
}

double copy(pid_t target, char* memory, int samples) {
  constexpr size_t kSmall = 50, kPage = 4096;
  std::vector<char> into(kPage + kSmall * 64);
  std::vector<iovec> local(kSmall + 1), remote(kSmall + 1);
  local[0] = {into.data(), kPage};
  remote[0] = {memory, kPage};
  for (size_t i = 0; i < kSmall; ++i) {
    local[i + 1] = {into.data() + kPage + i * 64, 64};
    remote[i + 1] = {memory + (i + 1) * kPage + i * 64, 64};
  }
  const int64_t cpu = now(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < samples; ++i) {
    if (::process_vm_readv(target, local.data(), local.size(), remote.data(), remote.size(), 0) <= 0)
      return -1;
  }
  return static_cast<double>(now(CLOCK_THREAD_CPUTIME_ID) - cpu) / samples / 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  int rate = 1000, seconds = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--rate") == 0) rate = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atoi(argv[i + 1]);
  }
  if (rate <= 0 || seconds <= 0) return 2;
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, 4096 * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return 1;
  std::memset(memory, 1, 4096 * 64);
  const pid_t busy = ::fork();
  if (busy == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(0);
    for (volatile uint64_t turns = 0;;) turns = turns + 1;
  }
  pin(0);
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  sched_param parameter{};
  parameter.sched_priority = 1;
  const bool real_time = ::sched_setscheduler(0, SCHED_FIFO, &parameter) == 0;
  const int wakes = rate * seconds;
  const double clock = by_clock(wakes, 1'000'000'000 / rate);
  const double event = by_event(wakes, 1'000'000'000 / rate);
  const double copied = copy(busy, memory, 5000);
  ::kill(busy, SIGKILL);
  ::waitpid(busy, nullptr, 0);
  std::printf("{\"real_time\": %s, \"clock_us\": %.2f, \"event_us\": %.2f, \"copy_us\": %.2f}\n",
              real_time ? "true" : "false", clock, event, copied);
}
