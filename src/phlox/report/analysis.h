// Adds a recording up per function and per line, with the error that sampling leaves in every weight
// (sampling_error.h): what report and diff are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/profile/view.h"

namespace phlox::report {

// exact: a function is (name, file, first line). portable: what stays the same between two installations and
// releases: name, module and last part of the file's path; lines count from the function's first one.
enum class Identity { exact, portable };

struct Share {
  int64_t weight = 0;
  double share = 0;
  double variance = 0;  // of `weight`, by sampling
};

// A library in which the time on a CPU of a Python function, or a line, is spent, where no native frames are
// known. Empty: not known of any.
struct CodeBeneath {
  std::string library;  // "libopenblas", "_multiarray_umath"
  double share = 0;     // of that time
};

struct Entry {
  profile::FrameId frame;  // one that stands for it (the heaviest is not looked for)
  int32_t line = 0;        // of lines
  // Of Python: with the native code beneath, for which it is the answer to "where"; so time in that code
  // counts twice, here and for the native function.
  Share self;
  Share total;           // recursion counted once
  int64_t self_cpu = 0;  // ns, whatever is weighed
  // Of native functions: the part of `self` in stacks without any Python.
  Share alone;
  int64_t alone_cpu = 0;
  // Of Python: what of `self` is spent in libraries and extensions (weight), and the native frame beneath it
  // that has most of it; none: nothing is known of native code.
  int64_t foreign = 0;
  profile::FrameId native;
  int64_t native_weight = 0;
  CodeBeneath code = {};  // put_code_beneath() fills it in
  uint64_t samples = 0;   // looks of `total`
  // Of functions: where it stands in what all stacks that begin alike have in common (1: the outermost); 0:
  // it does not.
  uint32_t common = 0;
};

struct Analysis {
  int64_t total = 0;  // weight of all that passed
  int64_t wall = 0;   // ns, whatever is weighed
  int64_t cpu = 0;
  // ns², summed over the samples: so many samples of one size would say as much as these do: cpu² /
  // cpu_squares.
  double cpu_squares = 0;
  uint64_t samples = 0;
  double step = 0;               // weight between two samples of a thread; each counted by its weight
  double variance = 0;           // of `total`, by sampling
  bool timed = true;             // when samples were is known
  std::vector<Entry> functions;  // markers are not among them
  std::vector<Entry> lines;
  std::vector<uint32_t> function_of;  // by frame id: index + 1 into functions, 0: a marker or not seen
};

Result<Analysis> analyse(const profile::Profile& profile, const profile::Choices& choices, Identity identity);

// How many standard errors the two-sided interval with this chance of missing reaches to either side: of the
// normal distribution, or, for the mean of so many values whose spread is not known, of Student's t.
double quantile(double chance_of_missing, uint32_t values = 0);

inline constexpr double kMissing = 0.01;  // 99 % intervals

}  // namespace phlox::report
