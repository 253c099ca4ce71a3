#include "phlox/sampler/perf_source.h"

#include <linux/perf_event.h>
#include <poll.h>
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

#include "phlox/unwind/arch/this_machine.h"

namespace phlox::sampler {
namespace {

constexpr size_t kPage = 4096;
// Only to be a sample with a stack; the stack itself is read while the thread stands still.
constexpr uint32_t kStackBytes = 64;
// The kernel drops a record that finds no room and says so only in the next one that finds some. With this
// much room left behind the last record, none was dropped: our largest is a sample of some 400 bytes.
constexpr uint64_t kRoomForAnother = 1024;
constexpr Nanoseconds kIdleLimit = 2 * kSecond;
constexpr size_t kMostEvents = 256;

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
    state_ = sample->has_registers ? State::sampled : State::elsewhere;
    sampled_at_ = sample->time;
    registers_ = sample->registers;
  } else if (const auto* change = std::get_if<perf::SwitchRecord>(&record)) {
    // Only straight from the sample, and not because it went to sleep.
    const bool at_once = change->out && change->preempted && change->time - sampled_at_ <= kAtOnce;
    state_ = state_ == State::sampled && at_once ? State::stands : State::elsewhere;
  } else if (const auto* other = std::get_if<perf::OtherRecord>(&record);
             other != nullptr && !other->damaged) {
    return;
  } else {
    state_ = State::elsewhere;
  }
}

size_t PerfCapture::most_events(uint64_t descriptors, uint64_t mlock_kb, uint64_t cpus,
                                uint64_t memlock_bytes) {
  const uint64_t by_descriptors = descriptors / 4;  // the others are for /proc, three a thread
  const uint64_t each = kRingBytes + kPage;
  // Of what all of the user's events may lock, a half.
  const uint64_t locked =
      std::min<uint64_t>(mlock_kb, uint64_t{1} << 30) * 1024 * std::clamp<uint64_t>(cpus, 1, 8192);
  const uint64_t by_memory = (locked + std::min<uint64_t>(memlock_bytes, uint64_t{1} << 40)) / 2 / each;
  return std::min<uint64_t>({by_descriptors, by_memory, kMostEvents});
}

PerfCapture::PerfCapture(Nanoseconds interval, uint64_t seed)
    : shape_(perf::native_shape(unwind::kThisMachine)),
      interval_(std::max<Nanoseconds>(interval, 20'000)),
      random_(seed | 1) {
  rlimit files{}, memory{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_MEMLOCK, &memory);
  const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  most_ = most_events(files.rlim_cur, number_in("/proc/sys/kernel/perf_event_mlock_kb", 516),
                      cpus > 0 ? static_cast<uint64_t>(cpus) : 1, memory.rlim_cur);
}

PerfCapture::~PerfCapture() {
  for (auto& [tid, event] : events_) close(event);
}

Nanoseconds PerfCapture::draw() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return interval_ / 2 + static_cast<Nanoseconds>(random_ % static_cast<uint64_t>(interval_));
}

bool PerfCapture::open(pid_t tid, bool& refused) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = static_cast<uint64_t>(draw());
  attr.sample_type = shape_.sample_type;
  attr.sample_regs_user = shape_.user_registers;
  attr.sample_stack_user = kStackBytes;
  attr.sample_id_all = shape_.sample_id_all;
  attr.wakeup_events = 1;
  attr.context_switch = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.exclude_hv = 1;
  attr.exclude_kernel = !with_kernel_;
  Event event;
  event.file =
      Descriptor(static_cast<int>(::syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event.file && (errno == EACCES || errno == EPERM) && with_kernel_) {
    with_kernel_ = false;
    attr.exclude_kernel = 1;
    event.file = Descriptor(
        static_cast<int>(::syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  }
  if (!event.file) {
    // Out of descriptors is no refusal; a thread that is gone neither.
    refused = errno != ESRCH && errno != EMFILE && errno != ENFILE;
    return false;
  }
  event.ring = ::mmap(nullptr, kPage + kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, event.file.get(), 0);
  if (event.ring == MAP_FAILED) {
    refused = events_.empty();  // as many as there is room for
    most_ = std::min(most_, events_.size());
    return false;
  }
  event.last_sample = clock_now();
  events_.emplace(tid, std::move(event));
  return true;
}

void PerfCapture::close(Event& event) {
  if (event.ring != nullptr) ::munmap(event.ring, kPage + kRingBytes);
  event.ring = nullptr;
}

void PerfCapture::drain(Event& event) {
  auto& page = *static_cast<perf_event_mmap_page*>(event.ring);
  const uint64_t head = std::atomic_ref(page.data_head).load(std::memory_order_acquire);
  const uint64_t tail = page.data_tail;
  if (head == tail) return;
  perf::RingReader reader(std::span(static_cast<const std::byte*>(event.ring) + kPage, kRingBytes), tail,
                          head);
  for (auto bytes = reader.next(); !bytes.empty(); bytes = reader.next()) {
    const perf::Record record = perf::parse_record(bytes, shape_);
    event.state.take(record);
    if (std::holds_alternative<perf::SampleRecord>(record)) event.last_sample = clock_now();
  }
  if (reader.damaged() || head - tail > kRingBytes - kRoomForAnother) event.state.forget();
  std::atomic_ref(page.data_tail).store(head, std::memory_order_release);
}

NativeCapture::Held PerfCapture::hold(pid_t tid, target::ThreadProbe&, unwind::Registers& registers) {
  const auto found = events_.find(tid);
  if (found == events_.end()) {
    drop_idle(clock_now());
    bool refused = false;
    if (events_.size() < most_) open(tid, refused);
    return refused ? Held::refused : Held::running;
  }
  Event& event = found->second;
  drain(event);
  if (!event.state.stands()) return Held::running;
  registers = event.state.registers();
  // Each sample is used once; and the next comes after another time, so that no program runs in step with it.
  event.state.forget();
  auto period = static_cast<uint64_t>(draw());
  ::ioctl(event.file.get(), PERF_EVENT_IOC_PERIOD, &period);
  return Held::yes;
}

void PerfCapture::drop_idle(Nanoseconds now) {
  if (now < next_cleaning_) return;
  next_cleaning_ = now + kIdleLimit / 8;
  for (auto at = events_.begin(); at != events_.end();) {
    if (now - at->second.last_sample < kIdleLimit) {
      ++at;
      continue;
    }
    close(at->second);
    at = events_.erase(at);
  }
}

bool PerfCapture::wait(Nanoseconds until) {
  for (;;) {
    if (events_.empty()) return false;
    std::vector<pollfd> wanted;
    std::vector<pid_t> tids;
    for (const auto& [tid, event] : events_) {
      wanted.push_back({event.file.get(), POLLIN, 0});
      tids.push_back(tid);
    }
    const Nanoseconds left = std::max<Nanoseconds>(until - clock_now(), 0);
    const timespec timeout{left / kSecond, left % kSecond};
    const int ready = ::ppoll(wanted.data(), wanted.size(), &timeout, nullptr);
    if (ready == 0 || (ready < 0 && errno != EINTR)) return true;
    bool sampled = false;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if ((wanted[i].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
        const auto gone = events_.find(tids[i]);  // its thread has ended
        close(gone->second);
        events_.erase(gone);
      } else if ((wanted[i].revents & POLLIN) != 0) {
        sampled = true;
      }
    }
    if (sampled) return true;
  }
}

}  // namespace phlox::sampler
