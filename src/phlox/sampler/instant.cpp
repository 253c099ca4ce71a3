#include "phlox/sampler/instant.h"

#include <map>

#include "phlox/python/code_object.h"
#include "phlox/sampler/process_sampler.h"
#include "phlox/sampler/program.h"
#include "phlox/sampler/scheduling.h"
#include "phlox/target/thread_probe.h"

namespace phlox::sampler {
namespace {

constexpr size_t kRingBytes = size_t{1} << 20;
// The stacks of 500 threads and more.
constexpr size_t kNativeRingBytes = size_t{64} << 20;
// A thread that ran at every attempt gets another chance or two: a single look has no next one.
constexpr int kTurns = 3;
// Frames whose variables are read: beyond, a dump is no longer read by anybody.
constexpr size_t kFramesWithLocals = 200;

}  // namespace

Result<Instant> look_once(pid_t pid, const InstantOptions& options, profile::Sink& sink,
                          std::vector<python::Attempt>* attempts) {
  auto pidfd = watch(pid);
  if (!pidfd) return fail(pidfd);
  const std::atomic<bool> never{false};
  auto found = find_program(pid, *pidfd, {}, never, attempts);
  if (!found) return fail(found);
  Program& program = **found;
  const python::Layout& layout = program.interpreter.layout;
  const Nanoseconds start = clock_now();
  put_host(sink, start);
  const profile::ProcessId process(1);
  profile::Process row = program.process_row();

  std::map<uint32_t, std::vector<FrameLocals>> locals;  // by thread
  ProcessSampler::Config config;
  config.pid = pid;
  config.rseq_cpu_offset = program.rseq_cpu_offset;
  if (options.locals) {
    config.on_stack = [&](uint32_t thread, std::span<const python::RawFrame> frames) {
      auto& rows = locals[thread];
      rows.clear();
      size_t depth = 0;
      for (const python::RawFrame& frame : frames) {
        if (!frame.code) continue;
        if (rows.size() == kFramesWithLocals) break;
        const auto code = python::read_code(layout, program.memory, frame.code);
        if (code && code->shim) continue;
        FrameLocals of_frame;
        of_frame.thread = profile::ThreadId(thread);
        of_frame.depth = depth++;
        if (auto variables =
                python::read_locals(layout, program.memory, frame.frame, frame.code, options.limits)) {
          of_frame.variables = std::move(*variables);
        }
        rows.push_back(std::move(of_frame));
      }
    };
  }
  config.native = options.native;
  if (options.native) config.longest_turn = kSecond;  // nobody's turn comes later
  take_best_class(/*allow_real_time=*/false);
  Ring ring(options.native ? kNativeRingBytes : kRingBytes);
  Identities identities(sink);
  Consumer consumer(layout, process, sink, identities, [&](profile::Thread& thread) {
    thread.kernel_name = target::ThreadProbe(pid, thread.tid).kernel_name();
  });
  memory::ProcessMemory native_memory(pid);
  std::optional<NativeStacks> native;
  if (options.native) {
    native.emplace(pid, native_memory, identities, sink, options.unwind_cache);
    consumer.with_native(*native);
  }
  Counts counts;
  {
    ProcessSampler sampler(config, program.interpreter, program.memory, ring);
    uint64_t rejected = 0;
    for (int turn = 0; turn < kTurns; ++turn) {
      sampler.turn(clock_now());
      const Counts& c = sampler.counts();
      const uint64_t all = c.moved + c.unreadable + c.broken;
      const bool fine = all == rejected && sampler.threads() > 0;
      rejected = all;
      if (fine) break;
    }
    sampler.flush();
    counts = sampler.counts();
    row.way_of_reading = "same CPU (ordinary class)";
    if (counts.stopped_alone > 0) row.way_of_reading += ", ptrace stop where that CPU is refused";
    if (const auto source = sampler.native_source()) {
      row.way_of_reading = *source == NativeSource::ptrace
                               ? "ptrace stop of running threads, with native frames"
                               : "same CPU (ordinary class), native frames of blocked threads only";
    }
    sink.put_process(process, row);
    consumer.drain(ring);
    identities.stretches.flush();
    program.name_threads(consumer);
    sampler.finish(clock_now());
  }
  consumer.drain(ring);
  Instant instant;
  instant.description = program.description();
  instant.warning = program.interpreter.warning;
  if (native) instant.modules = native->take_modules();
  for (auto& [thread, rows] : locals) {
    for (auto& frame : rows) instant.locals.push_back(std::move(frame));
  }
  return instant;
}

}  // namespace phlox::sampler
