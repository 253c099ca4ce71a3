#include "phlox/view/whole_run.h"

#include <string>

namespace phlox::view {

using namespace profile;

bool is_whole_run(const Profile& profile) {
  const auto& meta = profile.meta();
  const auto command = meta.find("command_line");
  if (command == meta.end() || command->second.find(" -- ") == std::string::npos) return false;
  if (meta.contains("let_go_ns") || profile.processes().empty()) return false;
  const std::string& how = profile.processes().front().how_ended;
  return how.starts_with("exit") || how.starts_with("signal");
}

}  // namespace phlox::view
