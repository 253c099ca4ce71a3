#include "phlox/memory/living_thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "phlox/base/descriptor.h"
#include "phlox/base/text.h"

namespace phlox::memory {
namespace {

constexpr size_t kMostThreads = 65536;

bool has_ended(const std::string& folder) {
  const Descriptor file(::open((folder + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[256];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text) : -1;
  if (size <= 0) return true;
  const std::string_view stat(text, static_cast<size_t>(size));
  const size_t close = stat.rfind(')');  // of the name, which may contain any character
  if (close == std::string_view::npos || close + 2 >= stat.size()) return true;
  return stat[close + 2] == 'Z' || stat[close + 2] == 'X';
}

std::string task_folder(pid_t pid, pid_t tid) {
  return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
}

}  // namespace

pid_t living_thread(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  // A thread that has ended has no memory and so no executable. This takes a quarter of the time of reading
  // its state, but needs the right to trace it.
  char link;
  if (::readlink((folder + "/exe").c_str(), &link, 1) == 1 || !has_ended(folder)) return pid;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir((folder + "/task").c_str()), ::closedir);
  for (size_t seen = 0; tasks && seen < kMostThreads; ++seen) {
    const dirent* entry = ::readdir(tasks.get());
    if (entry == nullptr) break;
    const auto tid = parse_number<pid_t>(entry->d_name);
    if (tid && *tid != pid && !has_ended(task_folder(pid, *tid))) return *tid;
  }
  return pid;
}

std::string proc_folder(pid_t pid) {
  const pid_t living = living_thread(pid);
  return living == pid ? "/proc/" + std::to_string(pid) : task_folder(pid, living);
}

}  // namespace phlox::memory
