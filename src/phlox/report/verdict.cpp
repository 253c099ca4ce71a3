#include "phlox/report/verdict.h"

namespace phlox::report {

bool is_certain(Verdict verdict) {
  return verdict != Verdict::same && verdict != Verdict::unclear;
}

Verdict verdict_of(const Comparison& found, const Amount& before, const Amount& after) {
  switch (found.outcome) {
    case Outcome::same:
      return Verdict::same;
    case Outcome::unclear:
      return Verdict::unclear;
    case Outcome::less:
      return after.value == 0 ? Verdict::vanished : Verdict::shrank;
    case Outcome::more:
      return before.value == 0 ? Verdict::appeared : Verdict::grew;
  }
  return Verdict::unclear;
}

std::string_view verdict_name(Verdict verdict, Question question) {
  const bool runs = question == Question::runs;
  switch (verdict) {
    case Verdict::same:
      return runs ? "unchanged" : "same";
    case Verdict::unclear:
      return "inconclusive";
    case Verdict::grew:
      return "grew";
    case Verdict::shrank:
      return "shrank";
    case Verdict::appeared:
      return "new";
    case Verdict::vanished:
      return "vanished";
  }
  return "";
}

}  // namespace phlox::report
