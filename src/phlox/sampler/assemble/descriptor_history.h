// What the descriptors of a process named, and for which time that is known: a link that is the same before
// and after did not change in between, because it contains the number of a socket or pipe, or a path. So a
// wait that is reported when it may be over still has its name, and never another's. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include "phlox/base/clock.h"

namespace phlox::sampler {

class DescriptorHistory {
 public:
  // Read between these two moments. Empty: there is no such descriptor.
  void saw(int descriptor, std::string link, Nanoseconds before, Nanoseconds after) {
    if (known_.size() >= kMost && !known_.contains(descriptor)) known_.clear();
    Known& known = known_[descriptor];
    if (known.link != link) known = {std::move(link), after, before};
    known.last = before;
  }
  // During the whole time, or at some moment, between these two; nullptr: not known.
  const std::string* all_the_while(int descriptor, Nanoseconds from, Nanoseconds until) const {
    const auto found = known_.find(descriptor);
    return found != known_.end() && found->second.first <= from && found->second.last >= until
               ? named(found->second)
               : nullptr;
  }
  const std::string* some_time(int descriptor, Nanoseconds from, Nanoseconds until) const {
    const auto found = known_.find(descriptor);
    return found != known_.end() && found->second.first <= until && found->second.last >= from
               ? named(found->second)
               : nullptr;
  }

 private:
  static constexpr size_t kMost = 10'000;

  struct Known {
    std::string link;
    Nanoseconds first = 0, last = 0;
  };
  static const std::string* named(const Known& known) { return known.link.empty() ? nullptr : &known.link; }

  std::unordered_map<int, Known> known_;
};

}  // namespace phlox::sampler
