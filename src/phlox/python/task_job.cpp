// The function in another thread that a task waits for: a job of a concurrent.futures.ThreadPoolExecutor
// (run_in_executor(), asyncio.to_thread()), or of the threads of anyio and trio. One of the thread's
// variables is the future that the task waits for; with trio, the function that the task gave to the thread.
// view/task_endpoints.cpp knows the same functions of the pools by their names.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "phlox/base/load.h"
#include "phlox/python/task_reader.h"

namespace phlox::python {
namespace {

constexpr std::string_view kPoolFile = "/concurrent/futures/thread.py";
constexpr std::string_view kAnyioFile = "/anyio/_backends/_asyncio.py";
constexpr std::string_view kTrioFile = "/trio/_core/_thread_cache.py";
constexpr std::string_view kAsgirefFile = "/asgiref/sync.py";
constexpr uint64_t kMaxVariables = 200;  // in one function
constexpr size_t kJobTries = 5;
// Of a thread: the pool's own are among them. Trio's thread with anyio has nine before the job.
constexpr size_t kOutermostFunctions = 16;

// SyncToAsync's, and in newer versions functions in its __call__().
constexpr std::array<std::string_view, 3> kAsgirefNames = {"thread_handler", "func", "run_child"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Between the function with that variable and the job: a frame of the pool's own (3.14+), and some of trio,
// anyio and asgiref.
bool runs_jobs(const TaskFunction& function) {
  return function.file.ends_with(kPoolFile) ||
         (is_one_of(kAsgirefNames, function.name) && function.file.ends_with(kAsgirefFile)) ||
         (function.name == "wrapper" && function.file.ends_with("/anyio/_backends/_trio.py")) ||
         (function.name == "capture" && function.file.ends_with("/outcome/_impl.py")) ||
         (function.name == "worker_fn" && function.file.ends_with("/trio/_threads.py"));
}

// What the pool itself calls before the job, when it hands over the result, or after that.
bool is_of_pool(const TaskFunction& function) {
  return function.file.ends_with("/concurrent/futures/_base.py") || function.name == "call_soon_threadsafe" ||
         (function.name == "_restore_context" && function.file.ends_with(kAsgirefFile)) ||
         // trio: names the thread, wakes the loop, and checks what the job returned.
         function.file.ends_with(kTrioFile) ||
         (function.name == "iscoroutine" && function.file.ends_with("/inspect.py")) ||
         (function.name == "deliver_worker_fn_result" && function.file.ends_with("/trio/_threads.py")) ||
         (function.name == "task_done" && function.file.ends_with("/queue.py"));
}

}  // namespace

RemoteAddress TaskReader::variable_named(const RawFrame& frame, std::string_view name) {
  const Offset names =
      layout_.code.localsplusnames.present() ? layout_.code.localsplusnames : layout_.code.varnames;
  if (!names.present()) return {};
  const RemoteAddress tuple = memory_.word(frame.code + *names);
  if (!is_plausible(tuple) || module_.type_of(tuple).name != "tuple") return {};
  const uint64_t size = std::min(memory_.word(tuple + *layout_.tuple.ob_size).value, kMaxVariables);
  for (uint64_t i = 0; i < size; ++i) {
    const auto text = module_.objects().string(memory_.word(tuple + *layout_.tuple.ob_item + 8 * i), 200);
    if (!text || *text != name) continue;
    const std::byte* bytes = memory_.find(frame.frame + *layout_.frame.localsplus + 8 * i, 8);
    return bytes == nullptr ? RemoteAddress() : variable(bytes);
  }
  return {};
}

// None: this frame runs no job.
RemoteAddress TaskReader::future_of_job(const RawFrame& frame, const TaskFunction& function) {
  if (function.name == "_handle_job" && function.file.ends_with(kTrioFile))
    return variable_named(frame, "fn");
  if (function.name != "run") return {};
  if (function.file.ends_with(kAnyioFile)) return variable_named(frame, "future");
  if (!function.file.ends_with(kPoolFile)) return {};
  const RemoteAddress item = variable_named(frame, "self");
  return is_plausible(item) ? attribute(item, "future") : RemoteAddress();
}

// The innermost frame of a thread, and its thread id; none: it runs no Python, or cannot be read.
RemoteAddress TaskReader::top_of(RemoteAddress thread, uint64_t& python_id) {
  std::vector<std::byte> state(*layout_.thread.size);
  if (!memory_.read(thread, std::span(state))) return {};
  python_id = load<uint64_t>(state.data() + *layout_.thread.thread_id);
  bool unreadable = false;
  return top_frame(layout_, state.data(), memory_, unreadable);
}

// Of a frame with code. None: the contents are invalid at this moment.
const TaskCodes::Known* TaskReader::known_code(const RawFrame& frame) {
  if (!is_plausible(frame.code) || memory_.word(frame.code + *layout_.object.ob_type) != module_.code_type())
    return nullptr;
  return codes_.find(frame.code);
}

// The frames of a thread, innermost first, without proof.
WalkEnd TaskReader::walk_thread(RemoteAddress thread, std::vector<RawFrame>& frames) {
  constexpr size_t kMostFrames = 1000;
  memory_.forget(thread.value);
  uint64_t python_id = 0;
  const RemoteAddress top = top_of(thread, python_id);
  frames.resize(kMostFrames);
  const WalkResult walk = walk_frames(layout_, top, memory_, std::span(frames));
  frames.resize(walk.count);
  return walk.end;
}

bool TaskReader::read_job_once(RemoteAddress thread, RunningJob& out, RemoteAddress& top,
                               Evidence& evidence) {
  uint64_t python_id = 0;
  top = top_of(thread, python_id);
  std::array<RawFrame, kMaxAwaitFrames> frames;
  WalkResult walk;
  if (!top || !read_raw_frames(top, std::span(frames), walk, evidence)) return false;
  std::vector<TaskFrame> inner;
  for (const RawFrame& frame : std::span(frames).first(walk.count)) {
    if (!frame.code) continue;  // an entry frame
    const TaskCodes::Known* known = known_code(frame);
    if (known == nullptr) return false;
    out.future = future_of_job(frame, codes_.function(known->function));
    if (out.future) {
      while (!inner.empty() && runs_jobs(codes_.function(inner.back().function))) inner.pop_back();
      out.job.python_id = python_id;
      out.job.frames.assign(inner.rbegin(), inner.rend());
      return true;
    }
    if (!known->code.shim)
      inner.push_back({known->function, line_at(*known, frame.frame, frame.code, frame.instruction)});
  }
  return false;
}

std::optional<RunningJob> TaskReader::read_job(RemoteAddress thread) {
  RemoteAddress before;
  for (size_t i = 0; i < kJobTries; ++i) {
    memory_.forget();
    RunningJob job;
    RemoteAddress top;
    Evidence evidence;
    if (!read_job_once(thread, job, top, evidence)) continue;
    memory_.forget();
    uint64_t python_id = 0;
    if (top_of(thread, python_id) == top && evidence.holds(memory_)) return job;
    // Its frames keep changing, but it was this job twice.
    job.job.frames.clear();
    if (i + 1 == kJobTries && job.future == before) return job;
    before = job.future;
  }
  return {};
}

// `frames`: innermost first.
std::optional<JobHead> TaskReader::find_job_head(std::span<const RawFrame> frames) {
  JobHead head;
  size_t functions = 0;
  for (size_t i = frames.size(); i-- > 0 && functions < kOutermostFunctions;) {
    const RawFrame& frame = frames[i];
    if (!frame.code) continue;  // an entry frame
    ++functions;
    const TaskCodes::Known* known = known_code(frame);
    if (known == nullptr) return {};
    const TaskFunction& function = codes_.function(known->function);
    if (!head.future) {
      head.future = future_of_job(frame, function);
    } else if (is_of_pool(function)) {
      return {};
    } else if (!known->code.shim && !runs_jobs(function)) {
      head.frame = frame.frame;
      head.code = frame.code;
      head.function = known->function;
      return head;
    }
  }
  return {};
}

std::optional<JobHead> TaskReader::read_job_head(RemoteAddress thread) {
  std::vector<RawFrame> frames;
  for (size_t i = 0; i < kJobTries; ++i) {
    const WalkEnd end = walk_thread(thread, frames);
    if (end == WalkEnd::base) return find_job_head(frames);
    if (end == WalkEnd::empty || end == WalkEnd::full) return {};
  }
  return {};
}

// Whether the first callback of a future is this function of asyncio.
bool TaskReader::has_callback(RemoteAddress future, std::string_view file, std::string_view name) {
  const RemoteAddress callback = memory_.word(future + *module_.task_fields().callback0);
  if (!callback || module_.type_of(callback).name != "function") return false;
  const RemoteAddress code = code_of_function(callback);
  const TaskCodes::Known* known = code ? codes_.find(code) : nullptr;
  return known != nullptr && is_function(known->function, file, name);
}

// What a callback has in the variables of its closure.
std::vector<RemoteAddress> TaskReader::captured(RemoteAddress callback) {
  // func_closure: after func_code (Include/cpython/funcobject.h).
  const uint64_t head = *layout_.object.size;
  const RemoteAddress code = code_of_function(callback);
  if (!code) return {};
  const RemoteAddress closure =
      memory_.word(callback + head + (memory_.word(callback + head) == code ? 32 : 56));
  if (!is_plausible(closure) || module_.type_of(closure).name != "tuple") return {};
  const uint64_t size = std::min(memory_.word(closure + *layout_.tuple.ob_size).value, kMaxVariables);
  std::vector<RemoteAddress> objects;
  for (uint64_t i = 0; i < size; ++i) {
    const RemoteAddress cell = memory_.word(closure + *layout_.tuple.ob_item + 8 * i);
    if (!is_plausible(cell) || module_.type_of(cell).name != "cell") continue;
    const RemoteAddress object = memory_.word(cell + head);
    if (is_plausible(object)) objects.push_back(object);
  }
  return objects;
}

// The task or job that asyncio.shield() protects; none: this is no future of it, or it protects another one.
RemoteAddress TaskReader::shielded(RemoteAddress future) {
  if (!has_callback(future, "tasks.py", "_outer_done_callback")) return {};
  // By name, `inner` is the last of the variables that are one; 3.14 has `cur_task`, which waits, before it.
  RemoteAddress inner;
  for (RemoteAddress object : captured(memory_.word(future + *module_.task_fields().callback0))) {
    const TypeKind kind = module_.type_of(object).kind;
    if (kind >= TypeKind::c_task) inner = object;
  }
  const TypeKind kind = inner ? module_.type_of(inner).kind : TypeKind::other;
  const bool is_job = kind == TypeKind::c_future && has_callback(inner, "futures.py", "_call_check_cancel");
  const bool is_task = kind >= TypeKind::c_task && kind <= TypeKind::gathering;
  return is_job || is_task ? inner : RemoteAddress();
}

// The executor's future that asyncio's stands for; none: it stands for none.
RemoteAddress TaskReader::concurrent_future(RemoteAddress future) {
  // futures._chain_future() adds this callback first.
  if (!has_callback(future, "futures.py", "_call_check_cancel")) return {};
  for (RemoteAddress object : captured(memory_.word(future + *module_.task_fields().callback0))) {
    const RemoteAddress type = memory_.word(object + *layout_.object.ob_type);
    if (module_.type(type).kind == TypeKind::other && module_.derives(type, "Future")) return object;
  }
  return {};
}

void TaskReader::add_job(RemoteAddress future, TaskReading& out) {
  if (!is_plausible(future)) return;
  out.jobs.push_back(future);
  if (chains_only_) return;
  const RemoteAddress state = attribute(future, "_state");
  const auto text = state ? module_.objects().string(state, 32) : Read<std::string>(std::string());
  if (out.task.kind == AwaitedKind::concurrent_future && text && *text == "PENDING")
    out.task.job = AsyncJob{true, 0, {}};
}

}  // namespace phlox::python
