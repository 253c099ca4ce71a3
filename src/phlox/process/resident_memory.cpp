#include "phlox/process/resident_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "phlox/base/descriptor.h"
#include "phlox/memory/living_thread.h"

namespace phlox::process {
namespace {

constexpr size_t kEntries = 16'384;  // of pagemap, per read
constexpr uint64_t kPresent = uint64_t{1} << 63;
constexpr uint64_t kSwapped = uint64_t{1} << 62;
constexpr size_t kMaxRuns = 1'000'000;

}  // namespace

bool is_own_memory(const Mapping& mapping) {
  return mapping.readable && mapping.writable && mapping.inode == 0 &&
         (mapping.path.empty() || mapping.path == "[heap]" || mapping.path.starts_with("[anon"));
}

void add_pages(ResidentMemory& memory, RemoteAddress start, std::span<const uint64_t> entries,
               uint64_t page_size, uint64_t most) {
  for (size_t i = 0; i < entries.size() && !memory.cut; ++i) {
    memory.swapped = memory.swapped || (entries[i] & kSwapped) != 0;
    if ((entries[i] & kPresent) == 0) continue;
    const RemoteAddress page = start + i * page_size;
    const bool extends = !memory.runs.empty() && memory.runs.back().end == page;
    memory.cut = memory.bytes + page_size > most || (!extends && memory.runs.size() >= kMaxRuns);
    if (memory.cut) return;
    memory.bytes += page_size;
    if (extends) {
      memory.runs.back().end = page + page_size;
    } else {
      memory.runs.push_back({page, page + page_size});
    }
  }
}

Result<ResidentMemory> read_resident_memory(pid_t pid, uint64_t most) {
  const auto maps = read_maps(pid);
  if (!maps) return fail(maps);
  const std::string path = memory::proc_folder(pid) + "/pagemap";
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail(ErrorKind::system, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  const auto page_size = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  ResidentMemory memory;
  std::vector<uint64_t> entries(kEntries);
  for (const Mapping& mapping : *maps) {
    if (!is_own_memory(mapping)) continue;
    for (RemoteAddress at = mapping.start; at < mapping.end && !memory.cut;) {
      const size_t wanted = std::min<uint64_t>(kEntries, (mapping.end - at) / page_size);
      if (wanted == 0) break;
      const ssize_t got =
          ::pread(file.get(), entries.data(), wanted * 8, static_cast<off_t>(at.value / page_size * 8));
      if (got < 8) break;  // unmapped in the meantime
      const size_t whole = static_cast<size_t>(got) / 8;
      add_pages(memory, at, std::span(entries).first(whole), page_size, most);
      at = at + whole * page_size;
    }
  }
  return memory;
}

}  // namespace phlox::process
