#include "phlox/process/thread_context.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "phlox/base/machine.h"
#include "phlox/base/text.h"
#include "phlox/memory/process_memory.h"
#include "phlox/process/process_facts.h"
#include "phlox/process/thread_block.h"

namespace phlox::process {
namespace {

constexpr std::string_view kVariable = "otel_thread_ctx_v1";
// Offsets and numbers of modules are smaller, and addresses of a program's memory greater.
constexpr int64_t kMostOffset = int64_t{1} << 20;
constexpr uint64_t kMostModule = uint64_t{1} << 16;
constexpr size_t kMostRelocations = 64;  // of a module, that are looked at in memory

enum class CLibrary : uint8_t { glibc, musl };

struct ThreadRelocations {
  uint32_t offset, descriptor, module;
};
constexpr ThreadRelocations kRelocations =
    kOnAarch64 ? ThreadRelocations{R_AARCH64_TLS_TPREL, R_AARCH64_TLSDESC, R_AARCH64_TLS_DTPMOD}
               : ThreadRelocations{R_X86_64_TPOFF64, R_X86_64_TLSDESC, R_X86_64_DTPMOD64};

// The vector of a thread's blocks. glibc: tcbhead_t.dtv (sysdeps/x86_64/nptl/tls.h,
// sysdeps/aarch64/nptl/tls.h), dtv_t (sysdeps/generic/dl-dtv.h), whose entry before the first has the number
// of entries. musl: struct pthread (src/internal/pthread_impl.h), whose first entry has it.
ThreadVariable in_block(uint64_t module, int64_t offset, CLibrary library) {
  ThreadVariable variable;
  variable.module = static_cast<uint32_t>(module);
  variable.offset = offset;
  const bool musl = library == CLibrary::musl;
  variable.vector = !kOnAarch64 ? 8 : musl ? -8 : 0;
  variable.count = musl ? 0 : -16;
  variable.entry = musl ? 8 : 16;
  return variable;
}

ThreadVariable at_offset(int64_t offset) {
  ThreadVariable variable;
  variable.offset = offset;
  return variable;
}

bool is_offset(int64_t value) {
  return value > -kMostOffset && value < kMostOffset && value != 0;
}

// A module's own numbers and offsets of the linker's (struct tls_index, struct tlsdesc_dynamic_arg).
std::optional<ThreadVariable> by_index(const std::array<uint64_t, 2>& index, CLibrary library) {
  if (index[0] == 0 || index[0] >= kMostModule || index[1] >= static_cast<uint64_t>(kMostOffset)) return {};
  return in_block(index[0], static_cast<int64_t>(index[1]), library);
}

// A descriptor that is not resolved yet has an argument within its own module.
std::optional<ThreadVariable> by_descriptor(const LoadedModule& module, memory::RemoteMemory& memory,
                                            RemoteAddress at, CLibrary library) {
  std::array<uint64_t, 2> descriptor{}, index{};
  if (!memory.read_value(at, descriptor)) return {};
  const RemoteAddress argument(descriptor[1]);
  if (is_offset(static_cast<int64_t>(argument.value))) return at_offset(static_cast<int64_t>(argument.value));
  const bool is_within = std::any_of(module.module.mappings.begin(), module.module.mappings.end(),
                                     [&](const Mapping& one) { return one.holds(argument); });
  if (descriptor[0] == 0 || !is_plausible(argument) || is_within || !memory.read_value(argument, index))
    return {};
  return by_index(index, library);
}

// The program's own variables lie next to the thread pointer ("ELF Handling For Thread-Local Storage",
// variants I and II).
std::optional<ThreadVariable> in_program(const elf::ElfFile& elf, uint64_t value) {
  for (const elf::Segment& segment : elf.segments()) {
    if (segment.type != PT_TLS || value >= segment.memory_size) continue;
    const uint64_t alignment = std::clamp<uint64_t>(segment.alignment, 1, uint64_t{1} << 16);
    const auto rounded = [&](uint64_t size) {
      return static_cast<int64_t>((size + alignment - 1) / alignment * alignment);
    };
    constexpr uint64_t kControlBlock = 16;
    const int64_t begin = kOnAarch64 ? rounded(kControlBlock) : -rounded(segment.memory_size);
    return at_offset(begin + static_cast<int64_t>(value));
  }
  return {};
}

// As the dynamic linker has relocated one library. None: it has not yet.
std::optional<ThreadVariable> in_library(const LoadedModule& module, uint32_t symbol, uint64_t value,
                                         memory::RemoteMemory& memory, CLibrary library) {
  std::optional<ThreadVariable> variable;
  size_t left = kMostRelocations;
  module.elf.for_each_relocation([&](const elf::Relocation& one) {
    // A linker that binds the variable to its own module names no symbol.
    const bool is_own = one.symbol == 0;
    const bool is_its = one.symbol == symbol || (is_own && one.addend == static_cast<int64_t>(value));
    const bool is_module = one.type == kRelocations.module && (is_its || is_own);
    if (!is_module && (!is_its || (one.type != kRelocations.descriptor && one.type != kRelocations.offset)))
      return true;
    const RemoteAddress at = module.remote(one.where);
    if (is_module) {
      // Its offset is in the next word; of a module's own variables only one word may be there.
      std::array<uint64_t, 2> index{0, value};
      if (is_own ? memory.read_value(at, index[0]) : memory.read_value(at, index))
        variable = by_index(index, library);
    } else if (one.type == kRelocations.descriptor) {
      variable = by_descriptor(module, memory, at, library);
    } else {
      int64_t offset = 0;
      if (memory.read_value(at, offset) && is_offset(offset)) variable = at_offset(offset);
    }
    return !variable && --left > 0;
  });
  return variable;
}

}  // namespace

std::optional<ThreadVariable> ThreadContextSearch::find() {
  memory::ProcessMemory memory(pid_);
  const auto maps = read_maps(pid_);
  const auto self = find_thread_block(pid_);
  if (!maps || !self) return {};
  const auto modules = modules_of(*maps);
  const bool is_musl = std::any_of(modules.begin(), modules.end(), [](const Module& one) {
    return base_name(one.path).find("musl") != std::string_view::npos;
  });
  const CLibrary library = is_musl ? CLibrary::musl : CLibrary::glibc;
  const std::string executable = read_process(pid_).executable;
  for (const Module& module : modules) {
    const std::pair file(module.device, module.inode);
    if (without_.contains(file)) continue;
    const auto loaded = load_module(pid_, module, budget_);
    const auto symbol = loaded ? loaded->elf.find_dynamic_symbol(kVariable) : std::nullopt;
    const uint64_t value = symbol ? symbol->symbol.address.value : 0;
    if (!symbol || symbol->symbol.type != STT_TLS || value >= static_cast<uint64_t>(kMostOffset)) {
      without_.insert(file);
      continue;
    }
    const bool is_program = loaded->elf.type() == ET_EXEC || module.path == executable;
    auto found = is_program ? in_program(loaded->elf, value)
                            : in_library(*loaded, symbol->number, value, memory, library);
    if (!found) continue;
    found->self = *self;
    return found;
  }
  return {};
}

bool ThreadContext::is_set() const {
  const auto is_zero = [](uint8_t byte) { return byte == 0; };
  return valid == 1 && !std::all_of(trace.begin(), trace.end(), is_zero) &&
         !std::all_of(span.begin(), span.end(), is_zero);
}

}  // namespace phlox::process
