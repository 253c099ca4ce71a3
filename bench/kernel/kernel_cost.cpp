// The cost to a process of sampling inside the kernel: nothing attached (off), attached while no process of
// the host is sampled (empty), and sampling this one (full), in turn. Prints one line of JSON: the spans of
// each as CLOCK_MONOTONIC times in seconds, and the BPF program's counters.
//
//   kernel_cost PID RATE ROUNDS SECONDS [native]
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/memory/process_memory.h"
#include "phlox/python/locate.h"
#include "phlox/sampler/capture/sample_timer.h"
#include "phlox/sampler/kernel/kernel_capture.h"
#include "phlox/sampler/kernel/process_config.h"

using namespace phlox;

namespace {

// Same as in KernelSources.
constexpr Nanoseconds kDrainEvery = kSecond / 40;
// Half of --max-overhead 2.
constexpr uint32_t kWalkShare = 10;
constexpr Nanoseconds kSettle = kSecond / 50;

struct Counts {
  uint64_t hits = 0, walks = 0, time = 0, lost = 0, records = 0, bytes = 0;
};

class Cost {
 public:
  Cost(pid_t pid, double rate, Nanoseconds span, bool native)
      : pid_(pid), rate_(rate), span_(span), native_(native) {}

  bool find() {
    auto found = python::locate(pid_);
    if (!found) return says(found.error());
    auto place = sampler::kernel_process_of(*found);
    if (!place) return says(place.error());
    memory::ProcessMemory memory(pid_);
    if (!sampler::find_thread_state_word(*found, memory, *place) &&
        !sampler::find_listed_threads(*found, memory, *place))
      return false;
    place_ = *place;
    place_.walks.share = kWalkShare;
    return true;
  }

  bool round() {
    stay(off_, nullptr);
    auto capture = sampler::KernelCapture::open(rate_, native_, "");
    if (!capture) return says(capture.error());
    stay(empty_, capture->get());
    const Counts before = counts(**capture);
    if (!(*capture)->add(pid_, place_)) return false;
    stay(full_, capture->get());
    (*capture)->remove(pid_, place_.id);
    const Counts after = counts(**capture);
    counts_.hits += after.hits - before.hits;
    counts_.walks += after.walks - before.walks;
    counts_.time += after.time - before.time;
    counts_.lost += after.lost - before.lost;
    return true;
  }

  void print() const {
    fmt::print(
        "{{\"off\": [{}], \"empty\": [{}], \"full\": [{}], \"hits\": {}, \"walks\": {}, \"time_ns\": {}, "
        "\"lost\": {}, \"records\": {}, \"bytes\": {}}}\n",
        fmt::join(off_, ", "), fmt::join(empty_, ", "), fmt::join(full_, ", "), counts_.hits, counts_.walks,
        counts_.time, counts_.lost, counts_.records, counts_.bytes);
  }

 private:
  static bool says(const Error& error) {
    fmt::print(stderr, "kernel_cost: {}\n", error.message);
    return false;
  }
  static Counts counts(sampler::KernelCapture& capture) {
    Counts now;
    now.hits = capture.count(KERNEL_COUNT_HITS);
    now.walks = capture.count(KERNEL_COUNT_WALKS);
    now.time = capture.count(KERNEL_COUNT_TIME);
    now.lost = capture.count(KERNEL_COUNT_LOST);
    return now;
  }
  void stay(std::vector<std::string>& spans, sampler::KernelCapture* capture) {
    sampler::sleep_until(clock_now() + kSettle);
    const Nanoseconds begin = clock_now();
    for (Nanoseconds now = begin; now < begin + span_; now = clock_now()) {
      sampler::sleep_until(now + kDrainEvery);
      if (capture == nullptr) continue;
      while (capture->drain(clock_now() + kSecond, [this](std::span<const std::byte> bytes) {
        ++counts_.records;
        counts_.bytes += bytes.size();
      })) {
      }
    }
    spans.push_back(fmt::format("[{:.6f}, {:.6f}]", static_cast<double>(begin) * 1e-9,
                                static_cast<double>(clock_now()) * 1e-9));
  }

  pid_t pid_;
  double rate_;
  Nanoseconds span_;
  bool native_;
  kernel_process place_{};
  std::vector<std::string> off_, empty_, full_;
  Counts counts_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "kernel_cost PID RATE ROUNDS SECONDS [native]\n");
    return 2;
  }
  Cost cost(static_cast<pid_t>(std::atol(argv[1])), std::atof(argv[2]),
            static_cast<Nanoseconds>(std::atof(argv[4]) * 1e9), argc > 5 && std::string(argv[5]) == "native");
  if (!cost.find()) return 1;
  for (long round = std::atol(argv[3]); round > 0; --round) {
    if (!cost.round()) return 1;
  }
  cost.print();
  return 0;
}
