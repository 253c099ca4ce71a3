#include "phlox/process/memory_limit.h"

#include <algorithm>

#include "phlox/base/text.h"
#include "phlox/process/control_group.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

constexpr uint64_t kMostMemory = uint64_t{1} << 60;

std::optional<uint64_t> read_bytes(const std::string& file) {
  const auto text = read_text(file);
  if (!text) return {};
  std::string_view rest = *text;
  uint64_t value = 0;
  return take_number(rest, value) ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> read_limit(const MemoryGroup& group) {
  const auto text = read_text(group.folder + (group.unified ? "/memory.max" : "/memory.limit_in_bytes"));
  return text ? parse_memory_limit(*text) : std::nullopt;
}

}  // namespace

std::optional<uint64_t> parse_memory_limit(std::string_view text) {
  uint64_t value = 0;
  if (!take_number(text, value) || value >= kMostMemory) return {};
  return value;
}

uint64_t parse_inactive_file(std::string_view text, bool unified) {
  const std::string_view name = unified ? "inactive_file " : "total_inactive_file ";
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    uint64_t value = 0;
    return take_number(line, value) ? value : 0;
  }
  return 0;
}

std::vector<MemoryGroup> find_memory_groups(pid_t pid) {
  const GroupFolders found = read_group_folders(pid, "memory");
  std::vector<MemoryGroup> groups;
  for (const std::string& folder : found.folders) {
    const MemoryGroup group{folder, found.unified};
    if (read_limit(group)) groups.push_back(group);
  }
  return groups;
}

std::optional<MemoryUse> read_memory_use(const MemoryGroup& group) {
  const auto limit = read_limit(group);
  const auto used = read_bytes(group.folder + (group.unified ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit || !used) return {};
  const uint64_t cache =
      parse_inactive_file(read_text(group.folder + "/memory.stat").value_or(""), group.unified);
  return MemoryUse{*used - std::min(*used, cache), *limit};
}

}  // namespace phlox::process
