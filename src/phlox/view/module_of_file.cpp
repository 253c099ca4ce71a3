#include "phlox/view/module_of_file.h"

#include "phlox/base/text.h"

namespace phlox::view {

namespace {

std::string_view first_part(std::string_view path) {
  return without_extension(path.substr(0, path.find('/')));
}

// The part after ".../lib/python3.12/" (also lib64, python3.13t, .../python311.zip/), or nothing.
std::string_view in_standard_library(std::string_view file) {
  for (size_t at = file.rfind("/python"); at != std::string_view::npos && at > 0;
       at = file.rfind("/python", at - 1)) {
    std::string_view rest = file.substr(at + 7);
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos || slash == 0) continue;
    std::string_view version = rest.substr(0, slash);
    const bool is_library =
        base_name(file.substr(0, at)).starts_with("lib") && version.find('.') != std::string_view::npos;
    if (rest[0] >= '2' && rest[0] <= '9' && (is_library || version.ends_with(".zip")))
      return rest.substr(slash + 1);
  }
  return {};
}

}  // namespace

std::string_view without_extension(std::string_view name) {
  const size_t dot = name.find('.');
  return dot == std::string_view::npos || dot == 0 ? name : name.substr(0, dot);
}

std::string module_of_file(std::string_view file) {
  if (file.starts_with("<frozen ") && file.ends_with(">")) {
    const std::string_view name = file.substr(8, file.size() - 9);
    return std::string(name.substr(0, name.find('.')));
  }
  if (file.starts_with("<")) return std::string(file);
  for (std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = file.rfind(packages);
    if (at != std::string_view::npos) return std::string(first_part(file.substr(at + packages.size())));
  }
  if (const std::string_view rest = in_standard_library(file); !rest.empty()) {
    return std::string(first_part(rest.starts_with("lib-dynload/") ? rest.substr(12) : rest));
  }
  const std::string_view name = base_name(file);
  const std::string_view stem = without_extension(name);
  if ((stem == "__init__" || stem == "__main__") && name.size() < file.size()) {
    const std::string_view folder = base_name(file.substr(0, file.size() - name.size() - 1));
    if (!folder.empty()) return std::string(folder);
  }
  return std::string(stem);
}

}  // namespace phlox::view
