#include "phlox/sampler/session/kernel_starts.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/process/process_state.h"

namespace phlox::sampler {

bool KernelStart::looks_like_python() const {
  const std::string_view name = command_line;
  return base_name(name.substr(0, name.find(' '))).starts_with("python");
}

void KernelStarts::add(pid_t pid, uint32_t id, Nanoseconds begin) {
  KernelStart& start = starts_[id];
  start.pid = pid;
  start.id = ids_[pid] = id;
  start.begin = begin;
}

void KernelStarts::add(const kernel_birth& birth) {
  add(static_cast<pid_t>(birth.process), birth.id, static_cast<Nanoseconds>(birth.time));
  starts_[birth.id].parent = static_cast<pid_t>(birth.parent);
}

void KernelStarts::add(const kernel_exec& exec, bool recorded, const KernelStart& birth) {
  KernelStart start = birth;
  if (const auto before = starts_.find(exec.ended.head.id); before != starts_.end()) {
    start = std::move(before->second);
    starts_.erase(before);
  }
  start.pid = static_cast<pid_t>(exec.ended.thread);
  if (recorded || start.begin == 0) start.begin = static_cast<Nanoseconds>(exec.ended.time);
  if (recorded) start.reported = exec.ended.ran;
  start.id = ids_[start.pid] = exec.id;
  start.called_exec = true;
  start.executable = {exec.inode, exec.device};
  start.command_line = process::parse_command_line(std::string_view(exec.text, exec.arguments));
  starts_.insert_or_assign(exec.id, std::move(start));
}

bool KernelStarts::take(const kernel_exit& exit) {
  const auto found = starts_.find(exit.head.id);
  if (found == starts_.end()) return false;
  if (exit.first == 0) return true;
  found->second.end = exit;
  if (found->second.called_exec) ended_.push_back(found->second);
  forget(exit.head.id);
  return true;
}

const KernelStart* KernelStarts::find(pid_t pid) const {
  const auto id = ids_.find(pid);
  const auto found = id == ids_.end() ? starts_.end() : starts_.find(id->second);
  return found == starts_.end() ? nullptr : &found->second;
}

void KernelStarts::forget(uint32_t id) {
  const auto found = starts_.find(id);
  if (found == starts_.end()) return;
  const auto known = ids_.find(found->second.pid);
  if (known != ids_.end() && known->second == id) ids_.erase(known);
  starts_.erase(found);
}

std::vector<KernelStart> KernelStarts::ended() {
  return std::exchange(ended_, {});
}

}  // namespace phlox::sampler
