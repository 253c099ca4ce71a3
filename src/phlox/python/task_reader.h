// One asyncio task: its coroutine, the object that it awaits, and so on down to the future.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/python/async_tasks.h"
#include "phlox/python/asyncio_module.h"
#include "phlox/python/code_object.h"
#include "phlox/python/evidence.h"
#include "phlox/python/frame_walk.h"
#include "phlox/python/page_memory.h"
#include "phlox/python/task_codes.h"

namespace phlox::python {

class GreenletModule;
class TrioModule;
struct GreenletState;

struct TaskReading {
  AsyncTask task;
  bool pending = true;  // false: it is done, and not shown
  bool gone = false;    // it is no longer a task
  RemoteAddress loop;
  std::vector<RemoteAddress> awaits;
  Evidence evidence;
  std::vector<RemoteAddress> jobs;    // RunningJob::future of what it waits for in threads
  RemoteAddress lock;                 // that it waits for
  std::vector<RemoteAddress> holds;   // locks in whose `async with` it is
  std::vector<RemoteAddress> owners;  // tasks that have the lock it waits for, by the lock itself
  // For a greenlet, `loop` is the greenlet in which its thread began.
  bool greenlet = false;
  bool hub = false;          // of gevent
  bool of_eventlet = false;  // its parent is the hub
  RemoteAddress parent;
  RemoteAddress running_frame, running_code;  // of the coroutine that executes; none: it does not run
};

// What a thread of an executor, of anyio or of trio does now.
struct RunningJob {
  // That the task waits for: a concurrent.futures.Future, or asyncio's for anyio; for trio, a function.
  RemoteAddress future;
  AsyncJob job;
};

// The part of a RunningJob that stays the same for as long as it runs.
struct JobHead {
  RemoteAddress future;
  RemoteAddress frame, code;  // of the function
  uint32_t function = 0;      // index into AsyncTasks::functions

  friend bool operator==(const JobHead&, const JobHead&) = default;
};

inline constexpr uint64_t kMaxStack = uint64_t{1} << 16;  // entries of one frame

class TaskReader {
 public:
  TaskReader(const Layout& layout, PageMemory& memory, AsyncioModule& module, TaskCodes& codes,
             const DescriptorLink& link)
      : layout_(layout), memory_(memory), module_(module), codes_(codes), link_(link) {}

  // From now on, also reads tasks of trio.
  void with_trio(const TrioModule& trio) { trio_ = &trio; }
  // From now on, reads greenlets.
  void with_greenlets(GreenletModule& greenlets) { greenlets_ = &greenlets; }
  // TaskSources::chains_only.
  void with_chains_only() { chains_only_ = true; }
  // False: invalid contents, at this moment.
  bool read(RemoteAddress task, TaskReading& out);
  // By its thread state. None: it runs no such function, or one that changed each time.
  std::optional<RunningJob> read_job(RemoteAddress thread);
  // The same without proof: if a second look finds the same, it ran in between. None: also for a function
  // that is not in Python.
  std::optional<JobHead> read_job_head(RemoteAddress thread);
  // Adds what a running task has called to its frames, if that is proved (AsyncTask::called). False: its
  // coroutine was not found among this thread's frames.
  bool read_callees(RemoteAddress thread, TaskReading& out);

