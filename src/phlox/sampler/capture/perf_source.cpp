#include "phlox/sampler/capture/perf_source.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <variant>
#include <vector>

#include "phlox/process/clock_offset.h"
#include "phlox/unwind/arch/this_machine.h"

namespace phlox::sampler {
namespace {

// Orders the earlier reads of a thread before the reads of its later records. x86-64 orders loads by itself.
void read_first() {
#if defined(__aarch64__)
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

// The host's page size: kernels for aarch64 use 4, 16 or 64 KiB.
size_t page_bytes() {
  static const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}
// The size of a ring's data in whole pages; one more page precedes it.
size_t ring_bytes() {
  return std::max<size_t>(8192, page_bytes());
}
// Only to get a sample with a stack; the stack itself is read while the thread is held.
constexpr uint32_t kStackBytes = 64;
// The kernel drops a record that does not fit and reports that only in the next one that does. With this much
// room after the last record, none was dropped: our largest is a sample of about 750 bytes.
constexpr uint64_t kRoomForAnother = 1024;
constexpr Nanoseconds kCleanEvery = kSecond / 4;

uint64_t number_in(const char* file, uint64_t otherwise) {
  FILE* f = std::fopen(file, "re");
  if (f == nullptr) return otherwise;
  unsigned long long value = 0;
  const bool read = std::fscanf(f, "%llu", &value) == 1;
  std::fclose(f);
  return read ? value : otherwise;
}

}  // namespace

void Preempted::take(const perf::Record& record) {
  if (const auto* sample = std::get_if<perf::SampleRecord>(&record)) {
    state_ = sample->has_registers ? State::sampled : State::awake;
    sampled_at_ = sample->time;
    registers_ = sample->registers;
    cpu_ = static_cast<int>(sample->cpu);
    kernel_frames_ = perf::parse_kernel_chain(sample->callchain, kernel_);
  } else if (const auto* change = std::get_if<perf::SwitchRecord>(&record)) {
    cpu_ = static_cast<int>(change->cpu);
    // Only directly after the sample, and not because it went to sleep.
    const bool at_once = change->out && change->preempted && change->time - sampled_at_ <= kAtOnce;
    state_ = change->out && !change->preempted     ? State::asleep
             : state_ == State::sampled && at_once ? State::stands
                                                   : State::awake;
  } else if (const auto* task = std::get_if<perf::TaskRecord>(&record); task != nullptr && !task->exit) {
    state_ = State::awake;
  } else if (const auto* other = std::get_if<perf::OtherRecord>(&record);
             other != nullptr && !other->damaged) {
    return;
  } else {
    forget();
  }
}

PerfCapture::PerfCapture(Nanoseconds interval, uint64_t seed, Workers& workers)
    : schedule_(std::max<Nanoseconds>(interval, 20'000), seed),
      workers_(workers),
      deepest_chain_(static_cast<uint16_t>(
          std::min<uint64_t>(number_in("/proc/sys/kernel/perf_event_max_stack", 127), kMostKernelFrames))),
      budget_(0) {
  rlimit files{}, memory{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_MEMLOCK, &memory);
  const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  budget_ = EventBudget(most_events(files.rlim_cur, number_in("/proc/sys/kernel/perf_event_mlock_kb", 516),
                                    cpus > 0 ? static_cast<uint64_t>(cpus) : 1, memory.rlim_cur,
                                    ring_bytes() + page_bytes()));
}

PerfCapture::~PerfCapture() {
  while (!events_.empty()) close(events_.begin()->first);
}

bool PerfCapture::open(pid_t tid, bool& refused) {
  Event event;
  for (;;) {
    event.shape = perf::native_shape(unwind::kThisMachine);
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = static_cast<uint64_t>(draw());
    if (depth_ == Depth::kernel_frames) {
      event.shape.sample_type |= PERF_SAMPLE_CALLCHAIN;
      attr.exclude_callchain_user = 1;
      attr.sample_max_stack = deepest_chain_;
    }
    attr.sample_type = event.shape.sample_type;
    attr.sample_regs_user = event.shape.user_registers;
    attr.sample_stack_user = kStackBytes;
    attr.sample_id_all = event.shape.sample_id_all;
    attr.wakeup_events = 1;
    attr.context_switch = 1;
    attr.task = 1;  // its exit: no other record reports it
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    attr.exclude_hv = 1;
    attr.exclude_kernel = depth_ == Depth::user;
    event.file = Descriptor(
        static_cast<int>(::syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
    if (event.file) break;
    if (depth_ != Depth::user && (errno == EACCES || errno == EPERM)) {
      depth_ = Depth::user;
    } else if (depth_ == Depth::kernel_frames && errno != ESRCH && errno != EMFILE && errno != ENFILE) {
      depth_ = Depth::kernel;
    } else {
      // Running out of descriptors is not a refusal, and neither is an ended thread.
      refused = errno != ESRCH && errno != EMFILE && errno != ENFILE;
      if (refused) refusal_ = {"perf_event_open", errno};
      return false;
    }
  }
  numbers_.kernel = depth_ == Depth::kernel_frames;
  event.ring =
      ::mmap(nullptr, page_bytes() + ring_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, event.file.get(), 0);
  if (event.ring == MAP_FAILED) {
    refused = events_.empty();  // if there are others, the limit is reached
    if (refused) refusal_ = {"mmap", errno};
    budget_.no_more();
    return false;
  }
  budget_.opened(tid, clock_now());
  events_.emplace(tid, std::move(event));
  return true;
}

void PerfCapture::close(pid_t tid) {
  const auto found = events_.find(tid);
  if (found == events_.end()) return;
  if (held_ == &found->second) held_ = nullptr;
  ::munmap(found->second.ring, page_bytes() + ring_bytes());
  events_.erase(found);
  budget_.closed(tid);
}

void PerfCapture::drain(pid_t tid, Event& event) {
  auto& page = *static_cast<perf_event_mmap_page*>(event.ring);
  read_first();
  const uint64_t head = std::atomic_ref(page.data_head).load(std::memory_order_acquire);
  const uint64_t tail = page.data_tail;
  if (head == tail) return;
  perf::RingReader reader(std::span(static_cast<const std::byte*>(event.ring) + page_bytes(), ring_bytes()),
                          tail, head);
  bool sampled = false;
  const int before = event.state.cpu();
  for (auto bytes = reader.next(); !bytes.empty(); bytes = reader.next()) {
    const perf::Record record = perf::parse_record(bytes, event.shape);
    event.state.take(record);
    event.last = ++records_;
    sampled = sampled || std::holds_alternative<perf::SampleRecord>(record);
  }
  if (sampled) budget_.ran(tid, clock_now());
  if (reader.damaged() || head - tail > ring_bytes() - kRoomForAnother) event.state.forget();
  std::atomic_ref(page.data_tail).store(head, std::memory_order_release);
  // A thread has moved to this CPU: the worker that waits there does not know about it.
  if (event.state.cpu() != before) workers_.wake_at(event.state.cpu());
}

NativeCapture::Held PerfCapture::hold(pid_t tid, process::ThreadProbe&, unwind::Registers& registers) {
  const auto found = events_.find(tid);
  if (found == events_.end()) {
    const Nanoseconds now = clock_now();
    drop_idle(now);
    bool refused = false;
    const EventBudget::Grant grant = budget_.ask(tid, now);
    if (grant.close_first != 0) close(grant.close_first);
    if (grant.open) open(tid, refused);
    numbers_.most = budget_.most();
    numbers_.without = std::max(numbers_.without, budget_.without());
    return refused ? Held::refused : Held::running;
  }
  Event& event = found->second;
  drain(tid, event);
  if (!woke_us(event)) return Held::running;
  registers = event.state.registers();
  held_ = &event;
  if (++event.samples >= kSamePeriod) {
    event.samples = 0;
    auto period = static_cast<uint64_t>(draw());
    ::ioctl(event.file.get(), PERF_EVENT_IOC_PERIOD, &period);
  }
  return Held::yes;
}

EventState PerfCapture::event_state(pid_t tid) {
  const auto found = events_.find(tid);
  if (found == events_.end()) return {};
  Event& event = found->second;
  drain(tid, event);
  if (woke_us(event)) return {EventState::Kind::preempted, event.last, event.state.registers().sp};
  switch (event.state.doing()) {
    case Preempted::Doing::awake:
      return {EventState::Kind::awake, event.last, {}};
    case Preempted::Doing::asleep:
      return {EventState::Kind::asleep, event.last, {}};
    case Preempted::Doing::unknown:
      break;
  }
  return {};
}

int PerfCapture::cpu_of(pid_t tid) const {
  const auto found = events_.find(tid);
  return found == events_.end() ? -1 : found->second.state.cpu();
}

void PerfCapture::drop_idle(Nanoseconds now) {
  if (now < next_cleaning_) return;
  next_cleaning_ = now + kCleanEvery;
  for (const pid_t tid : budget_.take_idle(now)) close(tid);
}

// The sample found us waiting for the thread on its CPU, so the thread has run no further. A thread that was
// pre-empted by our moving here, by our waking for another reason, or by another task may have run on.
// Samples of an earlier wait belong to an earlier turn.
bool PerfCapture::woke_us(const Event& event) const {
  const Preempted& state = event.state;
  const Worker& us = workers_.current();
  static const Nanoseconds ahead = process::monotonic_offset();
  return event.waited_by == &us && event.list == us.list && state.stands() &&
         state.sampled_at() + ahead >= us.waits_since && (us.cpu < 0 || state.cpu() == us.cpu);
}

Woken PerfCapture::wait(Worker& worker, Nanoseconds until, TurnLock& turn_lock) {
  worker.waits_since = clock_now();
  drop_idle(worker.waits_since);
  for (;;) {
    if (events_.empty() && !worker.events_only) return Woken::nothing_to_wait_for;
    worker.wanted.assign(1, {worker.wake_up.get(), POLLIN, 0});
    worker.tids.assign(1, 0);
    ++worker.list;
    for (auto& [tid, event] : events_) {
      if (worker.cpu >= 0 && event.state.cpu() >= 0 && event.state.cpu() != worker.cpu) continue;
      worker.wanted.push_back({event.file.get(), POLLIN, 0});
      worker.tids.push_back(tid);
      event.waited_by = &worker;
      event.list = worker.list;
    }
    const Nanoseconds left = std::max<Nanoseconds>(until - clock_now(), 0);
    const timespec timeout{left / kSecond, left % kSecond};
    turn_lock.unlock();
    const int ready = ::ppoll(worker.wanted.data(), worker.wanted.size(), &timeout, nullptr);
    if (turn_lock.lock()) worker.waits_since = clock_now();
    workers_.act_as(worker);
    if (ready == 0 || (ready < 0 && (errno != EINTR || clock_now() >= until))) return Woken::by_time;
    const bool woken = worker.wanted.front().revents != 0;
    if (woken) {
      eventfd_t calls = 0;
      ::eventfd_read(worker.wake_up.get(), &calls);
    }
    bool stands = false;
    for (size_t i = 1; i < worker.wanted.size(); ++i) {
      const short got = worker.wanted[i].revents;
      const auto event = got != 0 ? events_.find(worker.tids[i]) : events_.end();
      // Another worker may have closed it since, and its number may belong to another file.
      if (event == events_.end() || event->second.file.get() != worker.wanted[i].fd) continue;
      if ((got & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
        close(worker.tids[i]);  // its thread has ended
      } else {
        drain(worker.tids[i], event->second);
        stands = stands || woke_us(event->second);
      }
    }
    // Otherwise the samples are from before we moved to this CPU, or of a thread that has left it.
    if (stands) return Woken::by_event;
    if (woken) return Woken::by_time;
  }
}

}  // namespace phlox::sampler
