// The Backend inside the kernel. Programs that the kernel cannot sample get a sampler thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "phlox/sampler/session/backend.h"
#include "phlox/sampler/session/host.h"
#include "phlox/sampler/session/kernel_sources.h"
#include "phlox/sampler/session/thread_backend.h"

namespace phlox::sampler {

class KernelBackend : public Backend {
 public:
  KernelBackend(Host& host, std::unique_ptr<KernelSources> kernel, std::unique_ptr<ThreadBackend> threads)
      : host_(host), kernel_(std::move(kernel)), threads_(std::move(threads)) {}

  void start(std::function<void(Nanoseconds now)> help) override { threads_->start(std::move(help)); }
  void note_start(Program& program) override { kernel_->note_start(program); }
  Begin prepare(Program& program, const Descriptor& pidfd) override;

  bool reports_births() const override { return true; }
  int descriptor() const override { return kernel_->descriptor(); }
  bool drain(Nanoseconds deadline) override { return kernel_->drain(deadline); }
  bool came_much() override;
  std::vector<Birth> births(Nanoseconds until) override { return kernel_->births(until); }
  void leave(const Program& born) override { kernel_->leave(born); }
  bool is_newborn(pid_t pid) const override { return kernel_->is_newborn(pid); }
  bool has_newborn(Nanoseconds now) const override;
  bool has_reported(pid_t pid) const override { return kernel_->has_reported(pid); }
  std::vector<Exec> execs() override { return kernel_->execs(); }
  Brief too_brief() const override { return kernel_->too_brief(); }

 private:
  Begun begin(Program& program, const Result<kernel_process>& place, Ring& ring);

  Host& host_;
  std::unique_ptr<KernelSources> kernel_;
  std::unique_ptr<ThreadBackend> threads_;
};

}  // namespace phlox::sampler
