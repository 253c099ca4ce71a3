#include "phlox/sampler/session/system_host.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "phlox/memory/living_thread.h"
#include "phlox/process/process_state.h"
#include "phlox/process/reading_user.h"
#include "phlox/process/text_file.h"
#include "phlox/process/thread_probe.h"
#include "phlox/profile/cpu_shortage.h"
#include "phlox/sampler/capture/sample_timer.h"
#include "phlox/sampler/session/program_finder.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/sampler/session/tree_search.h"

namespace phlox::sampler {

void SystemHost::sleep_until(Nanoseconds when) {
  sampler::sleep_until(when);
}

int SystemHost::wait(std::span<pollfd> descriptors, Nanoseconds longest) {
  const int milliseconds = static_cast<int>((longest + 999'999) / 1'000'000);
  if (::poll(descriptors.data(), descriptors.size(), milliseconds) >= 0 || errno == EINTR) return 0;
  return errno;
}

std::string SystemHost::how_ended(const Descriptor& pidfd) {
  siginfo_t info{};
  // Only a child has a status; its parent still has to reap it. glibc has no name for P_PIDFD before 2.36.
  constexpr auto kPidfd = static_cast<idtype_t>(3);
  if (::waitid(kPidfd, static_cast<id_t>(pidfd.get()), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid != 0) {
    if (info.si_code == CLD_EXITED) return fmt::format("exit {}", info.si_status);
    return fmt::format("signal {} (SIG{})", info.si_status,
                       ::sigabbrev_np(info.si_status) ? ::sigabbrev_np(info.si_status) : "?");
  }
  return "ended";
}

std::unique_ptr<Finder> SystemHost::find_programs(const std::vector<pid_t>& roots, const Options& options,
                                                  const std::vector<Finder::Found>& known) {
  TreeSearch search(roots, true, options.launched || options.follow, options.chosen);
  if (options.launched) search.is_launched();
  search.search(0);
  for (const auto& one : known) search.is_known(*one.program);
  return std::make_unique<ProgramFinder>(std::move(search), options.search_pause);
}

Host::Identity SystemHost::identity(pid_t pid) {
  Identity identity;
  if (const auto stat = process::read_stat(pid)) identity.start_ticks = stat->start_ticks;
  if (const auto status = process::read_status(pid))
    identity.rights = {process::file_user_of(*status), process::sees_our_files(pid)};
  return identity;
}

std::string SystemHost::environment(pid_t pid) {
  return process::read_text(memory::proc_folder(pid) + "/environ").value_or("");
}

std::string SystemHost::thread_name(pid_t pid, pid_t thread) {
  return process::ThreadProbe(pid, thread).kernel_name();
}

size_t SystemHost::kernel_workers(pid_t pid) {
  return process::count_kernel_workers(pid);
}

std::function<std::optional<Nanoseconds>()> SystemHost::watch_end(pid_t pid, const Descriptor& pidfd) {
  return [end = watches_->ends.watch(pid, pidfd)] { return end->used(); };
}

void SystemHost::put_cpu_use(profile::Sink& sink) {
  profile::put_cpu_use(sink, watches_->cpus.since_start());
  profile::put_descendants(sink, watches_->descendants.rows());
}

}  // namespace phlox::sampler
