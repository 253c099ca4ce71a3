#include "phlox/process/source_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include "phlox/memory/living_thread.h"
#include "phlox/process/root_folder.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

std::string target_of_link(const std::string& path) {
  char text[4096];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size < 0 ? std::string() : std::string(text, static_cast<size_t>(size));
}

}  // namespace

std::optional<std::string> read_file_of(pid_t pid, const std::string& path, size_t most,
                                        const std::optional<FileUser>& user) {
  if (path.empty() || path.find('\0') != std::string::npos) return {};
  const std::string whole =
      path[0] == '/' ? path : fmt::format("{}/{}", target_of_link(memory::proc_folder(pid) + "/cwd"), path);
  const Descriptor root = open_root(pid);
  const ActAs as(user);
  return as ? read_regular(open_regular_beneath(root, whole), most) : std::nullopt;
}

}  // namespace phlox::process
