// What `phlox doctor` says: each thing that recording needs, out of what was found and tried (findings.h), as
// a row; and what a recording would be. Pure: opens nothing, tries nothing. The words of a failure are those
// that record has for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "phlox/cli/findings.h"

namespace phlox::cli {

enum class Grade {
  works,
  partly,  // recording works, with less
  fails,   // nothing can be recorded
  fact,    // neither good nor bad: for whoever wonders
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

enum class Outlook { good, fair, poor, none };
std::string_view word_of(Outlook outlook);

struct Prospect {
  Outlook outlook = Outlook::none;
  std::string way;   // as the recording would name it; empty: none
  std::string why;   // what is good, or bad, about it
  std::string line;  // all of it: the last of the output
};
Prospect prospect_of(const Findings& findings);

}  // namespace phlox::cli
