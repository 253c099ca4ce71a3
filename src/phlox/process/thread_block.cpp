#include "phlox/process/thread_block.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "phlox/base/load.h"
#include "phlox/base/machine.h"
#include "phlox/base/text.h"
#include "phlox/memory/process_memory.h"
#include "phlox/process/maps.h"
#include "phlox/process/process_facts.h"

namespace phlox::process {
namespace {

// bti c, mrs, two subtractions, ret.
constexpr size_t kMostInstructions = 5;
constexpr uint32_t kMostBlock = 65536;

// glibc from 2.34 on, glibc before, musl; or the program itself, if they are linked into it.
bool may_have_pthread_self(std::string_view name) {
  for (const char* start : {"libc.so", "libc-2.", "libpthread", "ld-musl", "libc.musl"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

}  // namespace

std::optional<uint32_t> thread_block_of(std::span<const std::byte> pthread_self) {
  // Arm ARM, C6.2: BTI c; MRS Xt, TPIDR_EL0; SUB (immediate) Xd, Xn, #imm{, LSL #12}; RET.
  constexpr uint32_t kBti = 0xd503245f, kMrs = 0xd53bd040, kSub = 0xd1000000, kRet = 0xd65f03c0;
  bool has_pointer = false;
  uint32_t block = 0, at = 0;  // the register that holds it
  for (size_t i = 0; i < kMostInstructions && (i + 1) * 4 <= pthread_self.size(); ++i) {
    const auto instruction = load<uint32_t>(pthread_self, i * 4);
    if (instruction == kRet) return has_pointer && at == 0 ? std::optional(block) : std::nullopt;
    if (instruction == kBti && i == 0) continue;
    if ((instruction & ~0x1fU) == kMrs) {
      has_pointer = true;
      at = instruction & 0x1f;
    } else if ((instruction & 0xff800000) == kSub && has_pointer && (instruction >> 5 & 0x1f) == at) {
      const uint32_t immediate = instruction >> 10 & 0xfff;
      block += (instruction & 1U << 22) != 0 ? immediate << 12 : immediate;
      at = instruction & 0x1f;
      if (block > kMostBlock) return {};
    } else {
      return {};
    }
  }
  return {};
}

std::optional<uint32_t> find_thread_block(pid_t pid) {
  if constexpr (!kOnAarch64) return 0;
  const auto maps = read_maps(pid);
  if (!maps) return {};
  memory::ProcessMemory memory(pid);
  const auto budget = std::make_shared<elf::ReadBudget>();
  const std::string executable = read_process(pid).executable;
  for (const Module& module : modules_of(*maps)) {
    if (!may_have_pthread_self(base_name(module.path)) && module.path != executable) continue;
    const auto loaded = load_module(pid, module, budget);
    const auto symbol = loaded ? loaded->elf.find_symbol("pthread_self") : std::nullopt;
    std::array<std::byte, kMostInstructions * 4> code{};
    if (!symbol || symbol->size < 4) continue;
    const auto size = std::min<size_t>(symbol->size, code.size());
    if (!memory.read(loaded->remote(symbol->address), std::span(code).first(size))) continue;
    if (const auto block = thread_block_of(std::span(code).first(size))) return block;
  }
  return {};
}

}  // namespace phlox::process
