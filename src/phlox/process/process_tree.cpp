#include "phlox/process/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_set>

#include "phlox/base/text.h"
#include "phlox/process/process_state.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

// More than any kernel assigns ids (PID_MAX_LIMIT).
constexpr size_t kMost = size_t{1} << 22;
constexpr size_t kManyThreads = 256;

std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (!entries) return numbers;
  while (const dirent* entry = ::readdir(entries.get())) {
    if (const auto number = parse_number<pid_t>(entry->d_name)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// For kernels without CONFIG_PROC_CHILDREN.
std::vector<pid_t> children_by_search(pid_t pid) {
  std::vector<pid_t> children;
  for (const pid_t other : read_processes()) {
    const auto stat = read_stat(other);
    if (stat && stat->parent == pid) children.push_back(other);
  }
  return children;
}

}  // namespace

std::vector<pid_t> read_processes() {
  return numbers_in("/proc");
}

std::vector<pid_t> read_children(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  // If it has more threads than the host has processes, asking all processes for their parent opens fewer
  // files. The folder's link count is the number of threads plus 2 ("." and "..").
  struct stat folder {};
  if (::stat(tasks.c_str(), &folder) == 0 && folder.st_nlink > kManyThreads &&
      folder.st_nlink > read_processes().size() + 2)
    return children_by_search(pid);
  for (const pid_t thread : numbers_in(tasks)) {
    const auto text = read_text(fmt::format("{}/{}/children", tasks, thread));
    if (!text) {
      if (thread == pid) return children_by_search(pid);
      continue;  // the thread ended
    }
    const char* at = text->data();
    const char* end = at + text->size();
    while (at < end) {
      pid_t child = 0;
      const auto [next, error] = std::from_chars(at, end, child);
      if (error == std::errc{}) children.push_back(child);
      at = error == std::errc{} ? next : at + 1;
    }
  }
  std::sort(children.begin(), children.end());
  return children;
}

std::vector<pid_t> read_descendants(pid_t pid) {
  std::vector<pid_t> found = read_children(pid);
  std::unordered_set<pid_t> seen(found.begin(), found.end());
  for (size_t at = 0; at < found.size() && found.size() < kMost; ++at) {
    for (const pid_t child : read_children(found[at])) {
      if (seen.insert(child).second) found.push_back(child);  // an id may have been reused in the meantime
    }
  }
  return found;
}

std::optional<uint64_t> parse_last_id(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const size_t blank = text.rfind(' ');
  return blank == std::string_view::npos ? std::nullopt : parse_number<uint64_t>(text.substr(blank + 1));
}

Births::Births() : file_(::open("/proc/loadavg", O_RDONLY | O_CLOEXEC)) {
  const auto before = last_id();
  try {
    std::thread([] {}).join();
  } catch (const std::system_error&) {
    file_ = Descriptor();
  }
  if (before == last_id()) file_ = Descriptor();
}

std::optional<uint64_t> Births::last_id() const {
  std::array<char, 128> text;
  const ssize_t size = file_ ? ::pread(file_.get(), text.data(), text.size(), 0) : -1;
  return size > 0 ? parse_last_id({text.data(), static_cast<size_t>(size)}) : std::nullopt;
}

}  // namespace phlox::process
