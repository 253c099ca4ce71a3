#include "phlox/profile/declarations.h"

#include <fmt/format.h>

namespace phlox::profile {

namespace {
constexpr std::string_view kDeclaredIn = "declared_in\t";
}  // namespace

bool is_declaration(std::string_view key) {
  return key.starts_with(kDeclaredIn);
}

std::string declaration_key(std::string_view function, int32_t first_line, std::string_view file) {
  return fmt::format("{}{}\t{}\t{}", kDeclaredIn, first_line, function, file);
}

const std::string& declared_in(const Profile& profile, const Frame& frame) {
  if (frame.kind != FrameKind::native || frame.file.empty()) return frame.file;
  const auto found = profile.meta().find(declaration_key(frame.qualified_name, frame.first_line, frame.file));
  return found == profile.meta().end() ? frame.file : found->second;
}

}  // namespace phlox::profile
