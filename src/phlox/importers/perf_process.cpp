#include "phlox/importers/perf_process.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "phlox/base/descriptor.h"
#include "phlox/base/text.h"
#include "phlox/importers/hex.h"
#include "phlox/importers/input.h"
#include "phlox/importers/python_frames.h"

namespace phlox::importers {
namespace {

// Enough for a program that maps and unmaps for days; further mappings are code without a file.
constexpr size_t kMostMapped = 16384;
constexpr size_t kMostRegions = 65536;
// A map from a JIT compiler that ran for days: some 10 million functions.
constexpr size_t kLargestJitFile = size_t{512} << 20;
// Ancestors in a chain of forks whose maps are read for the last child.
constexpr size_t kMostParentMaps = 64;

// How perf names memory without a file. Huge pages that hold code are a copy of something unknown.
bool is_file(std::string_view path) {
  if (path == "[vdso]") return true;
  return path.starts_with('/') && !path.starts_with("//anon") && !path.starts_with("/memfd:") &&
         !path.starts_with("/dev/") && !path.starts_with("/anon_hugepage");
}

bool is_jitdump(std::string_view path) {
  std::string_view name = base_name(path);
  return name.starts_with("jit-") && name.ends_with(".dump");
}

// A file that another user left in /tmp is not taken for the recorded process's. Under sudo, the caller's
// files are ours.
bool is_ours(uid_t owner) {
  if (owner == 0 || owner == ::geteuid()) return true;
  const char* caller = std::getenv("SUDO_UID");
  return caller != nullptr && fmt::format("{}", owner) == caller;
}

// Empty: no such file, or `trouble` says why it was not read.
std::string read_jit_file(const std::string& path, std::string& trouble) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat there {};
  if (!file) {
    if (errno != ENOENT) trouble = fmt::format("{}: {}", path, std::strerror(errno));
    return {};
  }
  if (::fstat(file.get(), &there) != 0 || !S_ISREG(there.st_mode)) {
    trouble = fmt::format("{} is not a file", path);
    return {};
  }
  if (!is_ours(there.st_uid)) {
    trouble = fmt::format("{} belongs to another user (uid {}): its names are not taken", path, there.st_uid);
    return {};
  }
  auto input = FileInput::open(path);
  if (!input) return {};
  return read_all(**input, kLargestJitFile).value_or("");
}

}  // namespace

void PerfProcess::put(uint64_t start, uint64_t end, uint32_t mapping) {
  if (start >= end || regions_.size() >= kMostRegions) return;
  // The previous mapping here is gone; its parts outside this range stay.
  auto at = regions_.lower_bound(start);
  if (at != regions_.begin()) {
    auto before = std::prev(at);
    if (before->second.end > end) regions_.emplace_hint(at, end, before->second);
    before->second.end = std::min(before->second.end, start);
  }
  at = regions_.lower_bound(start);
  while (at != regions_.end() && at->first < end) {
    if (at->second.end > end) {
      regions_.emplace(end, at->second);
      regions_.erase(at);
      break;
    }
    at = regions_.erase(at);
  }
  regions_[start] = {end, mapping};
  changed_ = true;
}

void PerfProcess::map(const perf::MapRecord& record) {
  if (record.size > ~uint64_t{0} - record.start || !record.executable) return;
  if (is_jitdump(record.path)) {
    jitdump_ = record.path;
    jit_asked_ = false;
    changed_ = true;
    return;
  }
  uint32_t mapping = unwind::kNoModule;
  if (is_file(record.path)) {
    std::string_view path = record.path;
    constexpr std::string_view kDeleted = " (deleted)";
    if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
    if (program_.empty() && path.starts_with('/')) program_ = path;
    injected_ = injected_ || is_injected(path);
    const uint32_t file = files_.number_of(path, {hex(record.build_id), record.device, record.inode});
    const auto before = std::find_if(mapped_.begin(), mapped_.end(), [&](const MappedFile& p) {
      return p.file == file && p.start == record.start && p.offset == record.offset;
    });
    mapping = static_cast<uint32_t>(before - mapped_.begin());
    if (before == mapped_.end()) {
      if (mapped_.size() < kMostMapped) {
        mapped_.push_back({file, record.start, record.offset, false, 0});
      } else {
        mapping = unwind::kNoModule;
      }
    }
  }
  put(record.start, record.start + record.size, mapping);
}

