#include "phlox/sampler/capture/sample_timer.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "phlox/base/interrupted.h"

namespace phlox::sampler {
namespace {

// Samples on one CPU before an event is opened there: a sampler that follows threads from CPU to CPU would
// open and close events in vain.
constexpr unsigned kStays = 32;
// For longer periods the re-arming saves nothing worth a second mechanism, and a stop would have to wait for
// the event.
constexpr Nanoseconds kLongestPeriod = 50'000'000;
// The minimum of perf_swevent_hrtimer() (kernel/events/core.c).
constexpr Nanoseconds kShortestPeriod = 10'000;
// More frequent samples overrun the event, whose interrupts continue during a sample: at 20 kHz they took the
// whole machine.
constexpr Nanoseconds kShortestInterval = 200'000;
constexpr unsigned kSilences = 3;

}  // namespace

void sleep_until(Nanoseconds when) {
  const timespec t{when / kSecond, when % kSecond};
  (void)retried([&] {
    errno = ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
    return errno == 0 ? 0 : -1;
  });
}

bool SampleTimer::open(int cpu, Nanoseconds period) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = static_cast<uint64_t>(period);
  attr.wakeup_events = 1;
  event_ =
      Descriptor(static_cast<int>(::syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event_) return false;
  // Without a ring, poll returns POLLHUP at once (kernel/events/core.c: perf_poll). Records consist of a head
  // only.
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  page_ = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, event_.get(), 0);
  if (page_ == MAP_FAILED) {
    page_ = nullptr;
    event_ = Descriptor();
    return false;
  }
  return true;
}

void SampleTimer::close() {
  if (page_ != nullptr) ::munmap(page_, 2 * static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
  page_ = nullptr;
  event_ = Descriptor();
}

// False: no event came.
bool SampleTimer::wait_for_event(Schedule& schedule) {
  if (left_ == 0) {
    // A new period starts now, not at the last event; the lost time is made up for in this one.
    const Nanoseconds now = clock_now();
    const Nanoseconds drawn = schedule.draw();
    Nanoseconds late = now - due_;
    if (due_ == 0 || late > kSamePeriod * schedule.interval() || late < 0) {
      due_ = now;
      late = 0;
    }
    due_ += kSamePeriod * drawn;
    period_ = std::max(drawn - std::min(late / kSamePeriod, drawn / 2), kShortestPeriod);
    auto period = static_cast<uint64_t>(period_);
    if (::ioctl(event_.get(), PERF_EVENT_IOC_PERIOD, &period) != 0) return false;
    left_ = kSamePeriod;
  }
  --left_;
  auto& head = *static_cast<perf_event_mmap_page*>(page_);
  pollfd wanted{event_.get(), POLLIN, 0};
  const Nanoseconds patience = 4 * period_ + 10'000'000;
  const timespec timeout{patience / kSecond, patience % kSecond};
  const int ready = ::ppoll(&wanted, 1, &timeout, nullptr);
  const uint64_t written = std::atomic_ref(head.data_head).load(std::memory_order_acquire);
  const uint64_t records = (written - head.data_tail) / sizeof(perf_event_header);
  std::atomic_ref(head.data_tail).store(written, std::memory_order_release);
  if (records > 1) schedule.missed_more(records - 1);
  return ready > 0 && (wanted.revents & POLLIN) != 0;
}

Nanoseconds SampleTimer::wait(Schedule& schedule, Nanoseconds now, int cpu) {
  if (cpu != cpu_) {
    close();
    cpu_ = cpu;
    stays_ = 0;
  } else if (stays_ < kStays) {
    ++stays_;
  }
  if (perf_allowed_ && cpu >= 0 && stays_ == kStays && !event_ && schedule.interval() <= kLongestPeriod &&
      schedule.interval() >= kShortestInterval) {
    left_ = 0;
    if (!open(cpu, schedule.interval())) perf_allowed_ = false;
  }
  if (event_) {
    if (wait_for_event(schedule)) {
      silences_ = 0;
      ++by_perf_;
      now = clock_now();
      schedule.start(now);
      return now;
    }
    // The kernel throttles events that come too often (kernel.perf_event_max_sample_rate), and a CPU may be
    // taken away.
    close();
    stays_ = 0;
    if (++silences_ == kSilences) perf_allowed_ = false;
    now = clock_now();
  }
  ++by_clock_;
  sleep_until(schedule.next(now));
  return clock_now();
}

}  // namespace phlox::sampler
