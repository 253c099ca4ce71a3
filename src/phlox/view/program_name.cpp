#include "phlox/view/program_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "phlox/view/process_names.h"

namespace phlox::view {

using namespace profile;

namespace {

// Texts before a number that differs for each worker: Lib/multiprocessing/spawn.py, popen_spawn_posix.py and
// forkserver.py of CPython; joblib's loky/backend/popen_loky_posix.py; process names that are set as titles.
constexpr std::array<std::string_view, 10> kOwnNumbers = {
    "pipe_handle=",     "tracker_fd=",           "parent_pid=",  "--process-name LokyProcess-",
    "--pipe ",          "--parent-pid ",         "LokyProcess-", "ForkPoolWorker-",
    "SpawnPoolWorker-", "ForkServerPoolWorker-",
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_own(std::string_view before, std::string_view number, const Process& process) {
  if (std::any_of(kOwnNumbers.begin(), kOwnNumbers.end(),
                  [&](std::string_view words) { return before.ends_with(words); }))
    return true;
  // Short numbers are probably something else: a container's first processes.
  constexpr size_t kShortest = 3;
  return number.size() >= kShortest &&
         (number == std::to_string(process.pid) || number == std::to_string(process.namespace_pid));
}

}  // namespace

std::string program_name(const Process& process) {
  const std::string& line = process.command();
  if (line.empty()) return fmt::format("pid {}", process.pid);
  std::string name;
  // The name that is added for display distinguishes the processes, too.
  const std::string_view text = std::string_view(line).substr(0, line.find(kNameDivider));
  for (size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      name += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    const bool whole = (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
    if (whole && is_own(text.substr(0, at), text.substr(at, end - at), process)) {
      name += '*';
    } else {
      name += text.substr(at, end - at);
    }
    at = end;
  }
  return name;
}

}  // namespace phlox::view
