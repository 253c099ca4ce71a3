// Joins the times that threads worked for a span of a trace into rows. A thread that goes on working for the
// same one extends its row. As Spans: ids are given when a row is first put. Pure.
#pragma once

#include <cstdint>

#include <tsl/robin_map.h>

#include "phlox/base/spread.h"
#include "phlox/profile/model.h"
#include "phlox/profile/sink.h"

namespace phlox::profile {

class TraceSpans {
 public:
  explicit TraceSpans(Sink& sink) : sink_(sink) {}

  // Of a thread, in the order of time.
  void add(const TraceTime& time);
  // Puts every row that has grown since it was last put.
  void flush();
  // The thread ended.
  void close(ThreadId thread);

 private:
  struct Open {
    TraceTimeId id;  // none: not put yet
    TraceTime time;
    bool grown = false;
  };
  void emit_open(Open& open);

  Sink& sink_;
  tsl::robin_map<uint64_t, Open, Spread> open_;  // by thread
  uint32_t last_ = 0;
};

}  // namespace phlox::profile