void PerfProcess::clear() {
  regions_.clear();
  mapped_.clear();
  jitdump_.clear();
  program_.clear();
  jit_.reset();
  own_map_ = std::make_shared<PerfMap>(pid_);
  parents_maps_.clear();
  jit_asked_ = injected_ = false;
  changed_ = true;
}

void PerfProcess::inherit(const PerfProcess& parent) {
  regions_ = parent.regions_;
  for (auto& [start, region] : regions_) region.from_fork = true;
  parents_maps_ = parent.parents_maps_;
  if (parents_maps_.size() < kMostParentMaps) parents_maps_.push_back(parent.own_map_);
  mapped_ = parent.mapped_;
  jitdump_ = parent.jitdump_;
  injected_ = parent.injected_;
  program_ = parent.program_;
  changed_ = true;
}

void PerfProcess::read(PerfMap& map) {
  if (std::exchange(map.asked, true)) return;
  const std::string text =
      read_jit_file(files_.beneath_sysroot(fmt::format("/tmp/perf-{}.map", map.pid)), jit_trouble_);
  map.jit.map.add_perf_map(text);
  map.jit.python = text.find(kPythonPrefix) != std::string::npos;
}

// A process with code in no file may have described it. Files of an earlier process with this number, and of
// one that forked, are searched only if there is such code.
void PerfProcess::read_jit() {
  jit_asked_ = true;
  if (!jitdump_.empty()) {
    auto jit = std::make_shared<Jit>();
    const std::string bytes = read_jit_file(files_.beneath_sysroot(jitdump_), jit_trouble_);
    if (!bytes.empty()) jit->map.add_jitdump(std::as_bytes(std::span(bytes)));
    jit->python = bytes.find(kPythonPrefix) != std::string::npos;
    jit_ = std::move(jit);
  }
  read(*own_map_);
  for (const auto& map : parents_maps_) read(*map);
}

// A child of Python 3.12 begins its own map, without what its parent compiled before the fork. The parent's
// names hold where nothing was mapped since.
std::optional<symbols::JitMap::Found> PerfProcess::named(RemoteAddress address) const {
  if (const auto found = own_map_->jit.map.find(address)) return found;
  if (const auto found = jit_ ? jit_->map.find(address) : std::nullopt) return found;
  const auto after = regions_.upper_bound(address.value);
  if (parents_maps_.empty() || after == regions_.begin()) return {};
  const Region& region = std::prev(after)->second;
  if (!region.from_fork || address.value >= region.end) return {};
  for (auto map = parents_maps_.rbegin(); map != parents_maps_.rend(); ++map) {
    if (const auto found = (*map)->jit.map.find(address)) return found;
  }
  return {};
}

PerfProcess::MappedFile& PerfProcess::opened(uint32_t mapping) {
  MappedFile& p = mapped_[mapping];
  if (p.asked) return p;
  p.asked = true;
  if (const auto bias = files_.file(p.file).bias_of(p.start, p.offset)) {
    p.bias = *bias;
    map_.set_bias(mapping, p.bias);
  }
  return p;
}

uint32_t PerfProcess::python_version() {
  for (const MappedFile& p : mapped_) {
    const std::string_view name = base_name(files_.path(p.file));
    if (!name.starts_with("python") && !name.starts_with("libpython")) continue;
    if (const uint32_t version = files_.file(p.file).python_version(name); version != 0) return version;
  }
  return 0;
}

