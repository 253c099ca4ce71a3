// Adds up a recording per function and per line, with the error of sampling in every weight
// (sampling_error.h). The base of report and diff.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/profile/task_time.h"
#include "phlox/view/view.h"

namespace phlox::report {

// exact: a function is (name, file, first line). portable: only what is equal in two installations and
// releases: name, module and last part of the file's path; lines count from the function's first one.
enum class Identity { exact, portable };

struct Share {
  int64_t weight = 0;
  double share = 0;
  double variance = 0;  // of `weight`, from sampling
};

// The library in which a Python function, or a line, spends its time on a CPU, if no native frames are known.
// Empty: no library is known.
struct CodeBeneath {
  std::string library;  // "libopenblas", "_multiarray_umath"
  double share = 0;     // of that time
};

struct Entry {
  profile::FrameId frame;  // a frame of it (not necessarily the heaviest)
  int32_t line = 0;        // of lines only
  // For Python: with the native code that it calls, because the Python function is the answer to "where". So
  // time in that code counts twice, here and for the native function.
  Share self;
  Share total;           // recursion counted once
  int64_t self_cpu = 0;  // ns, whatever the weight
  // For native functions: the part of `self` in stacks without any Python.
  Share alone;
  int64_t alone_cpu = 0;
  int64_t alone_total = 0;  // the part of `total` in stacks that have no Python further out
  // For Python: the part of `self` in libraries and extensions (weight), and the native frame below it that
  // has most of that; none: no native code is known.
  int64_t foreign = 0;
  profile::FrameId native;
  int64_t native_weight = 0;
  CodeBeneath code = {};  // put_code_beneath() sets it
  uint64_t samples = 0;   // samples of `total`
  // For functions: its position in the common beginning of all similar stacks (1: the outermost); 0: none.
  uint32_t common = 0;
};

struct Analysis {
  int64_t total = 0;  // weight of all samples that passed
  int64_t wall = 0;   // ns, whatever the weight
  int64_t cpu = 0;
  // ns², summed over the samples: cpu² / cpu_squares samples of equal size would be as precise as these.
  double cpu_squares = 0;
  uint64_t samples = 0;
  double step = 0;               // weight between two samples of a thread, averaged with that weight
  double variance = 0;           // of `total`, from sampling
  bool timed = true;             // the times of samples are known
  std::vector<Entry> functions;  // without markers
  std::vector<Entry> lines;
  // By frame id: index + 1 into functions, 0: a marker or not in a sample.
  std::vector<uint32_t> function_of;
};

// `tasks`: the rows that the profile's await time is of; for its error, if it is shown.
Result<Analysis> analyse(const profile::Profile& profile, const view::Choices& choices, Identity identity,
                         const profile::TaskRows* tasks = nullptr);

// The half-width of a two-sided interval with this chance of missing, in standard errors: of the normal
// distribution, or of Student's t for the mean of this many values whose spread is not known.
double quantile(double chance_of_missing, uint32_t values = 0);

inline constexpr double kMissing = 0.01;  // 99 % intervals

}  // namespace phlox::report
