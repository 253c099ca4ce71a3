// Makes rows of looks: a thread that keeps stack and states extends its row instead of adding one; each
// sampled event has rows of its own. A change
// of the CPU number does not start a row (the row keeps the last one): a thread that moves between CPUs is
// still the same news. Ids are given when a row is first put, not when it begins, so that they come in order
// and a recording only ever appends. Pure.
#pragma once

#include <cstdint>

#include <tsl/robin_map.h>

#include "phlox/base/spread.h"
#include "phlox/profile/model.h"
#include "phlox/profile/sink.h"

namespace phlox::profile {

class Stretches {
 public:
  // No row is longer than this, so that a time range cuts finely enough, and a growing row is never far
  // behind.
  static constexpr Nanoseconds kLongest = kSecond;

  explicit Stretches(Sink& sink) : sink_(sink) {}

  // One look, or several alike: sample.start and .wall are the time since the thread's look before.
  void look(const Sample& sample);
  // Puts every row that grew since it was last put.
  void flush();
  // The thread ended.
  void close(ThreadId thread);

 private:
  struct Open {
    SampleId id;  // none: not put yet
    Sample sample;
    bool grown = false;
  };

  void tell(Open& open);

  Sink& sink_;
  tsl::robin_map<uint64_t, Open, Spread> open_;  // event << 32 | thread
  uint16_t most_event_ = 0;
  uint32_t last_ = 0;
};

}  // namespace phlox::profile
