// Which samples pass the choices, and with which weight. What happens to them is decided elsewhere
// (call_tree.h, and outputs that need more than one tree).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/view/choices.h"

namespace phlox::view {

class Endpoints;
class WorkRule;

// When the recording began: Choices::from and to count from here.
Nanoseconds recording_start(const profile::Profile& profile);

// An interval that is partly inside the time range counts by its overlap.
class SampleFilter {
 public:
  static Result<SampleFilter> make(const profile::Profile& profile, const Choices& choices);
  // A filter that reports the activity (Part::doing) even if everything is shown.
  static Result<SampleFilter> make_judging(const profile::Profile& profile, const Choices& choices);
  struct Part {
    bool passes = false;
    // Without a rule (make() for Show::everything): computing.
    Doing doing = Doing::computing;
    Nanoseconds start = 0;  // of the overlap
    Nanoseconds wall = 0;
    Nanoseconds cpu = 0;
    int64_t samples = 0;  // samples; at least 1 for an interval that passes
    int64_t value = 0;    // what the event counted
    int64_t weight = 0;   // one of the three, or the event's count, as chosen
  };
  Part part(const profile::Sample& sample) const;
  // Ignores `show`.
  Part part_of_everything(const profile::Sample& sample) const;
  // For a filter that judges.
  const WorkRule& rule() const { return *rule_; }

 private:
  static Result<SampleFilter> make(const profile::Profile& profile, const Choices& choices, bool judging);

  std::shared_ptr<const WorkRule> rule_;
  Show show_ = Show::everything;
  std::vector<bool> threads_;  // by id - 1
  // Of the chosen endpoints; none: all.
  std::shared_ptr<const Endpoints> endpoints_;
  std::vector<bool> chosen_;  // as chosen_endpoints()
  uint8_t states_ = 0;
  Weight weight_ = Weight::wall;
  Nanoseconds from_ = 0;
  Nanoseconds to_ = 0;
};

}  // namespace phlox::view
