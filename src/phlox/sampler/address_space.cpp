#include "phlox/sampler/address_space.h"

#include <algorithm>
#include <string_view>

#include "phlox/unwind/arch/this_machine.h"

namespace phlox::sampler {
namespace {

// Every mapping of code there is; beyond, a hostile process makes us keep what it likes.
constexpr size_t kMostModules = 16384;

// _PyEval_EvalFrameDefault is the loop from 3.6 on, PyEval_EvalFrameEx before; compilers split parts off
// under names with a suffix (".cold", ".cold.0" of BOLT, ".localalias").
bool names_loop(std::string_view name) {
  for (const std::string_view loop : {"_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx"}) {
    if (name == loop || (name.starts_with(loop) && name[loop.size()] == '.')) return true;
  }
  return false;
}

}  // namespace

AddressSpace::AddressSpace(pid_t pid, memory::RemoteMemory& memory, std::string cache_folder)
    : pid_(pid), memory_(memory), cache_(std::move(cache_folder)), machine_(unwind::kThisMachine) {}

uint32_t AddressSpace::number_of(const target::Module& module) {
  for (uint32_t i = 0; i < mapped_.size(); ++i) {
    const target::Module& known = mapped_[i]->file;
    if (known.start == module.start && known.inode == module.inode && known.device == module.device &&
        known.path == module.path) {
      return i;
    }
  }
  if (mapped_.size() == kMostModules) return unwind::kNoModule;
  auto made = std::make_unique<Mapped>();
  made->file = module;
  const bool file = module.inode != 0;  // not the vdso
  if (file) {
    if (auto descriptor = target::open_module(pid_, module)) made->descriptor = *std::move(descriptor);
  }
  if (auto loaded = file ? target::load_module(pid_, module) : target::load_from_memory(memory_, module);
      loaded || (loaded = target::load_from_memory(memory_, module))) {
    made->bias = loaded->bias;
    made->build_id = loaded->elf.build_id();
    bool pre_ex = true;
    loaded->elf.for_each_symbol([&](const auto& symbol) {
      if (symbol.size == 0 || !names_loop(symbol.name)) return true;
      // Since 3.6 PyEval_EvalFrameEx only calls the loop.
      const bool old = symbol.name.starts_with("PyEval");
      if (!old && pre_ex) made->loop.clear();
      if (!old) pre_ex = false;
      if (old && !pre_ex) return true;
      made->loop.emplace_back(symbol.address.value, symbol.address.value + symbol.size);
      return true;
    });
    made->loaded.emplace(*std::move(loaded));
  }
  mapped_.push_back(std::move(made));
  return static_cast<uint32_t>(mapped_.size() - 1);
}

bool AddressSpace::refresh(Nanoseconds now) {
  const auto maps = target::read_maps(pid_);
  if (!maps || maps->empty()) return false;
  refreshed_at_ = now;
  std::vector<Seen> seen;
  for (const auto& m : *maps) {
    if (m.executable) seen.push_back({m.start.value, m.end.value, m.inode, m.offset});
  }
  if (seen == seen_) return true;
  seen_ = std::move(seen);
  map_.clear();
  for (const target::Module& module : target::modules_of(*maps)) {
    if (std::none_of(module.mappings.begin(), module.mappings.end(),
                     [](const auto& m) { return m.executable; })) {
      continue;
    }
    const uint32_t number = number_of(module);
    const uint64_t bias = number == unwind::kNoModule ? 0 : mapped_[number]->bias;
    for (const auto& m : module.mappings) {
      if (m.executable) map_.add(m.start, m.end, bias, number);
    }
  }
  for (const auto& m : *maps) {
    if (!m.executable || m.inode != 0) continue;
    const uint32_t number =
        m.path == "[vdso]" ? number_of({m.path, 0, 0, false, m.start, {m}}) : unwind::kNoModule;
    map_.add(m.start, m.end, number == unwind::kNoModule ? 0 : mapped_[number]->bias, number);
  }
  map_.settle();
  return true;
}

const unwind::UnwindTable* AddressSpace::table_of(uint32_t module) {
  if (module >= mapped_.size()) return nullptr;
  Mapped& m = *mapped_[module];
  if (!m.table_asked && m.loaded) {
    m.table = cache_.table_of(m.loaded->elf);
  }
  m.table_asked = true;
  return m.table.get();
}

bool AddressSpace::is_loop(const unwind::NativeFrame& frame) const {
  if (frame.module >= mapped_.size()) return false;
  const Mapped& m = *mapped_[frame.module];
  const uint64_t at = frame.lookup_pc().value - m.bias;
  return std::any_of(m.loop.begin(), m.loop.end(),
                     [at](const auto& range) { return at >= range.first && at < range.second; });
}

}  // namespace phlox::sampler
