#include "phlox/doctor/findings.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>

#include "phlox/process/permission.h"
#include "phlox/process/root_folder.h"
#include "phlox/process/text_file.h"
#include "phlox/process/thread_probe.h"
#include "phlox/profile/native_module.h"
#include "phlox/profile/sink.h"
#include "phlox/python/locate.h"
#include "phlox/sampler/capture/perf_source.h"
#include "phlox/sampler/kernel/kernel_capture.h"
#include "phlox/sampler/session/program.h"
#include "phlox/selection/attach_error.h"
#include "phlox/symbols/kernel_symbols.h"
#include "phlox/symbols/module_names.h"

namespace phlox::doctor {
namespace {

// Long enough for the sampler to settle on a CPU (sampler/capture/sample_timer.h) and to report on its
// samples.
constexpr Nanoseconds kTrial = 3 * kSecond / 4;
constexpr Nanoseconds kEventInterval = 10'000'000;

// Discards the trial's rows.
class NullSink : public profile::Sink {
 public:
  void receive(const profile::AnyRow&) override {}
  Result<void> commit() override { return {}; }
};

void try_scheduling(Findings& f) {
  process::on_a_thread_of_its_own([&] {
    f.scheduling = sampler::take_best_class();
    if (f.scheduling == sampler::SchedulingClass::real_time) return;
    sched_param parameter{};
    parameter.sched_priority = 1;
    f.real_time = ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter) == 0 ? 0 : errno;
  });
}

void try_thread(pid_t pid, Findings& f) {
  process::ThreadProbe probe(pid, pid);
  const auto schedstat = probe.schedstat();
  f.schedstat = schedstat && !schedstat->off();
  f.system_call = probe.blocked_in().has_value();
  sampler::Workers workers;
  sampler::PerfCapture capture(kEventInterval, 1, workers);
  unwind::Registers registers;
  const auto held = capture.hold(pid, probe, registers);
  f.events = held == sampler::NativeCapture::Held::running;
  f.event_refusal = capture.refusal();
  f.kernel_events = capture.numbers().kernel;
  f.most_events = capture.numbers().most;
}

void check_files(pid_t pid, const symbols::DebugSearch& search, Findings& f) {
  const auto maps = process::read_maps(pid);
  if (!maps) return;
  f.files = process::try_files(pid, *maps);
  const auto root = std::make_shared<Descriptor>(process::open_root(pid));
  uint32_t id = 0;
  for (const process::Module& module : process::code_modules_of(*maps)) {
    profile::NativeModule native;
    native.id = profile::ModuleId(++id);
    native.path = module.path;
    native.root = root;
    if (auto file = process::open_module(pid, module, *root)) {
      native.descriptor = std::make_shared<Descriptor>(*std::move(file));
      native.open_path = fmt::format("/proc/self/fd/{}", native.descriptor->get());
    }
    ++f.modules;
    auto lacks = symbols::ModuleNames::open(naming::path_to_open(native), native.path, search).lacks();
    if (lacks) f.missing.push_back({native.id, root, *std::move(lacks)});
  }
  naming::look_up_packages(f.missing);
  std::stable_sort(f.missing.begin(), f.missing.end(),
                   [](const naming::NativeRows::Missing& a, const naming::NativeRows::Missing& b) {
                     return a.names.no_symbols > b.names.no_symbols;
                   });
}

// The first checks of a recording; an error here is the one that record would end with.
Result<void> check_process(pid_t pid, Findings& f) {
  auto state = process::read_process_state(pid);
  if (!state) return fail(state);
  f.state = *state;
  f.its_groups = process::read_control_groups(pid);
  f.its_label = process::read_text(fmt::format("/proc/{}/attr/current", pid)).value_or("");
  f.its_label.resize(std::min(f.its_label.find('\n'), f.its_label.size()));
  f.memory = process::try_memory(pid);
  if (auto possible = process::check_recordable(*state); !possible) return possible;
  if (f.memory.maps == ESRCH) {
    return fail(ErrorKind::target_gone, fmt::format("process {} has ended", pid));
  }
  const std::atomic<bool> stop{false};
  sampler::Options options;
  options.mode = sampler::Mode::same_cpu;
  auto recorder = sampler::Recorder::attach({pid}, options, stop);
  if (!recorder)
    return tl::unexpected<Error>(selection::explain_attach_error(recorder.error(), pid, "record"));
  f.python = (*recorder)->description();
  return {};
}

// Stops no thread, although record might; the other checks show what record would do instead.
void try_recording(pid_t pid, Findings& f) {
  sampler::Options options;
  options.rate_is_limit = true;
  options.duration = kTrial;
  options.max_overhead_percent = 2;
  options.mode = f.no_kernel_capture ? sampler::Mode::same_cpu : sampler::Mode::kernel;
  const std::atomic<bool> stop{false};
  auto recorder = sampler::Recorder::attach({pid}, options, stop);
  if (!recorder && options.mode == sampler::Mode::kernel) {
    f.no_kernel_capture = recorder.error();
    return try_recording(pid, f);
  }
  if (!recorder) {
    f.trial_failed = recorder.error().message;
    return;
  }
  NullSink nowhere;
  const sampler::Outcome outcome = (*recorder)->run(nowhere, stop, [](const sampler::Progress&) {});
  if (outcome.error) {
    f.trial_failed = outcome.error->message;
  } else if (outcome.progress.samples == 0) {
    f.trial_failed = outcome.why_no_python;
  } else {
    f.trial = outcome.progress;
  }
}

}  // namespace

Findings find(std::optional<pid_t> pid, const symbols::DebugSearch& search) {
  Findings f;
  f.pid = pid.value_or(0);
  f.retry = fmt::format("record -p {}", pid ? std::to_string(*pid) : "PID");
  f.host = process::read_host_rights();
  f.groups = process::read_control_groups(::getpid());
  // Must run before there are threads: it forks.
  f.stop = process::try_stop();
  std::optional<process::Stranger> stranger;
  if (!pid) stranger.emplace();
  f.bpf = process::try_bpf();
  if (const auto possible = sampler::KernelCapture::open(1, false, f.retry); !possible)
    f.no_kernel_capture = possible.error();
  try_scheduling(f);
  f.kernel_names = symbols::KernelSymbols::read().size() > 0;
  const pid_t subject = pid.value_or(stranger ? stranger->pid() : 0);
  if (pid) {
    if (auto possible = check_process(*pid, f); !possible) f.refused = possible.error();
  } else if (subject != 0) {
    f.memory = process::try_memory(subject);
    if (!f.memory.readable()) {
      if (const auto state = process::read_process_state(subject))
        f.refused = process::permission_error(process::read_permission_facts(*state), f.retry);
    }
  } else {
    f.refused = Error{ErrorKind::system, "no process could be started to try with", ""};
  }
  if (!pid || f.state) {
    f.cpus = process::try_cpus(subject);
    try_thread(subject, f);
  }
  if (!pid || f.refused) return f;
  check_files(*pid, search, f);
  if (!f.no_kernel_capture || (f.cpus.refused.empty() && f.cpus.kept_free.empty())) try_recording(*pid, f);
  return f;
}

}  // namespace phlox::doctor
