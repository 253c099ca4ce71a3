// The Backend with a sampler thread for each program: reads it from outside, by the mode of the options.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "phlox/sampler/capture/process_sampler.h"
#include "phlox/sampler/session/backend.h"
#include "phlox/sampler/session/host.h"
#include "phlox/sampler/session/idle_watch.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/sampler/session/shared_timer.h"

namespace phlox::sampler {

class ThreadBackend : public Backend {
 public:
  ThreadBackend(Host& host, const Options& options) : host_(host), options_(options) {}

  void start(std::function<void(Nanoseconds now)> help) override;
  Begin prepare(Program& program, const Descriptor& pidfd) override;
  std::unique_ptr<SampleSource> begin(Program& program, Ring& ring);

 private:
  Host& host_;
  Options options_;
  std::optional<IdleWatch> watch_;
  std::optional<SharedTimer> timer_;
};

// How a program is sampled from outside.
ProcessSampler::Config config_of(const Program& program, const Options& options);

}  // namespace phlox::sampler
