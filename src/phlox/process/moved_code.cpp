#include "phlox/process/moved_code.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace phlox::process {
namespace {

constexpr uint64_t kPage = 4096;
// Pages compared per mapping, evenly spread.
constexpr uint64_t kSampled = 64;

bool is_moved(const Mapping& m) {
  return m.executable && m.inode == 0 && (m.path.empty() || m.path.starts_with("[anon:"));
}

bool is_in_code(const Mapping& mapping, const elf::ElfFile& elf, uint64_t bias) {
  return std::any_of(elf.segments().begin(), elf.segments().end(), [&](const elf::Segment& s) {
    if (s.type != PT_LOAD || (s.flags & PF_X) == 0) return false;
    const uint64_t start = (s.address.value + bias) & ~(kPage - 1),
                   end = s.address.value + bias + s.memory_size;
    return start <= end && mapping.start.value >= start &&
           mapping.end.value <= ((end + kPage - 1) & ~(kPage - 1));
  });
}

}  // namespace

std::vector<Mapping> moved_code_of(const std::vector<Mapping>& maps, const Module& module) {
  std::vector<Mapping> moved;
  for (size_t i = 0; i + 1 < module.mappings.size(); ++i) {
    const RemoteAddress from = module.mappings[i].end, to = module.mappings[i + 1].start;
    if (from >= to) continue;
    auto at = std::lower_bound(maps.begin(), maps.end(), from,
                               [](const Mapping& m, RemoteAddress address) { return m.start < address; });
    std::vector<Mapping> between;
    for (RemoteAddress next = from; at != maps.end() && at->start == next && at->start < to; ++at) {
      between.push_back(*at);
      next = at->end;
    }
    if (between.empty() || between.back().end != to || !std::all_of(between.begin(), between.end(), is_moved))
      continue;
    moved.insert(moved.end(), between.begin(), between.end());
  }
  return moved;
}

bool holds_code_of(const Mapping& mapping, const elf::ElfFile& elf, uint64_t bias,
                   memory::RemoteMemory& memory) {
  if (!is_in_code(mapping, elf, bias)) return false;
  const uint64_t pages = (mapping.end - mapping.start) / kPage;
  const uint64_t step = std::max<uint64_t>(1, pages / kSampled);
  std::array<std::byte, kPage> here, there;
  uint64_t compared = 0, equal = 0;
  for (uint64_t page = 0; page < pages; page += step) {
    const RemoteAddress at = mapping.start + page * kPage;
    const size_t size = elf.copy(ImageAddress(at.value - bias), here);
    if (size == 0) continue;
    ++compared;
    if (memory.read(at, std::span(there).first(size)) && std::memcmp(here.data(), there.data(), size) == 0)
      ++equal;
  }
  // A few bytes may differ: a debugger's breakpoints, a patch.
  return equal > compared / 2;
}

}  // namespace phlox::process
