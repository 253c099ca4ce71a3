#include "phlox/sampler/assemble/address_space.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "phlox/base/file_identity.h"
#include "phlox/base/memory_file.h"
#include "phlox/base/text.h"
#include "phlox/process/moved_code.h"
#include "phlox/process/reading_user.h"
#include "phlox/unwind/arch/this_machine.h"

namespace phlox::sampler {
namespace {

// Enough for every mapping of code; without a limit, a hostile process could make us keep any number.
constexpr size_t kMostModules = 16384;
// A process has one; a fork that runs on has its parent's too.
constexpr size_t kMostJitDumps = 16;

// A JIT compiler that writes a jitdump maps its first page executable, so that a profiler finds it by its
// name: "jit-PID.dump" (tools/perf/Documentation/jitdump-specification.txt).
bool is_jitdump(const process::Module& module) {
  const std::string_view name = base_name(module.path);
  if (!name.starts_with("jit-") || !name.ends_with(".dump") || name.size() <= 9) return false;
  return name.substr(4, name.size() - 9).find_first_not_of("0123456789") == std::string_view::npos;
}

std::string kept_identity_of(const Descriptor& file) {
  return file ? kept_identity(file.get()) : std::string();
}

}  // namespace

AddressSpace::AddressSpace(pid_t pid, memory::RemoteMemory& memory, std::string cache_folder,
                           SharedFiles* files)
    : pid_(pid),
      memory_(memory),
      root_(process::open_root(pid)),
      user_(process::reading_user(pid)),
      cache_(std::move(cache_folder)),
      files_(files),
      machine_(unwind::kThisMachine) {}

uint32_t AddressSpace::number_of(const process::Module& module) {
  const auto [entry, fresh] = by_start_.try_emplace(module.start.value);
  if (!fresh) {
    const process::Module& known = mapped_[entry->second]->file;
    if (known.inode == module.inode && known.device == module.device && known.path == module.path)
      return entry->second;
  }
  if (mapped_.size() == kMostModules) {
    if (fresh) by_start_.erase(entry);
    return unwind::kNoModule;
  }
  mapped_.push_back(std::make_unique<Mapped>());
  mapped_.back()->file = module;
  entry->second = static_cast<uint32_t>(mapped_.size() - 1);
  // What only the living process has is opened at once: the vdso, and files without a name.
  if (module.inode == 0 || module.deleted) opened(entry->second);
  return entry->second;
}

Result<process::LoadedModule> AddressSpace::load(uint32_t module) {
  Mapped& m = *mapped_[module];
  const std::string identity = files_ != nullptr ? identity_of(module) : std::string();
  if (!identity.empty()) m.shared = files_->find(identity);
  if (m.shared && m.shared->loaded) return process::load_module(m.shared->loaded->file, m.file);
  auto loaded = process::load_module(m.descriptor, m.file, budget_);
  if (loaded && m.shared) m.shared->loaded = *loaded;
  return loaded;
}

AddressSpace::Mapped& AddressSpace::opened(uint32_t module) {
  Mapped& m = *mapped_[module];
  if (m.opened) return m;
  m.opened = true;
  const bool file = m.file.inode != 0;  // not the vdso
  Result<process::LoadedModule> loaded = fail(ErrorKind::input, "not opened");
  if (file) {
    if (auto descriptor = process::open_module(pid_, m.file, root_)) {
      m.descriptor = *std::move(descriptor);
      loaded = load(module);
    }
  }
  if (!loaded) loaded = process::load_from_memory(memory_, m.file, budget_);
  if (!loaded) return m;
  m.bias = loaded->bias;
  m.build_id = loaded->elf.build_id();
  m.loaded.emplace(*std::move(loaded));
  map_.set_bias(module, m.bias);
  return m;
}

Descriptor AddressSpace::take_descriptor(uint32_t module) {
  Mapped& m = *mapped_[module];
  const bool is_vdso = m.file.inode == 0 && m.loaded;
  return is_vdso ? memory_file(m.loaded->elf.bytes()) : std::move(m.descriptor);
}

std::string AddressSpace::identity_of(uint32_t module) const {
  const Mapped& m = *mapped_[module];
  const std::string file = m.descriptor ? file_identity_of(m.descriptor.get()) : std::string();
  if (file.empty()) return {};
  std::string user;
  if (user_) user = fmt::format("{} {} {}", user_->user, user_->group, fmt::join(user_->groups, ","));
  return fmt::format("{} {} {}", file, user, m.file.path);
}

Descriptor AddressSpace::copy_of(const Descriptor& descriptor) {
  return Descriptor(descriptor ? ::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0) : -1);
}

