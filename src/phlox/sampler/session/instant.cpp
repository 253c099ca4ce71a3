#include "phlox/sampler/session/instant.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "phlox/process/cpu_list.h"
#include "phlox/process/resident_memory.h"
#include "phlox/python/code_object.h"
#include "phlox/sampler/assemble/wait_target_files.h"
#include "phlox/sampler/capture/process_sampler.h"
#include "phlox/sampler/session/program.h"
#include "phlox/sampler/session/scheduling.h"
#include "phlox/sampler/session/system_host.h"

namespace phlox::sampler {
namespace {

std::string link_of(pid_t pid, int32_t descriptor) {
  char text[512];
  const ssize_t size = ::readlink(fmt::format("/proc/{}/fd/{}", pid, descriptor).c_str(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

// Searching this much for greenlets takes half a second.
constexpr uint64_t kMostHeap = uint64_t{2} << 30;

python::Heap heap_of(pid_t pid) {
  const auto memory = process::read_resident_memory(pid, kMostHeap);
  if (!memory) return {{}, "greenlets could not be searched for: " + memory.error().message};
  python::Heap heap;
  for (const process::PageRun& run : memory->runs) heap.ranges.push_back({run.start, run.end});
  if (memory->swapped)
    heap.problem = "a part of the program's memory is swapped out; greenlets in it are not found";
  if (memory->cut)
    heap.problem = fmt::format("greenlets were searched for in the first {} GiB of the program's memory only",
                               kMostHeap >> 30);
  return heap;
}

// Enough for the native stacks of 500 threads and more; unwritten pages take no memory.
constexpr size_t kInstantRingBytes = size_t{64} << 20;
// The ring is emptied between two turns. Most dumps need one turn, which samples every thread.
constexpr Nanoseconds kLongestInstant = kSecond / 20;
// If a list of threads was not read in one piece within this time, it will not be.
constexpr Nanoseconds kLongestListing = kSecond;
// The number of frames whose variables are read: nobody reads a longer dump.
constexpr size_t kFramesWithLocals = 200;
// For all frames together; a target decides how many there are, and what they contain.
constexpr size_t kBytesOfLocals = size_t{64} << 20;

// Takes turns until every thread is sampled, and then one more: the list of threads may have changed while it
// was read, and be longer than it seemed.
void read_everybody(Host& host, ProcessSampler& sampler, Workers& workers, Consumer& consumer, Ring& ring,
                    Nanoseconds limit) {
  const Nanoseconds start = host.now();
  for (;;) {
    sampler.turn(host.now(), workers.begin_turn());
    sampler.flush();
    consumer.drain(ring);
    const ProcessSampler::Unseen unseen = sampler.unseen();
    const Nanoseconds since = host.now() - start;
    if (!unseen.any() || sampler.process_gone() || since >= limit) return;
    if (unseen.threads > 0) continue;
    if (since >= std::min(limit, kLongestListing)) return;
    host.sleep_until(host.now() + kSecond / 1000);
  }
}

std::vector<MissingThreads> missing_of(const ProcessSampler& sampler, Nanoseconds limit) {
  std::vector<MissingThreads> missing;
  const std::string over = fmt::format("after {:g} s", static_cast<double>(limit) * 1e-9);
  const ProcessSampler::Unseen unseen = sampler.unseen();
  if (unseen.threads > 0) missing.push_back({unseen.threads, "not sampled " + over});
  if (const size_t workers = sampler.kernel_workers(); workers > 0)
    missing.push_back(
        {workers, "run by the kernel inside the process (io_uring, vhost), without a stack of the program"});
  if (!unseen.list_whole) missing.push_back({0, "the list of threads changed each time it was read"});
  if (const size_t unknown = sampler.stateless().unknown; unknown > 0)
    missing.push_back({unknown, "which thread has that thread state of Python could not be found out"});
  return missing;
}

// The variables of the frames of each thread.
class LocalsReader {
 public:
  LocalsReader(Program& program, const python::LocalsLimits& limits) : program_(program), limits_(limits) {}

  // In place of what was read of this thread before.
  void read(uint32_t thread, std::span<const python::RawFrame> frames) {
    const python::Layout& layout = program_.interpreter.layout;
    auto& rows = rows_[thread];
    rows.clear();
    size_t depth = 0;
    for (const python::RawFrame& frame : frames) {
      if (!frame.code) continue;
      if (rows.size() == kFramesWithLocals || is_cut()) break;
      const auto code = python::read_code(layout, program_.memory, frame.code);
      if (code && code->shim) continue;
      FrameLocals of_frame;
      of_frame.thread = profile::ThreadId(thread);
      of_frame.depth = depth++;
      if (auto variables = python::read_locals(layout, program_.memory, frame.frame, frame.code, limits_)) {
        of_frame.variables = std::move(*variables);
        for (const auto& one : of_frame.variables) bytes_ += sizeof one + one.name.size() + one.value.size();
      }
      rows.push_back(std::move(of_frame));
    }
  }
  bool is_cut() const { return bytes_ > kBytesOfLocals; }
  std::vector<FrameLocals> take() {
    std::vector<FrameLocals> all;
    for (auto& [thread, rows] : rows_) {
      for (auto& frame : rows) all.push_back(std::move(frame));
    }
    return all;
  }

 private:
  Program& program_;
  const python::LocalsLimits& limits_;
  std::map<uint32_t, std::vector<FrameLocals>> rows_;  // by thread
  size_t bytes_ = 0;
};

python::AsyncTasks tasks_of(pid_t pid, Program& program) {
  python::TaskSources sources;
  sources.link = [pid](int32_t descriptor) { return link_of(pid, descriptor); };
  sources.heap = [pid] { return heap_of(pid); };
  return python::read_async_tasks(program.interpreter, program.memory, sources);
}

ProcessSampler::Config config_of(const Program& program, const InstantOptions& options) {
  ProcessSampler::Config config;
  config.rseq_cpu_offset = program.rseq_cpu_offset;
  config.native = options.native;
  config.once = true;
  config.longest_turn = kLongestInstant;
  return config;
}

std::string mode_of(const ProcessSampler& sampler) {
  if (const auto source = sampler.native_source()) {
    return *source == NativeSource::ptrace
               ? "ptrace stop of running threads, with native frames"
               : "same CPU (ordinary class), native frames of blocked threads only";
  }
  const bool stopped = sampler.counts().stopped_alone > 0;
  return stopped ? "same CPU (ordinary class), ptrace stop where that CPU is refused"
                 : "same CPU (ordinary class)";
}

std::string warning_of(const Program& program, const LocalsReader& locals) {
  std::string warning = program.interpreter.warning;
  if (!locals.is_cut()) return warning;
  return warning + fmt::format("{}variables beyond the first {} MiB are not shown",
                               warning.empty() ? "" : "; ", kBytesOfLocals >> 20);
}

}  // namespace

Result<Instant> sample_once(pid_t pid, const InstantOptions& options, profile::Sink& sink,
                            std::vector<python::Attempt>* attempts) {
  SystemHost host;
  auto pidfd = host.watch(pid);
  if (!pidfd) return fail(pidfd);
  const std::atomic<bool> never{false};
  auto found = find_program(host, pid, *pidfd, {}, never, attempts);
  if (!found) return fail(found);
  Program& program = **found;
  const Nanoseconds start = host.now();
  put_host(host, sink, start);
  const profile::ProcessId process(1);
  profile::Process row = program.process_row(host.facts(pid), start);

  LocalsReader locals(program, options.limits);
  ProcessSampler::Config config = config_of(program, options);
  config.pid = pid;
  if (options.locals) {
    config.on_stack = [&](uint32_t thread, std::span<const python::RawFrame> frames) {
      locals.read(thread, frames);
    };
  }
  take_best_class(/*allow_real_time=*/false);
  Ring ring(kInstantRingBytes);
  Identities identities(sink);
  Consumer consumer(program.interpreter.layout, process, sink, identities,
                    [&](profile::Thread& thread) { thread.kernel_name = host.thread_name(pid, thread.tid); });
  WaitTargetFiles::Host shared_files;
  WaitTargetFiles files(pid, shared_files);
  files.begin();
  consumer.with_wait_targets(files);
  memory::ProcessMemory native_memory(pid);
  std::optional<NativeStacks> native;
  if (options.native) {
    native.emplace(pid, native_memory, identities, sink, options.unwind_cache);
    consumer.with_native(*native);
  }
  Instant instant;
  {
    Workers workers(process::read_kept_free_cpus());
    ProcessSampler sampler(config, program.interpreter, program.memory, ring, workers);
    read_everybody(host, sampler, workers, consumer, ring, options.limit);
    if (options.tasks) instant.tasks = tasks_of(pid, program);
    instant.missing = missing_of(sampler, options.limit);
    row.mode = mode_of(sampler);
    sink.emit(process, row);
    consumer.settle_all();
    identities.flush();
    program.name_threads(host, consumer, options.limit);
    sampler.finish(host.now());
  }
  consumer.drain(ring);
  instant.description = program.description();
  instant.warning = warning_of(program, locals);
  if (native) instant.modules = native->take_modules();
  instant.locals = locals.take();
  return instant;
}

}  // namespace phlox::sampler
