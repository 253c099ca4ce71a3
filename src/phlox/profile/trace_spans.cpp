#include "phlox/profile/trace_spans.h"

namespace phlox::profile {

void TraceSpans::add(const TraceTime& time) {
  if (time.end <= time.start) return;
  const auto [found, fresh] = open_.try_emplace(time.thread.value, Open{{}, time, true});
  if (fresh) return;
  Open& open = found.value();
  if (open.time.ids == time.ids && open.time.end == time.start) {
    open.time.end = time.end;
    open.grown = true;
    return;
  }
  emit_open(open);
  open = Open{{}, time, true};
}

void TraceSpans::flush() {
  for (auto at = open_.begin(); at != open_.end(); ++at) emit_open(at.value());
}

void TraceSpans::close(ThreadId thread) {
  const auto found = open_.find(thread.value);
  if (found == open_.end()) return;
  emit_open(found.value());
  open_.erase(found);
}

void TraceSpans::emit_open(Open& open) {
  if (!open.grown) return;
  open.grown = false;
  if (!open.id) open.id = TraceTimeId(++last_);
  sink_.emit(open.id, open.time);
}

}  // namespace phlox::profile
