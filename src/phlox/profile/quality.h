// How far a recording can be believed: the counted facts as one value, and as the one line of words that
// stands under every picture, report and end of a recording. Reads the tallies; never looks at samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/profile/profile.h"

namespace phlox::profile {

// Of a process's way of reading, native frames or not.
inline bool is_in_kernel(std::string_view way) {
  return way.starts_with(kInTheKernel);
}

struct RejectReason {
  std::string name;    // for programs: "moved"
  std::string reason;  // in words: "moved while read"
  int64_t count = 0;
};

struct QualitySummary {
  int64_t samples = 0;
  int64_t missed = 0;   // looks that were scheduled and came too late to be taken
  int64_t retried = 0;  // further attempts at the same sample
  int64_t cut = 0;
  int64_t detached = 0;
  int64_t unproved = 0;
  int64_t lost = 0;                   // taken, and not taken over in time
  int64_t rejected = 0;               // sum of the reasons
  std::vector<RejectReason> reasons;  // those that happened, most frequent first
  double asked_rate = 0;              // looks a second; 0: not known, or not asked for
  double most_rate = 0;               // looks a second that are never exceeded, where none were asked for
  double max_overhead = 0;            // share of a CPU that may be taken from the target; 0: no limit
  double achieved_rate = 0;           // looks taken a second of recording; 0: not known
  std::string recorded_by;            // another recorder: "perf 6.1.0"
  std::vector<std::string> ways;      // of reading, each once, in the order of the processes
  int64_t native = 0;                 // samples with native frames
  int64_t native_whole = 0, native_restarted = 0, native_cut = 0, native_unmerged = 0;
  int64_t native_without_event = 0;  // threads that ran at once and had no perf event, at the most
  int64_t kernel_threads = 0;        // of the kernel, inside the processes: they have no samples
  Nanoseconds target_time = 0;       // taken from the targets' CPUs
  Nanoseconds recorder_time = 0;     // CPU time of the recorder
  int64_t left_out = 0;  // frames, or their names or lines: the program has more of them than are held
  Nanoseconds elapsed = 0;
  Nanoseconds looked = 0;  // how long each process was recorded, added up; 0: not known, or one for `elapsed`
  size_t processes = 0;

  double rejected_share() const { return samples > 0 ? double(rejected) / double(samples) : 0.0; }
  // Nobody asked for a rate, and it is what the limit of overhead allows.
  bool rate_by_overhead() const;
  // Of one CPU, taken from a process while it was recorded, as an average of all.
  double target_share() const {
    const Nanoseconds of = looked > 0 ? looked : elapsed;
    return of > 0 ? double(target_time) / double(of) : 0.0;
  }
  // Above 1 % every output warns: the shares may lean away from what could not be read.
  bool needs_warning() const { return rejected_share() > 0.01; }
  bool in_kernel() const { return std::any_of(ways.begin(), ways.end(), is_in_kernel); }
};

QualitySummary summarize_quality(const Profile& profile);

// "12,345 samples (199 Hz of 200 Hz asked), 3 missed, 12 retried, 2 rejected (0.02 %: 2 moved while read);
// read: same CPU (real time); took 0.21 % of a CPU from the target, recorder 0.9 % of a CPU"
std::string quality_line(const QualitySummary& quality);
// One sentence when needs_warning(), else empty.
std::string quality_warning(const QualitySummary& quality);
// One sentence when looking has slowed the program down so that it is felt, or more than was allowed; else
// empty.
std::string cost_warning(const QualitySummary& quality);

}  // namespace phlox::profile
