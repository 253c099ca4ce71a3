#include "phlox/sampler/session/warnings.h"

#include <fmt/format.h>

namespace phlox::sampler {

std::vector<std::string> refusals(const Options& options, const Progress& progress) {
  std::vector<std::string> warnings;
  if (progress.cpu_refused > 0) {
    const bool stops = may_stop(options.mode) && progress.stops > 0;
    warnings.push_back(
        fmt::format("{} samples found their thread on a CPU that phlox may not use (a cpuset of its own, or "
                    "a CPU that is "
                    "kept free): {}",
                    progress.cpu_refused,
                    stops ? "it was stopped for microseconds instead (--mode same-cpu stops no thread)"
                          : "it was read as it ran, unproved"));
  }
  if (progress.stop_refused > 0) {
    warnings.push_back(fmt::format(
        "{} samples of threads that could not be stopped (somebody else traces them, or phlox has no "
        "right to): {}",
        progress.stop_refused,
        options.native ? "they are without native frames" : "they were read as they ran, unproved"));
  }
  return warnings;
}

std::string not_every_python(bool chosen, const std::string& why) {
  return fmt::format("not every Python that {} could be recorded: {}", chosen ? "is asked for" : "it started",
                     why);
}

std::string ends_refused(const std::string& refused) {
  return fmt::format(
      "the kernel refused to watch for the ends of processes ({}): what a process used just before its end "
      "may be missing; is there a limit on open files? ulimit -n",
      refused);
}

std::string became_another(pid_t pid, const std::string& executable) {
  return fmt::format("process {} became another program, {}, in which no Python came up", pid, executable);
}

std::string pythons_too_brief(size_t pythons, const std::string& command_line) {
  return fmt::format("{} Python{} that {} started lived too briefly to be read ({})", pythons,
                     pythons == 1 ? "" : "s", pythons == 1 ? "was" : "were", command_line);
}

std::string forks_too_brief(size_t processes, const std::string& command_line) {
  return fmt::format("{} process{} that {} forked lived too briefly to be read{}", processes,
                     processes == 1 ? "" : "es", processes == 1 ? "was" : "were",
                     command_line.empty() ? std::string() : fmt::format(" ({})", command_line));
}

}  // namespace phlox::sampler
