// The output of `phlox doctor`: a row for each need of recording, from what was found and tried (findings.h),
// and how a recording would be. Pure: opens nothing, tries nothing. A failure has the text that record has
// for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "phlox/doctor/findings.h"

namespace phlox::doctor {

enum class Grade {
  works,
  partly,  // recording works, with less
  fails,   // nothing can be recorded
  fact,    // neither good nor bad: for information
};
std::string_view word_of(Grade grade);  // "yes", "partly", "no", ""

struct Check {
  std::string name;  // "real time"
  Grade grade = Grade::fact;
  std::string found;
  std::vector<std::string> hints;
};
// In the order in which a recording needs them.
std::vector<Check> checks_of(const Findings& findings);

enum class Forecast { good, fair, poor, none };
std::string_view word_of(Forecast forecast);

struct Plan {
  Forecast forecast = Forecast::none;
  std::string mode;  // as the recording would name it; empty: none
  std::string why;   // the reason for the judgement
  std::string line;  // all of it: the last line of the output
};
// `status`: the exit status of a recording that is refused.
Plan plan_of(const Findings& findings, int status);

}  // namespace phlox::doctor