std::string PerfProcess::python() {
  const uint32_t version = python_version();
  return version == 0 ? "" : fmt::format("{}.{}", version >> 8, version & 0xff);
}

// For every return address in a trampoline of -X perf (Python/asm_trampoline.S, x86-64): 3.12 and 3.13 only
// keep the stack aligned; later versions keep the caller's frame pointer too, which is no chain of frame
// pointers.
unwind::Rule PerfProcess::trampoline_rule() {
  unwind::Rule rule;
  const uint32_t version = python_version();
  if (machine_ != EM_X86_64 || version < 0x030c) return rule;
  rule.kind = unwind::RuleKind::plain;
  rule.cfa_offset = 16;
  rule.ra_offset = -8;
  if (version >= 0x030e) {
    rule.fp = unwind::FpRule::at_cfa;
    rule.fp_offset = -16;
  }
  return rule;
}

void PerfProcess::settle() {
  if (!changed_) return;
  changed_ = false;
  ++generation_;
  const bool bare = std::any_of(regions_.begin(), regions_.end(),
                                [](const auto& r) { return r.second.mapping == unwind::kNoModule; });
  if ((bare || !jitdump_.empty()) && !jit_asked_) read_jit();
  std::optional<unwind::Rule> trampoline;
  map_.clear();
  for (const auto& [start, region] : regions_) {
    if (region.end <= start) continue;
    if (region.mapping != unwind::kNoModule) {
      map_.add(RemoteAddress(start), RemoteAddress(region.end), mapped_[region.mapping].bias, region.mapping);
      continue;
    }
    const auto first = named(RemoteAddress(start));
    if (first && first->name.starts_with(kPythonPrefix)) {
      if (!trampoline) trampoline = trampoline_rule();
      map_.add_code(RemoteAddress(start), RemoteAddress(region.end), *trampoline);
    } else {
      map_.add(RemoteAddress(start), RemoteAddress(region.end), 0, unwind::kNoModule);
    }
  }
  map_.settle();
}

PerfProcess::MappedCode PerfProcess::find(RemoteAddress address) {
  settle();
  MappedCode found;
  const auto* entry = map_.find(address);
  found.mapped = entry != nullptr;
  if (entry == nullptr || entry->module == unwind::kNoModule) return found;
  const MappedFile& p = opened(entry->module);
  found.file = &files_.file(p.file);
  found.file_number = p.file;
  // For a missing file: the bias of a position-independent file that lies in memory as on disk.
  found.bias = found.file->found() ? p.bias : p.start - p.offset;
  return found;
}

std::optional<symbols::JitMap::Found> PerfProcess::jit_function(RemoteAddress address) {
  settle();
  return named(address);
}

bool PerfProcess::tells_python() {
  settle();
  return injected_ || (jit_ && jit_->python) || own_map_->jit.python ||
         std::any_of(parents_maps_.begin(), parents_maps_.end(),
                     [](const auto& map) { return map->jit.python; });
}

bool PerfProcess::read_code(RemoteAddress at, std::span<std::byte> into) {
  const MappedCode found = find(at);
  if (found.file == nullptr || !found.file->found()) return false;
  const auto bytes = found.file->elf().at(ImageAddress(at.value - found.bias), into.size());
  if (bytes.size() < into.size()) return false;
  std::memcpy(into.data(), bytes.data(), into.size());
  return true;
}

void PerfProcess::unwind(const unwind::UnwindInput& input, unwind::NativeStack& out) {
  settle();
  if (!unwinder_) {
    unwinder_ = std::make_unique<unwind::Unwinder>(
        map_, machine_,
        [this](uint32_t mapping) -> const unwind::UnwindTable* {
          return files_.file(opened(mapping).file).table();
        },
        [this](uint32_t mapping) -> unwind::CodeRules* { return files_.file(opened(mapping).file).code(); });
  }
  unwinder_->unwind(input, out);
}

}  // namespace phlox::importers
