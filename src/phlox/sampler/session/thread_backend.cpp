#include "phlox/sampler/session/thread_backend.h"

#include <utility>

#include "phlox/process/cpu_list.h"
#include "phlox/sampler/observe/plan.h"
#include "phlox/sampler/session/sampler_thread.h"

namespace phlox::sampler {

ProcessSampler::Config config_of(const Program& program, const Options& options) {
  ProcessSampler::Config config;
  config.pid = program.pid;
  config.native = asked_source({options.mode, options.native});
  config.rseq_cpu_offset = program.rseq_cpu_offset;
  config.birth = program.birth;
  config.mode = options.mode == Mode::kernel ? Mode::automatic : options.mode;
  return config;
}

void ThreadBackend::start(std::function<void(Nanoseconds now)> help) {
  if (options_.rate_hz <= 0 || options_.native) return;
  // On CPUs without a tick (nohz_full), the kernel counts the time of running threads too late.
  if (process::read_kept_free_cpus().empty()) watch_.emplace(options_.rate_hz);
  timer_.emplace(options_.rate_hz, [this, help = std::move(help)](Nanoseconds now) {
    if (watch_) watch_->help(now);
    help(now);
  });
}

Backend::Begin ThreadBackend::prepare(Program& program, const Descriptor&) {
  return [this, &program](Ring& ring) { return Begun{begin(program, ring), {}}; };
}

std::unique_ptr<SampleSource> ThreadBackend::begin(Program& program, Ring& ring) {
  const SamplerThread::SharedTimers timers{watch_ ? &*watch_ : nullptr, timer_ ? &*timer_ : nullptr};
  return std::make_unique<SamplerThread>(host_, config_of(program, options_), options_, program.interpreter,
                                         program.memory, ring, timers);
}

}  // namespace phlox::sampler
