// Joins samples into rows. A thread that keeps its stack and states extends its row instead of adding one;
// each sampled event has rows of its own. A change of the CPU number does not start a row (the row keeps the
// last number). Ids are given when a row is first put, not when it begins, so they come in order and a
// recording only appends. Pure.
#pragma once

#include <cstdint>

#include <tsl/robin_map.h>

#include "phlox/base/spread.h"
#include "phlox/profile/model.h"
#include "phlox/profile/sink.h"

namespace phlox::profile {

class Spans {
 public:
  // No row is longer than this, so that a time range cuts precisely, and a growing row is never far behind.
  static constexpr Nanoseconds kLongest = kSecond;

  explicit Spans(Sink& sink) : sink_(sink) {}

  // One sample, or several equal ones: sample.start and .wall are the time since the thread's last sample.
  void add(const Sample& sample);
  // Puts every row that has grown since it was last put.
  void flush();
  // The thread ended.
  void close(ThreadId thread);

 private:
  struct Open {
    SampleId id;  // none: not put yet
    Sample sample;
    bool grown = false;
  };

  void emit_open(Open& open);

  Sink& sink_;
  tsl::robin_map<uint64_t, Open, Spread> open_;  // event << 32 | thread
  uint16_t most_event_ = 0;
  uint32_t last_ = 0;
};

}  // namespace phlox::profile
