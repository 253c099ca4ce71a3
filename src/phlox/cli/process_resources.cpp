#include "phlox/cli/process_resources.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/process/text_file.h"
#include "phlox/view/resource.h"

namespace phlox::cli {

// What it publishes counts more than its environment: its SDK has read that, and the program's own settings.
std::string ProcessResources::read_new(Known& known) {
  const auto message = known.reader.read_new();
  if (!message) return {};
  const std::string published = view::context_text(*message);
  return published.empty() || known.environment.empty() ? published + known.environment
                                                        : published + "," + known.environment;
}

void ProcessResources::meet(profile::ProcessId id, pid_t pid, Nanoseconds now, const Put& put) {
  std::string environment;
  if (const auto text = process::read_text(fmt::format("/proc/{}/environ", pid)))
    environment = view::resource_text(*text);
  Known& known =
      known_.try_emplace(id.value, Known{process::ContextReader(pid), environment, kFirst, now + kFirst})
          .first->second;
  const std::string published = read_new(known);
  const std::string& text = published.empty() ? environment : published;
  if (!text.empty()) put(id, text);
}

void ProcessResources::look(Nanoseconds now, const Put& put) {
  for (auto& [id, known] : known_) {
    if (now < known.due) continue;
    known.pause = std::min(2 * known.pause, kLongest);
    known.due = now + known.pause;
    if (const std::string text = read_new(known); !text.empty()) put(profile::ProcessId(id), text);
  }
}

}  // namespace phlox::cli
