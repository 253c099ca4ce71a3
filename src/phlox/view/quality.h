// How far to trust a recording: the counted facts as one value, and as the one line of text below every
// picture, report and end of a recording. Reads the counters, never the samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/profile/profile.h"

namespace phlox::view {

// The mode of a process, with native frames or not.
inline bool is_in_kernel(std::string_view mode) {
  return mode.starts_with(profile::kInTheKernel);
}

struct RejectReason {
  std::string name;    // for programs: "moved"
  std::string reason;  // in words: "moved while read"
  int64_t count = 0;
};

struct QualitySummary {
  int64_t samples = 0;
  int64_t missed = 0;   // samples that were due and came too late to be taken
  int64_t retried = 0;  // further attempts at the same sample
  int64_t cut = 0;
  int64_t detached = 0;
  int64_t unproved = 0;
  int64_t lost = 0;                   // taken, but not fetched in time
  int64_t rejected = 0;               // sum of the reasons
  std::vector<RejectReason> reasons;  // those that occurred, most frequent first
  double asked_rate = 0;              // samples a second; 0: not known, or no rate was asked for
  double most_rate = 0;               // the highest rate, in samples a second, if none was asked for
  double max_overhead = 0;            // share of a CPU that may be taken from the target; 0: no limit
  double achieved_rate = 0;           // samples taken for each second of recording; 0: not known
  std::string recorded_by;            // another recorder: "perf 6.1.0"
  std::vector<std::string> modes;     // the modes, each once, in the order of the processes
  int64_t native = 0;                 // samples with native frames
  int64_t native_whole = 0, native_restarted = 0, native_cut = 0, native_unmerged = 0;
  // The maximum number of threads that ran at once without a perf event of their own.
  int64_t native_without_event = 0;
  int64_t kernel_threads = 0;     // of the kernel, inside the processes: they have no samples
  Nanoseconds target_time = 0;    // taken from the targets' CPUs
  Nanoseconds recorder_time = 0;  // CPU time of the recorder
  int64_t left_out = 0;           // frames, names or lines beyond the limits on how many are held
  Nanoseconds elapsed = 0;
  // How long each process was recorded, added up; 0: not known, or one process for `elapsed`.
  Nanoseconds sampled = 0;
  size_t processes = 0;

  double rejected_share() const { return samples > 0 ? double(rejected) / double(samples) : 0.0; }
  // No rate was asked for, and the limit of overhead decides it.
  bool rate_by_overhead() const;
  // Part of one CPU, taken from a process while it was recorded, averaged over all.
  double target_share() const {
    const Nanoseconds of = sampled > 0 ? sampled : elapsed;
    return of > 0 ? double(target_time) / double(of) : 0.0;
  }
  // Above 1 % every output warns: the shares may be biased against samples that could not be read.
  bool needs_warning() const { return rejected_share() > 0.01; }
  bool in_kernel() const { return std::any_of(modes.begin(), modes.end(), is_in_kernel); }
};

QualitySummary summarize_quality(const profile::Profile& profile);

// "12,345 samples (199 Hz of 200 Hz asked), 3 missed, 12 retried, 2 rejected (0.02 %: 2 moved while read);
// read: same CPU (real time); took 0.21 % of a CPU from the target, recorder 0.9 % of a CPU"
std::string quality_line(const QualitySummary& quality);
// One sentence when needs_warning(), else empty.
std::string quality_warning(const QualitySummary& quality);
// One sentence if sampling slowed the program down noticeably, or more than was allowed; otherwise empty.
std::string cost_warning(const QualitySummary& quality);

}  // namespace phlox::view