Descriptor AddressSpace::copy_descriptor(uint32_t module) const {
  const Mapped& m = *mapped_[module];
  const bool is_vdso = m.file.inode == 0 && m.loaded;
  return is_vdso ? memory_file(m.loaded->elf.bytes()) : copy_of(m.descriptor);
}

std::vector<AddressSpace::JitDump> AddressSpace::copy_jitdumps() const {
  std::vector<JitDump> copies;
  for (const JitDump& one : jitdumps_) copies.push_back({one.file, copy_of(one.descriptor)});
  return copies;
}

size_t AddressSpace::opened_modules() const {
  return static_cast<size_t>(
      std::count_if(mapped_.begin(), mapped_.end(), [](const auto& m) { return m->opened; }));
}

void AddressSpace::keep_jitdump(const process::Module& module) {
  const bool known = std::any_of(jitdumps_.begin(), jitdumps_.end(), [&](const JitDump& d) {
    return d.file.inode == module.inode && d.file.device == module.device;
  });
  if (known || jitdumps_.size() == kMostJitDumps || !jit_writer_) return;
  if (Descriptor file = process::open_jitdump(pid_, module, root_, *jit_writer_))
    jitdumps_.push_back({module, std::move(file)});
}

// As soon as it exists: a container's files may go with its last process.
void AddressSpace::keep_perf_map() {
  if (!perf_map_ && jit_writer_) perf_map_ = process::open_perf_map(root_, *jit_writer_);
}

Descriptor AddressSpace::take_perf_map() {
  keep_perf_map();
  return std::move(perf_map_);
}

namespace {

using namespace std::string_view_literals;

// CPython's trampolines (-X perf, perf_jit) fill whole mappings (Python/asm_trampoline.S), possibly after an
// instruction that marks them. Of x86-64, those of 3.14 have a frame pointer, and are called by code with
// anything in rbp, so there is no chain of frame pointers.
struct TrampolineCode {
  uint16_t machine;
  bool has_frame;
  std::string_view code;
};
constexpr TrampolineCode kTrampolines[] = {
    // sub $8, %rsp; call *%rcx; add $8, %rsp; ret
    {EM_X86_64, false, "\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3"sv},
    // push %rbp; mov %rsp, %rbp; call *%rcx; pop %rbp; ret
    {EM_X86_64, true, "\x55\x48\x89\xe5\xff\xd1\x5d\xc3"sv},
    // stp x29, x30, [sp, #-16]!; mov x29, sp; blr x3; ldp x29, x30, [sp], #16
    {EM_AARCH64, true, "\xfd\x7b\xbf\xa9\xfd\x03\x00\x91\x60\x00\x3f\xd6\xfd\x7b\xc1\xa8"sv},
};
// endbr64; paciasp; bti c
constexpr std::string_view kMarks[] = {"\xf3\x0f\x1e\xfa"sv, "\x3f\x23\x03\xd5"sv, "\x5f\x24\x03\xd5"sv};

}  // namespace

std::optional<unwind::Rule> AddressSpace::trampoline_at(RemoteAddress start) const {
  std::array<std::byte, 24> bytes{};
  if (!memory_.read(start, std::span(bytes))) return {};
  std::string_view code(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const std::string_view mark : kMarks) {
    if (code.starts_with(mark)) code.remove_prefix(mark.size());
  }
  const auto* found = std::find_if(std::begin(kTrampolines), std::end(kTrampolines), [&](const auto& one) {
    return one.machine == machine_ && code.starts_with(one.code);
  });
  if (found == std::end(kTrampolines)) return {};
  unwind::Rule rule;
  rule.kind = unwind::RuleKind::plain;
  rule.cfa_offset = 16;
  rule.ra_offset = -8;
  if (found->has_frame) {
    rule.fp = unwind::FpRule::at_cfa;
    rule.fp_offset = -16;
  }
  return rule;
}

