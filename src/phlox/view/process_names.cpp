#include "phlox/view/process_names.h"

#include <fmt/format.h>

#include <string>

#include "phlox/profile/recorded_words.h"

namespace phlox::view {

using namespace profile;

void show_process_names(Profile& profile) {
  for (uint32_t i = 1; i <= profile.processes().size(); ++i) {
    std::string names;
    for (const std::string_view key : {kProcessName, kProcessRank}) {
      const auto found = profile.meta().find(fmt::format("{}{}", key, i));
      // The title may already contain it.
      if (found == profile.meta().end() || found->second.empty() ||
          profile.process(ProcessId(i)).command_line.find(found->second) != std::string::npos)
        continue;
      names += std::string(kNameDivider) + found->second;
    }
    if (names.empty()) continue;
    Process row = profile.process(ProcessId(i));
    row.command_line = row.command() + names;
    profile.emit(ProcessId(i), row);
  }
}

}  // namespace phlox::view