 private:
  // A coroutine or generator, at rest or running.
  struct Generator {
    RemoteAddress frame, code;
    uint64_t instruction = 0;
    bool executing = false;
    bool finished = false;
    RemoteAddress delegate;  // the object that it awaits; none: it does not await
    RemoteAddress first;     // its first variable
    RemoteAddress bottom;    // of its stack; none: not known, or it has none
    RemoteAddress top;
  };
  // An `__aexit__` of asyncio's locks on the stack of a frame, put there by `async with`.
  struct Exit {
    size_t frame = 0;  // index into the task's frames
    RemoteAddress object;
    bool innermost = false;  // of this frame
  };
  struct Fields {
    RemoteAddress coroutine, waiter, name, loop;
    bool pending = true;
    bool unobserved = false;
  };
  const std::byte* peek(RemoteAddress at, size_t size, Evidence& evidence);
  RemoteAddress variable(const std::byte* at) const;
  bool read_fields(RemoteAddress task, TypeKind kind, Fields& fields, Evidence& evidence);
  bool read_c_fields(RemoteAddress task, Fields& fields, Evidence& evidence);
  bool read_python_fields(RemoteAddress task, Fields& fields);
  bool read_name(RemoteAddress name, TaskReading& out);
  bool read_request(RemoteAddress name, TaskReading& out);
  bool read_generator(RemoteAddress object, Generator& out, Evidence& evidence);
  bool read_embedded(RemoteAddress object, Generator& out, Evidence& evidence);
  bool read_frame_object(RemoteAddress object, Generator& out, Evidence& evidence);
  bool delegates(const Generator& generator, int8_t state);
  bool read_chain(RemoteAddress coroutine, TaskReading& out);
  bool add_frame(const Generator& generator, TaskReading& out);
  void note_exits(const Generator& generator, TaskReading& out);
  RemoteAddress object_of_exit(RemoteAddress entry, RemoteAddress next);
  void find_held_locks(TaskReading& out);
  bool is_function(uint32_t function, std::string_view file, std::string_view name) const;
  RemoteAddress code_of_function(RemoteAddress function);
  int32_t line_at(const TaskCodes::Known& known, RemoteAddress frame, RemoteAddress code,
                  uint64_t instruction);
  bool is_done(RemoteAddress future, TypeKind kind, Evidence& evidence);
  void note_running(TaskReading& out) const {
    out.running_frame = leaf_.frame;
    out.running_code = leaf_.code;
  }
  void explain(RemoteAddress waiter, TaskReading& out);
  bool explain_by_frame(TaskReading& out);
  void explain_lock(TaskReading& out);
  void add_children(RemoteAddress collection, TaskReading& out);
  bool is_lost(RemoteAddress future, Evidence& evidence);
  RemoteAddress frame_variable(size_t from_leaf, uint32_t index);
  RemoteAddress attribute(RemoteAddress object, std::string_view name);
  void add_end_of_sleep(AsyncTask& task);
  void add_socket_of(RemoteAddress transport, AsyncTask& task);
  void add_descriptor(int64_t descriptor, AsyncTask& task);
  void add_socket(RemoteAddress socket, AsyncTask& task);
  void add_details(AsyncTask& task);
  bool read_trio(RemoteAddress task, TaskReading& out);
  bool read_trio_request(RemoteAddress task, TaskReading& out);
  void explain_trio(RemoteAddress task, RemoteAddress nurseries, TaskReading& out);
  void explain_trio_nursery(RemoteAddress nurseries, TaskReading& out);
  void explain_trio_lock(RemoteAddress task, TaskReading& out);
  RemoteAddress trio_job();
  bool is_of_trio_task(RemoteAddress object);
  bool is_of_trio(const TaskReading& reading, size_t from_leaf, std::string_view file,
                  std::string_view name) const;
  bool read_greenlet(RemoteAddress greenlet, TaskReading& out);
  std::string greenlet_name(RemoteAddress greenlet, const GreenletState& state, bool hub);
  bool read_frames(RemoteAddress top, TaskReading& out);
  std::optional<std::vector<RawFrame>> frames_beyond(RemoteAddress thread, RemoteAddress frame,
                                                     RemoteAddress code);
  void add_callees(std::span<const RawFrame> frames, TaskReading& out);
  bool read_raw_frames(RemoteAddress top, std::span<RawFrame> frames, WalkResult& walk, Evidence& evidence);
  RemoteAddress top_of(RemoteAddress thread, uint64_t& python_id);
  const TaskCodes::Known* known_code(const RawFrame& frame);
  WalkEnd walk_thread(RemoteAddress thread, std::vector<RawFrame>& frames);
  bool read_job_once(RemoteAddress thread, RunningJob& out, RemoteAddress& top, Evidence& evidence);
  RemoteAddress future_of_job(const RawFrame& frame, const TaskFunction& function);
  RemoteAddress variable_named(const RawFrame& frame, std::string_view name);
  std::optional<JobHead> find_job_head(std::span<const RawFrame> frames);
  std::vector<RemoteAddress> captured(RemoteAddress callback);
  RemoteAddress concurrent_future(RemoteAddress future);
  bool has_callback(RemoteAddress future, std::string_view file, std::string_view name);
  RemoteAddress shielded(RemoteAddress future);
  void add_job(RemoteAddress future, TaskReading& out);
  std::string number_text(RemoteAddress object);

  const Layout& layout_;
  PageMemory& memory_;
  AsyncioModule& module_;
  TaskCodes& codes_;
  const DescriptorLink& link_;
  const TrioModule* trio_ = nullptr;
  GreenletModule* greenlets_ = nullptr;
  bool chains_only_ = false;
  // State of the current chain.
  std::vector<RemoteAddress> frames_, codes_of_frames_;  // of each frame of the task
  std::vector<Exit> exits_;
  Generator leaf_;
  const TaskCodes::Known* leaf_code_ = nullptr;
  RemoteAddress leaf_future_, leaf_object_;
  bool runs_ = false, ended_ = false;
};

}  // namespace phlox::python