// Whether a JIT compiler generated this code: such memory is a deleted file if the compiler maps it twice, to
// write and to run (memfd, shared memory), and that is no ELF file. number_of() opens deleted files.
bool AddressSpace::is_generated(uint32_t module) const {
  const Mapped& m = *mapped_[module];
  return m.file.deleted && m.opened && !m.loaded;
}

bool AddressSpace::has_code(uint32_t module, const process::Mapping& mapping) {
  const Mapped& m = opened(module);
  return m.loaded && process::holds_code_of(mapping, m.loaded->elf, m.bias, memory_);
}

bool AddressSpace::refresh(Nanoseconds now) {
  const auto maps = process::read_maps(pid_);
  if (!maps || maps->empty()) return false;
  refreshed_at_ = now;
  if (auto writer = process::jit_writer(pid_)) jit_writer_ = *writer;
  keep_perf_map();
  std::vector<Seen> seen;
  for (const auto& m : *maps) {
    if (m.executable) seen.push_back({m.start.value, m.end.value, m.inode, m.offset});
  }
  if (seen == seen_) return true;
  seen_ = std::move(seen);
  map_.clear();
  std::vector<RemoteAddress> known;  // memory without a file that has the code of one
  for (const process::Module& module : process::modules_of(*maps)) {
    const auto moved = process::moved_code_of(*maps, module);
    if (moved.empty() && std::none_of(module.mappings.begin(), module.mappings.end(),
                                      [](const auto& m) { return m.executable; })) {
      continue;
    }
    if (is_jitdump(module)) {
      keep_jitdump(module);
      continue;
    }
    const uint32_t number = number_of(module);
    const bool is_module = number != unwind::kNoModule && !is_generated(number);
    for (const auto& m : module.mappings) {
      if (m.executable)
        map_.add(m.start, m.end, is_module ? mapped_[number]->bias : 0,
                 is_module ? number : unwind::kNoModule);
    }
    for (const auto& m : moved) {
      if (number == unwind::kNoModule || !has_code(number, m)) continue;
      map_.add(m.start, m.end, mapped_[number]->bias, number);
      known.push_back(m.start);
    }
  }
  for (const auto& m : *maps) {
    if (!m.executable || m.inode != 0) continue;
    if (std::binary_search(known.begin(), known.end(), m.start)) continue;
    if (const auto rule = trampoline_at(m.start)) {
      map_.add_code(m.start, m.end, *rule);
      continue;
    }
    const uint32_t number =
        m.path == "[vdso]" ? number_of({m.path, 0, 0, false, m.start, {m}}) : unwind::kNoModule;
    map_.add(m.start, m.end, number == unwind::kNoModule ? 0 : mapped_[number]->bias, number);
  }
  map_.settle();
  return true;
}

const unwind::UnwindTable* AddressSpace::table_of(uint32_t module) {
  if (module >= mapped_.size()) return nullptr;
  Mapped& m = opened(module);
  if (!m.table_asked && m.loaded) {
    if (m.shared) m.table = m.shared->table;
    if (!m.table) m.table = cache_.table_of(m.loaded->elf, kept_identity_of(m.descriptor));
    if (m.shared) m.shared->table = m.table;
  }
  m.table_asked = true;
  return m.table.get();
}

unwind::CodeRules* AddressSpace::code_of(uint32_t module) {
  if (module >= mapped_.size()) return nullptr;
  Mapped& m = opened(module);
  if (!m.code && m.loaded) m.code = std::make_unique<unwind::CodeRules>(m.loaded->elf, table_of(module));
  return m.code.get();
}

bool AddressSpace::is_loop(const unwind::NativeFrame& frame) {
  if (frame.module >= mapped_.size()) return false;
  Mapped& m = opened(frame.module);
  if (!m.loop_asked && m.loaded) m.loop = python::loop_code(m.loaded->elf);
  m.loop_asked = true;
  const uint64_t at = frame.lookup_pc().value - m.bias;
  return python::is_in(m.loop, ImageAddress(at));
}

}  // namespace phlox::sampler
