#include "phlox/sampler/session/recorder.h"

#include <sys/resource.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "phlox/base/descriptor.h"
#include "phlox/process/kept_rights.h"
#include "phlox/profile/counters.h"
#include "phlox/sampler/session/kernel_backend.h"
#include "phlox/sampler/session/kernel_choice.h"
#include "phlox/sampler/session/live_recorder.h"
#include "phlox/sampler/session/program.h"
#include "phlox/sampler/session/system_host.h"
#include "phlox/sampler/session/thread_backend.h"

namespace phlox::sampler {
namespace {

namespace counters = profile::counters;

// A recording ends in time even if no Python ever comes up.
Patience patience_of(const Options& options, Nanoseconds start) {
  Patience p;
  p.launched = options.launched;
  p.descendants = options.launched || options.follow;
  p.waiting = options.on_waiting;
  if (options.duration) p.until = start + *options.duration;
  return p;
}

}  // namespace

void put_recorder_counters(profile::Sink& sink, const Progress& now) {
  const auto put = [&](std::string_view name, auto value) {
    sink.emit({{}, std::string(name), static_cast<int64_t>(value)});
  };
  put(counters::kRecorderTime, now.recorder_cpu);
  put(counters::kAskedRate, now.asked_rate_hz * 1000);
  put(counters::kMostRate, now.most_rate_hz * 1000);
  put(counters::kMaxOverhead, now.max_overhead_percent * 1e4);
  put(counters::kElapsed, now.elapsed);
}

Result<std::unique_ptr<Recorder>> Recorder::attach(const std::vector<pid_t>& roots, const Options& options,
                                                   const std::atomic<bool>& stop,
                                                   std::vector<python::Attempt>* attempts) {
  // Descriptors are kept open for each thread, so take what the hard limit grants.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  auto host = std::make_unique<SystemHost>();
  std::string why_not_kernel;
  auto kernel = open_kernel(*host, roots, options, why_not_kernel);
  if (!kernel) return fail(kernel);
  if (options.release) {
    for (const pid_t pid : roots)
      if (*kernel) (*kernel)->expect(pid);
    if (auto released = options.release(); !released) return fail(released);
  }
  std::vector<Descriptor> pidfds;
  std::vector<Finder::Found> programs;
  for (const pid_t pid : roots) {
    auto pidfd = host->watch(pid);
    if (!pidfd) return fail(pidfd);
    for (;;) {
      auto program = find_program(*host, pid, *pidfd, patience_of(options, host->now()), stop, attempts);
      if (!program) return fail(program);
      const pid_t found = (*program)->pid;
      auto its_pidfd = host->watch(found);
      if (!its_pidfd && found != pid) continue;  // it ended at once
      if (!its_pidfd) return fail(its_pidfd);
      const bool twice = std::any_of(programs.begin(), programs.end(),
                                     [&](const auto& one) { return one.program->pid == found; });
      if (!twice) programs.push_back({*std::move(program), *std::move(its_pidfd), 0});
      break;
    }
    pidfds.push_back(*std::move(pidfd));
  }
  if (auto possible = check_kernel(*kernel, programs, options, why_not_kernel); !possible)
    return fail(possible);
  // The capture is attached, and held by descriptors. Before the recorder has threads.
  if (*kernel) process::give_up_other_capabilities();
  std::unique_ptr<Backend> backend;
  auto threads = std::make_unique<ThreadBackend>(*host, options);
  if (*kernel) {
    backend = std::make_unique<KernelBackend>(*host, *std::move(kernel), std::move(threads));
  } else {
    backend = std::move(threads);
  }
  auto recorder = std::make_unique<LiveRecorder>(std::move(host), std::move(backend), roots,
                                                 std::move(pidfds), std::move(programs), options);
  if (!why_not_kernel.empty()) recorder->note(std::move(why_not_kernel));
  return recorder;
}

}  // namespace phlox::sampler
