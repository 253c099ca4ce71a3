#include "phlox/selection/pythons.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>

#include "phlox/base/text.h"
#include "phlox/process/process_state.h"
#include "phlox/python/locate.h"
#include "phlox/python/version.h"

namespace phlox::selection {
namespace {

std::string user_name(uint32_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> buffer;
  const bool known = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  return known ? found->pw_name : std::to_string(uid);
}

// "3.12" from /usr/bin/python3.12: all that is known without the right to read memory.
std::string version_by_name(const std::string& executable) {
  const auto version = python::version_of_file_name(base_name(executable));
  return version ? fmt::format("{}.{}", version->major, version->minor) : "";
}

// Nothing if it is no Python, or has no interpreter running.
std::optional<std::string> version_of(const process::ProcessState& state) {
  const auto found = python::locate(state.pid);
  if (found) return found->version + (found->layout.traits.free_threaded ? "t" : "");
  switch (found.error().kind) {
    case ErrorKind::permission:
      return version_by_name(state.executable);
    case ErrorKind::unsupported_python:
      return "not read";
    default:
      return {};
  }
}

Nanoseconds cpu_time_of(const process::Stat& stat) {
  static const long kTicks = ::sysconf(_SC_CLK_TCK);
  return static_cast<Nanoseconds>(stat.cpu_ticks) * (kSecond / (kTicks > 0 ? kTicks : 100));
}

}  // namespace

Pythons find_pythons(std::span<const pid_t> processes, python::Recogniser& recogniser) {
  Pythons pythons;
  for (const pid_t pid : processes) {
    const auto verdict = recogniser.judge(pid);
    if (verdict == python::Recogniser::Verdict::no || verdict == python::Recogniser::Verdict::unread)
      continue;
    const auto state = process::read_process_state(pid);
    if (!state || state->zombie() || state->kernel_thread()) continue;
    if (verdict == python::Recogniser::Verdict::hidden) {
      ++pythons.hidden;
      continue;
    }
    const auto version = version_of(*state);
    if (!version) continue;
    pythons.found.push_back({pid, state->status.parent, state->stat.start_ticks,
                             user_name(state->status.uid.effective), *version, state->title(),
                             cpu_time_of(state->stat)});
  }
  return pythons;
}

}  // namespace phlox::selection
