// Writer: the rows of tasks (profile/task_time.h).
#include "phlox/recording/writer.h"
#include "phlox/recording/writer_row.h"

namespace phlox::recording {
namespace {

// Most rows of a long recording have all bins; a row whose tasks never changed has none.
std::optional<std::string_view> changes_of(const profile::TaskTime& t) {
  if (!t.changes) return {};
  const auto& bins = t.changes->bins;
  if (t.changes == profile::TaskChanges()) return std::string_view("", 0);
  return std::string_view(reinterpret_cast<const char*>(bins.data()), sizeof bins);
}

}  // namespace

void Writer::put_task_census(profile::TaskCensusId id, const profile::TaskCensus& c) {
  Row row(task_census_);
  row.id(id, before_.task_censuses).integer(processes_.row(c.process.value));
  for (const uint64_t number : {c.times, static_cast<uint64_t>(c.span), static_cast<uint64_t>(c.cost),
                                c.tasks, c.unproved, c.ended, c.beyond, c.without_stack})
    row.integer(static_cast<int64_t>(number));
  row.optional_text(c.problem);
  step(task_census_);
}

void Writer::put_event_loop(profile::EventLoopId id, const profile::EventLoop& l) {
  Row(event_loop_)
      .id(id, before_.event_loops)
      .integer(processes_.row(l.process.value))
      .optional(reference(l.thread ? threads_.row(l.thread.value) : 0))
      .text(l.type);
  step(event_loop_);
}

void Writer::put_task_stack(profile::TaskStackId id, const profile::TaskStack& s) {
  Row(task_stack_).id(id, before_.task_stacks).id(s.parent, before_.task_stacks).id(s.frame, before_.frames);
  step(task_stack_);
}

void Writer::put_task_time(profile::TaskTimeId id, const profile::TaskTime& t) {
  Row(task_time_)
      .id(id, before_.task_times)
      .id(t.loop, before_.event_loops)
      .id(t.stack, before_.task_stacks)
      .value(t.state)
      .optional_text(t.kind)
      .optional_text(t.awaited)
      .integer(t.time)
      .integer(static_cast<int64_t>(t.seen))
      .integer(t.longest)
      .integer(static_cast<int64_t>(t.at_end))
      .integer(static_cast<int64_t>(t.went_on))
      .optional_blob(changes_of(t));
  step(task_time_);
}

void Writer::put_task_group(profile::TaskGroupId id, const profile::TaskGroup& g) {
  Row row(task_group_);
  row.id(id, before_.task_groups).id(g.loop, before_.event_loops).id(g.frame, before_.frames);
  for (const uint64_t number :
       {static_cast<uint64_t>(g.lasted), g.times, g.first, g.last, g.begun, g.rises, g.gone,
        static_cast<uint64_t>(g.mean_begin), static_cast<uint64_t>(g.last_begin), g.unobserved})
    row.integer(static_cast<int64_t>(number));
  step(task_group_);
}

void Writer::put_ready_tasks(profile::ReadyTasksId id, const profile::ReadyTasks& r) {
  Row(ready_tasks_)
      .id(id, before_.ready_tasks)
      .id(r.loop, before_.event_loops)
      .integer(r.time)
      .integer(r.took)
      .integer(static_cast<int64_t>(r.tasks));
  step(ready_tasks_);
}

void Writer::put_task_waiter(profile::TaskWaiterId id, const profile::TaskWaiter& w) {
  Row(task_waiter_)
      .id(id, before_.task_waiters)
      .id(w.group, before_.task_groups)
      .id(w.stack, before_.task_stacks)
      .integer(static_cast<int64_t>(w.seen));
  step(task_waiter_);
}

void Writer::put_job_waiter(profile::JobWaiterId id, const profile::JobWaiter& w) {
  Row(job_waiter_)
      .id(id, before_.job_waiters)
      .integer(processes_.row(w.process.value))
      .id(w.frame, before_.frames)
      .id(w.stack, before_.task_stacks)
      .integer(static_cast<int64_t>(w.seen));
  step(job_waiter_);
}

void Writer::put_request(profile::RequestId id, const profile::Request& r) {
  Row(request_)
      .id(id, before_.requests)
      .id(r.loop, before_.event_loops)
      .optional(r.earliest_begin)
      .integer(r.latest_begin)
      .integer(r.earliest_end)
      .optional(r.latest_end)
      .integer(static_cast<int64_t>(r.seen));
  step(request_);
}

void Writer::put_request_part(profile::RequestPartId id, const profile::RequestPart& p) {
  Row(request_part_)
      .id(id, before_.request_parts)
      .id(p.request, before_.requests)
      .id(p.time, before_.task_times)
      .integer(p.awaited ? 1 : 0)
      .integer(p.duration);
  step(request_part_);
}

}  // namespace phlox::recording
