#include "phlox/sampler/capture/task_ids.h"

#include <dirent.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

#include "phlox/base/load.h"

namespace phlox::sampler {
namespace {

// The part of struct pthread that contains the id: glibc 2.17 to 2.42 have it at 0x2d0, musl at 0x30.
constexpr size_t kLook = 0x800;

// The last number of a status file's NSpid line; nothing if it has only one.
std::optional<pid_t> innermost_pid(const char* status) {
  FILE* f = std::fopen(status, "re");
  if (f == nullptr) return {};
  char line[512];
  std::optional<pid_t> innermost;
  while (std::fgets(line, sizeof line, f) != nullptr) {
    if (std::strncmp(line, "NSpid:", 6) != 0) continue;
    int numbers = 0;
    long last = 0;
    for (char* at = line + 6;;) {
      char* end = at;
      const long number = std::strtol(at, &end, 10);
      if (end == at) break;
      last = number;
      ++numbers;
      at = end;
    }
    if (numbers > 1) innermost = static_cast<pid_t>(last);
    break;
  }
  std::fclose(f);
  return innermost;
}

}  // namespace

TaskIds::TaskIds(pid_t pid, memory::RemoteMemory& memory) : pid_(pid), memory_(memory) {
  char status[64];
  std::snprintf(status, sizeof status, "/proc/%d/status", pid_);
  pid_namespace_ = innermost_pid(status).has_value();
}

// In a PID namespace, a thread's own id is not ours: the last number of NSpid is its own. Threads that are
// already known keep their ids.
void TaskIds::list() {
  listed_ = true;
  std::unordered_map<pid_t, pid_t> ids;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task", pid_);
  DIR* directory = ::opendir(path);
  if (directory == nullptr) {
    process_gone_ = true;
    return;
  }
  std::unordered_map<pid_t, pid_t> own_of;
  for (const auto& [own, outer] : outer_) own_of[outer] = own;
  while (const dirent* entry = ::readdir(directory)) {
    const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (tid <= 0) continue;
    if (!pid_namespace_) {
      ids[tid] = tid;
      continue;
    }
    const auto known = own_of.find(tid);
    if (known != own_of.end()) {
      ids[known->second] = tid;
      continue;
    }
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid_, tid);
    ids[innermost_pid(path).value_or(tid)] = tid;
  }
  ::closedir(directory);
  outer_ = std::move(ids);
}

pid_t TaskIds::outer(uint64_t own) {
  if (!listed_) list();
  const auto found = own <= INT32_MAX ? outer_.find(static_cast<pid_t>(own)) : outer_.end();
  return found == outer_.end() ? 0 : found->second;
}

// The id in the struct pthread at `python_id`, whose offset is not known yet: a value that is the id of a
// thread of this process. Learns the offset.
std::optional<pid_t> TaskIds::search(uint64_t python_id, uint64_t native_id) {
  std::array<std::byte, kLook> area;
  if (!memory_.read(RemoteAddress(python_id), std::span(area))) return {};
  // Small ids, of a container's first processes, equal flags and counts that lie before the id. Ids around
  // 32,600 equal the upper half of a pointer, so those halves are skipped: the id follows pointers in both
  // libraries. In glibc, the list of robust mutexes follows at 16 bytes, and an empty one points to itself;
  // musl has pointers only before it.
  auto has_robust_list = [&](size_t offset) {
    return offset + 24 <= kLook && load<uint64_t>(area.data() + offset + 16) == python_id + offset + 16;
  };
  pid_t first = 0;
  for (size_t offset = 0; offset + 4 <= kLook; offset += sizeof(uint64_t)) {
    const auto own = load<int32_t>(area.data() + offset);
    if (own <= 0 || outer(static_cast<uint64_t>(own)) == 0) continue;
    const bool as_it_says = static_cast<uint64_t>(own) == native_id;
    if (first == 0 || as_it_says) first = own;
    if (!has_robust_list(offset)) continue;
    tid_offset_ = offset;
    return own;
  }
  return first != 0 ? std::optional(first) : std::nullopt;
}

TaskIds::Task TaskIds::find(uint64_t python_id, uint64_t native_id) {
  std::optional<pid_t> own;  // as in struct pthread
  if (is_plausible(RemoteAddress(python_id))) {
    int32_t word = 0;
    if (!tid_offset_) {
      own = search(python_id, native_id);
    } else if (memory_.read_value(RemoteAddress(python_id + *tid_offset_), word)) {
      own = word;
    } else {
      return {0, Why::no_thread};  // its stack is gone, so the thread is too
    }
  }
  if (own && static_cast<uint64_t>(*own) == native_id) return found(outer_quickly(native_id));
  if (native_id == 0) return found(own && *own > 0 ? outer(static_cast<uint64_t>(*own)) : 0);
  if (!own) {
    // Another C library, or the id belongs to no thread: use the state's own word if there is such a thread.
    const pid_t tid = outer(native_id);
    return tid != 0 ? Task{tid, Why::found} : Task{0, tid_offset_ ? Why::no_thread : Why::unknown};
  }
  // They differ: a fork made one of them stale. Only the thread that forked lives on, as the first of its
  // process. Any other was created since, by another state, which owns this struct pthread by now.
  const pid_t tid = *own > 0 ? outer(static_cast<uint64_t>(*own)) : 0;
  return found(tid == pid_ ? tid : 0);
}

}  // namespace phlox::sampler
