// The Host that asks the kernel: system calls and /proc. begin() starts the thread that watches ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phlox/sampler/session/cpu_watch.h"
#include "phlox/sampler/session/descendant_watch.h"
#include "phlox/sampler/session/end_watch.h"
#include "phlox/sampler/session/host.h"

namespace phlox::sampler {

class SystemHost : public Host {
 public:
  Nanoseconds read_clock(clockid_t clock) override { return clock_now(clock); }
  void sleep_until(Nanoseconds when) override;
  int wait(std::span<pollfd> descriptors, Nanoseconds longest) override;

  Result<Descriptor> watch(pid_t pid) override { return sampler::watch(pid); }
  bool has_ended(const Descriptor& pidfd) override { return sampler::has_ended(pidfd); }
  std::string how_ended(const Descriptor& pidfd) override;
  std::unique_ptr<Finder> find_programs(const std::vector<pid_t>& roots, const Options& options,
                                        const std::vector<Finder::Found>& known) override;

  process::ProcessFacts facts(pid_t pid) override { return process::read_process(pid); }
  Image image_of(pid_t pid) override { return sampler::image_of(pid); }
  Identity identity(pid_t pid) override;
  std::string environment(pid_t pid) override;
  std::string thread_name(pid_t pid, pid_t thread) override;
  size_t kernel_workers(pid_t pid) override;

  void begin() override { watches_.emplace(); }
  std::function<std::optional<Nanoseconds>()> watch_end(pid_t pid, const Descriptor& pidfd) override;
  void forget_end(const Descriptor& pidfd) override { watches_->ends.forget(pidfd); }
  std::string ends_refused() override { return watches_->ends.refused(); }
  void meet(pid_t pid) override { watches_->cpus.meet(pid); }
  bool descendants_are_due(Nanoseconds now) override { return watches_->descendants.is_due(now); }
  void check_descendants(Nanoseconds now, const std::vector<pid_t>& of,
                         const std::function<bool(pid_t)>& recorded) override {
    watches_->descendants.check(now, of, recorded);
  }
  void put_cpu_use(profile::Sink& sink) override;

 private:
  struct Watches {
    EndWatch ends;
    CpuWatch cpus;
    DescendantWatch descendants;
  };
  std::optional<Watches> watches_;
};

}  // namespace phlox::sampler
