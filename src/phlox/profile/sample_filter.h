// Which samples the choices let pass, and with how much. What is made of those that pass is not known here
// (call_tree.h, and outputs that need more than one tree).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/choices.h"
#include "phlox/profile/profile.h"

namespace phlox::profile {

class WorkRule;

// When the recording began: what Choices::from and to count from.
Nanoseconds recording_start(const Profile& profile);

// A stretch that is partly inside the time range counts by its overlap.
class SampleFilter {
 public:
  static Result<SampleFilter> make(const Profile& profile, const Choices& choices);
  // One that tells what was done (Part::doing) though everything is shown.
  static Result<SampleFilter> make_judging(const Profile& profile, const Choices& choices);
  struct Part {
    bool passes = false;
    // Without a rule (make() for Show::everything): computing.
    Doing doing = Doing::computing;
    Nanoseconds start = 0;  // of the overlap
    Nanoseconds wall = 0;
    Nanoseconds cpu = 0;
    int64_t samples = 0;  // looks; at least 1 of a stretch that passes
    int64_t value = 0;    // what the event counted
    int64_t weight = 0;   // one of the three, or what the event counted, as chosen
  };
  Part part(const Sample& sample) const;
  // Without looking at `show`.
  Part part_of_everything(const Sample& sample) const;
  // Of one that judges.
  const WorkRule& rule() const { return *rule_; }

 private:
  static Result<SampleFilter> make(const Profile& profile, const Choices& choices, bool judging);

  std::shared_ptr<const WorkRule> rule_;
  Show show_ = Show::everything;
  std::vector<bool> threads_;  // by id - 1
  uint8_t states_ = 0;
  Weight weight_ = Weight::wall;
  Nanoseconds from_ = 0;
  Nanoseconds to_ = 0;
};

}  // namespace phlox::profile
