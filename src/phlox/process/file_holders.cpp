#include "phlox/process/file_holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "phlox/base/paced.h"
#include "phlox/memory/living_thread.h"
#include "phlox/process/process_state.h"
#include "phlox/process/process_tree.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

constexpr Nanoseconds kLeastHolderRest = kSecond / 2;
// Per search; this many take about 5 ms.
constexpr size_t kMostProcesses = 64, kMostFiles = 2000;
constexpr size_t kMostFamilies = 1000;
constexpr size_t kLongestCommand = 80;

}  // namespace

void FileHolders::ask(pid_t process, Family& into) {
  into.holders.clear();
  std::vector<pid_t> family;
  if (const auto stat = read_stat(process); stat && stat->parent > 1) {
    family = read_children(stat->parent);
    family.push_back(stat->parent);
  }
  const auto children = read_children(process);
  family.insert(family.begin(), children.begin(), children.end());
  if (family.size() > kMostProcesses) family.resize(kMostProcesses);
  size_t files = 0;
  for (const pid_t one : family) {
    if (one == process) continue;
    const std::string folder = fmt::format("/proc/{}/fd", one);
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
    while (const dirent* entry = entries && files < kMostFiles ? ::readdir(entries.get()) : nullptr) {
      if (entry->d_name[0] == '.') continue;
      ++files;
      char link[64];
      const ssize_t size = ::readlinkat(::dirfd(entries.get()), entry->d_name, link, sizeof link);
      const std::string_view text(link, size > 0 ? static_cast<size_t>(size) : 0);
      struct stat mode {};
      if ((!text.starts_with("pipe:") && !text.starts_with("socket:")) ||
          ::fstatat(::dirfd(entries.get()), entry->d_name, &mode, AT_SYMLINK_NOFOLLOW) != 0)
        continue;
      into.holders[std::string(text)].push_back(
          {one, (mode.st_mode & S_IRUSR) != 0, (mode.st_mode & S_IWUSR) != 0});
    }
  }
}

std::vector<pid_t> FileHolders::find(pid_t process, const std::string& link, End end) {
  if (families_.size() >= kMostFamilies) families_.clear();
  Family& family = families_[process];
  const Nanoseconds start = clock_now();
  if (!family.holders.contains(link) && start >= family.next) {
    ask(process, family);
    family.next = again_after(start, clock_now(), kLeastHolderRest);
  }
  std::vector<pid_t> found;
  const auto known = family.holders.find(link);
  if (known == family.holders.end()) return found;
  for (const Holder& holder : known->second) {
    const bool has_end = end == End::any || (end == End::reading ? holder.reads : holder.writes);
    if (has_end && (found.empty() || found.back() != holder.process)) found.push_back(holder.process);
  }
  return found;
}

std::string command_words(pid_t process) {
  const auto bytes = read_text(memory::proc_folder(process) + "/cmdline");
  std::string words = bytes ? parse_command_line(*bytes) : std::string();
  if (words.empty()) {
    const auto stat = read_stat(process);
    if (stat) words = stat->name;
  }
  if (words.size() <= kLongestCommand) return words;
  return words.substr(0, kLongestCommand) + "...";
}

std::string process_words(pid_t process) {
  const std::string command = command_words(process);
  return command.empty() ? command : fmt::format("{} ({})", command, process);
}

}  // namespace phlox::process
