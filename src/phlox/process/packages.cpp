#include "phlox/process/packages.h"

#include <fcntl.h>

#include <string_view>
#include <unordered_map>

#include "phlox/base/folder.h"
#include "phlox/process/root_folder.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

constexpr const char* kLists = "/var/lib/dpkg/info";
constexpr std::string_view kSuffix = ".list";
// A Debian with everything installed has some 60,000 packages; the longest list, that of an icon package, is
// 5 MB.
constexpr size_t kMostLists = 100'000;
constexpr size_t kLongestList = size_t{32} << 20;
constexpr size_t kMostBytes = size_t{512} << 20;

}  // namespace

std::map<std::string, std::string> packages_of(const Descriptor& root,
                                               const std::vector<std::string>& paths) {
  std::map<std::string, std::string> found;
  // As the lists may spell them: before Debian 13, some packages still list files of /usr/lib under /lib.
  std::unordered_map<std::string_view, const std::string*> wanted;
  for (const std::string& path : paths) {
    wanted.emplace(path, &path);
    if (path.starts_with("/usr/")) wanted.emplace(std::string_view(path).substr(4), &path);
  }
  if (!root || wanted.empty()) return found;
  const Folder folder = list_folder(open_beneath(root, kLists, O_DIRECTORY));
  if (folder == nullptr) return found;
  size_t seen = 0, bytes = 0;
  for (const dirent* entry = ::readdir(folder.get());
       entry != nullptr && seen < kMostLists && bytes < kMostBytes && found.size() < paths.size();
       entry = ::readdir(folder.get())) {
    const std::string_view name(entry->d_name);
    if (!name.ends_with(kSuffix)) continue;
    ++seen;
    const auto text =
        read_regular(Descriptor(::openat(::dirfd(folder.get()), entry->d_name,
                                         O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)),
                     kLongestList);
    if (!text) continue;
    bytes += text->size();
    for (std::string_view rest = *text; !rest.empty();) {
      const size_t end = rest.find('\n');
      const auto known = wanted.find(rest.substr(0, end));
      // "libc6:amd64.list"
      if (known != wanted.end()) {
        const std::string_view package = name.substr(0, name.size() - kSuffix.size());
        found.emplace(*known->second, package.substr(0, package.find(':')));
      }
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }
  return found;
}

}  // namespace phlox::process
