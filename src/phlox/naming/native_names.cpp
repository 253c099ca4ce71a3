#include "phlox/naming/native_names.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "phlox/base/descriptor.h"
#include "phlox/process/packages.h"
#include "phlox/process/text_file.h"
#include "phlox/profile/declarations.h"
#include "phlox/symbols/jit_map.h"

namespace phlox::naming {
namespace {

// Limits for what JIT compilers wrote: for one process (some million functions), and for all processes of a
// recording.
constexpr size_t kLargestMap = size_t{128} << 20;
constexpr size_t kMostMaps = size_t{1} << 30;
// Limit for reading one process's libraries and their debug information.
constexpr uint64_t kMostForNames = uint64_t{4} << 30;

profile::FrameRole role_of(symbols::CythonPart part) {
  switch (part) {
    case symbols::CythonPart::slot:
      return profile::FrameRole::cython_slot;
    case symbols::CythonPart::wrapper:
      return profile::FrameRole::cython_wrapper;
    case symbols::CythonPart::body:
      return profile::FrameRole::cython_body;
    case symbols::CythonPart::function:
    case symbols::CythonPart::none:
      break;
  }
  return profile::FrameRole::none;
}

// The frame itself becomes the function that has its own code; functions inlined there follow as separate
// frames.
void put_named(profile::Sink& sink, profile::FrameId id, const profile::Frame& frame,
               const std::vector<symbols::NativeName>& levels, uint32_t& last_frame) {
  profile::FrameId into = id;
  for (size_t i = levels.size(); i-- > 0;) {
    profile::Frame named = frame;
    named.function = levels[i].short_name;
    named.qualified_name = levels[i].function;
    named.file = levels[i].file;
    named.line = levels[i].line;
    named.first_line = levels[i].declared_line;
    const std::string& declared = levels[i].declared_file;
    if (!declared.empty() && !named.file.empty() && declared != named.file)
      sink.emit_meta(profile::declaration_key(named.qualified_name, named.first_line, named.file), declared);
    if (const auto role = role_of(levels[i].cython); role != profile::FrameRole::none) named.role = role;
    profile::FrameId to = id;
    if (i + 1 < levels.size()) {
      to = profile::FrameId(++last_frame);
      named.inlined_in = into;
      into = to;
    }
    sink.emit(to, named);
  }
}

symbols::MissingNames too_long(const profile::NativeModule& module) {
  symbols::MissingNames names;
  names.module = module.path;
  names.no_symbols = names.no_lines = true;
  names.why = "to read and look up the names of its process took too long";
  names.advice = "its other addresses have no names";
  return names;
}

}  // namespace

std::string path_to_open(const profile::NativeModule& module) {
  if (module.open_path.empty() || !module.descriptor) return module.open_path;
  struct stat kept {
  }, there{};
  if (::fstat(module.descriptor->get(), &kept) == 0 && ::stat(module.path.c_str(), &there) == 0 &&
      kept.st_ino == there.st_ino && kept.st_dev == there.st_dev) {
    return module.path;
  }
  return module.open_path;
}

// The CPU time that naming takes, of each process and of all.
class NativeRows::Stopwatch {
 public:
  explicit Stopwatch(const Patience& patience) : patience_(patience) {}

  // From now until end() for a process: its modules share its root. Returns what may be read of its files.
  const std::shared_ptr<elf::ReadBudget>& begin(const Descriptor* root) {
    effort_ = &efforts_[root];
    begun_ = clock_now(CLOCK_THREAD_CPUTIME_ID);
    return effort_->budget;
  }
  bool is_over() const {
    const Nanoseconds now = taken();
    return effort_->spent + now >= patience_.of_process || spent_ + now >= patience_.of_all;
  }
  void end() {
    effort_->spent += taken();
    spent_ += taken();
  }

 private:
  struct Effort {
    std::shared_ptr<elf::ReadBudget> budget = std::make_shared<elf::ReadBudget>(kMostForNames);
    Nanoseconds spent = 0;
  };
  Nanoseconds taken() const { return clock_now(CLOCK_THREAD_CPUTIME_ID) - begun_; }

  const Patience& patience_;
  std::map<const Descriptor*, Effort> efforts_;
  Effort* effort_ = nullptr;
  Nanoseconds begun_ = 0, spent_ = 0;
};

void NativeRows::receive(const profile::AnyRow& row) {
  if (const auto* module = std::get_if<profile::Numbered<profile::ModuleId>>(&row)) {
    take(module->id, module->value);
  } else if (const auto* frame = std::get_if<profile::Numbered<profile::FrameId>>(&row)) {
    take(frame->id, frame->value);
  } else {
    sink_.receive(row);
  }
}

void NativeRows::take(profile::ModuleId id, const profile::Module& module) {
  modules_[id.value] = module;
  sink_.emit(id, module);
}

void NativeRows::take(profile::FrameId id, const profile::Frame& frame) {
  last_frame_ = std::max(last_frame_, id.value);
  if (frame.kind == profile::FrameKind::native) frames_.emplace_back(id, frame);
  if (frame.kind == profile::FrameKind::kernel) kernel_frames_.emplace_back(id, frame);
  if (put_ == Put::at_once || frame.kind != profile::FrameKind::native) sink_.emit(id, frame);
}

void NativeRows::name_code_without_file(const std::vector<profile::FrameId>& wanted,
                                        const std::vector<profile::NativeModule>& modules) {
  // One map for each process: another process's map says nothing about its code.
  struct Written {
    symbols::JitMap map;
    size_t left = kLargestMap;
  };
  std::map<profile::FrameId, profile::Frame*> frames;
  for (auto& [id, frame] : frames_) {
    if (std::binary_search(wanted.begin(), wanted.end(), id)) frames.emplace(id, &frame);
  }
  // Only functions at wanted addresses of the process's code are kept.
  const auto map_of = [&frames](const std::set<profile::FrameId>* code) {
    std::vector<RemoteAddress> addresses;
    for (const auto& [id, frame] : frames) {
      if (code == nullptr || code->contains(id)) addresses.emplace_back(frame->address);
    }
    return Written{symbols::JitMap(std::move(addresses))};
  };
  std::map<std::shared_ptr<const std::set<profile::FrameId>>, Written> processes;
  size_t left = kMostMaps;
  for (const profile::NativeModule& module : modules) {
    if (module.kind == profile::NativeFile::module || !module.descriptor) continue;
    auto at = processes.find(module.code);
    if (at == processes.end()) at = processes.emplace(module.code, map_of(module.code.get())).first;
    Written& process = at->second;
    // Read, not mapped: the target may truncate its file meanwhile.
    const auto bytes = process::read_regular(*module.descriptor, std::min(left, process.left));
    if (!bytes) continue;
    left -= bytes->size();
    process.left -= bytes->size();
    if (module.kind == profile::NativeFile::perf_map) {
      process.map.add_perf_map(*bytes);
    } else {
      process.map.add_jitdump(std::as_bytes(std::span(bytes->data(), bytes->size())));
    }
  }
  const auto put_name = [&](const symbols::JitMap& map, profile::FrameId id, profile::Frame& frame) {
    const auto found = map.find(RemoteAddress(frame.address));
    if (!found) return;
    symbols::NativeName name;
    name.function = name.short_name = std::string(found->name);
    name.file = std::string(found->file);
    name.line = found->line;
    put_named(sink_, id, frame, {name}, last_frame_);
  };
  for (const auto& [code, process] : processes) {
    if (!code) {
      for (const auto& [id, frame] : frames) put_name(process.map, id, *frame);
      continue;
    }
    for (const profile::FrameId id : *code) {
      if (const auto frame = frames.find(id); frame != frames.end())
        put_name(process.map, id, *frame->second);
    }
  }
}

void NativeRows::name_kernel_frames() {
  if (kernel_frames_.empty() || kernel_ == Kernel::named_already) return;
  const auto names = symbols::KernelSymbols::read();
  for (auto& [id, frame] : kernel_frames_) {
    const auto name = names.find(frame.address);
    if (!name) continue;
    frame.function = frame.qualified_name = *name;
    sink_.emit(id, frame);
  }
}

void NativeRows::put_unnamed(size_t frame) {
  if (put_ == Put::when_named) sink_.emit(frames_[frame].first, frames_[frame].second);
}

// `frames`: those of the module, as indices.
std::vector<NativeRows::Missing> NativeRows::name_module(const profile::NativeModule& module,
                                                         const std::vector<size_t>& frames,
                                                         const symbols::DebugSearch& search,
                                                         Stopwatch& stopwatch) {
  const bool is_vdso = module.path.starts_with('[');
  symbols::DebugSearch how = is_vdso ? symbols::DebugSearch() : search;
  how.user = module.user;
  how.budget = stopwatch.begin(module.root.get());
  bool is_cut = stopwatch.is_over();
  std::optional<symbols::ModuleNames> names;
  if (!is_cut) names.emplace(symbols::ModuleNames::open(path_to_open(module), module.path, how));
  for (const size_t i : frames) {
    const auto& [id, frame] = frames_[i];
    is_cut = is_cut || stopwatch.is_over();
    if (is_cut) {
      put_unnamed(i);
      continue;
    }
    const auto& levels = names->name(ImageAddress(frame.address)).levels;
    levels.empty() ? put_unnamed(i) : put_named(sink_, id, frame, levels, last_frame_);
  }
  if (names) names->keep();
  stopwatch.end();
  std::vector<Missing> missing;
  if (is_cut) {
    missing.push_back({module.id, {}, too_long(module)});
  } else if (!is_vdso) {  // nothing would provide its lines
    for (symbols::MissingNames& row : names->missing())
      missing.push_back({module.id, module.root, std::move(row)});
  }
  return missing;
}

std::vector<NativeRows::Missing> NativeRows::name(const std::vector<profile::NativeModule>& modules,
                                                  const symbols::DebugSearch& search,
                                                  const Patience& patience) {
  std::map<uint32_t, std::vector<size_t>> by_module;
  std::vector<profile::FrameId> without_module;
  for (size_t i = 0; i < frames_.size(); ++i) {
    const auto& [id, frame] = frames_[i];
    by_module[frame.module ? frame.module->value : 0].push_back(i);
    if (!frame.module && frame.address != 0) without_module.push_back(id);
  }
  std::vector<Missing> missing;
  Stopwatch stopwatch(patience);
  for (const profile::NativeModule& module : modules) {
    const auto found = by_module.extract(module.id.value);
    if (!found) continue;
    for (Missing& one : name_module(module, found.mapped(), search, stopwatch))
      missing.push_back(std::move(one));
  }
  for (const auto& [module, left] : by_module)
    for (const size_t i : left) put_unnamed(i);
  if (!without_module.empty()) name_code_without_file(without_module, modules);
  name_kernel_frames();
  std::stable_sort(missing.begin(), missing.end(), [](const Missing& a, const Missing& b) {
    return a.names.no_symbols > b.names.no_symbols;
  });
  return missing;
}

NamesHere::~NamesHere() = default;
NamesHere::NamesHere(symbols::DebugSearch search) : search_(std::move(search)) {}

// Names from another file than the mapped one would be wrong.
symbols::ModuleNames* NamesHere::names_of(const profile::Module& module) {
  if (module.build_id.empty() || !module.path.starts_with('/')) return nullptr;
  const auto [at, added] = modules_.try_emplace({module.path, module.build_id});
  if (added) {
    std::unique_ptr<symbols::ModuleNames> names(
        new symbols::ModuleNames(symbols::ModuleNames::open(module.path, module.path, search_)));
    if (names->build_id() == module.build_id) at->second = std::move(names);
  }
  return at->second.get();
}

void NamesHere::name_kernel_frame(profile::Profile& profile, profile::FrameId id, profile::Frame frame) {
  if (!kernel_) kernel_ = std::make_unique<symbols::KernelSymbols>(symbols::KernelSymbols::read());
  const auto name = kernel_->find(frame.address);
  if (!name) return;
  frame.function = frame.qualified_name = *name;
  profile.emit(id, frame);
}

void NamesHere::name(profile::Profile& profile, Kernel kernel) {
  const size_t count = profile.frames().size();
  auto last = static_cast<uint32_t>(count);
  for (size_t i = 0; i < count; ++i) {
    const profile::Frame frame = profile.frames()[i];
    if (!frame.function.empty()) continue;
    const profile::FrameId id(static_cast<uint32_t>(i + 1));
    if (frame.kind == profile::FrameKind::kernel && kernel == Kernel::this_host)
      name_kernel_frame(profile, id, frame);
    if (frame.kind != profile::FrameKind::native || !frame.module) continue;
    symbols::ModuleNames* const names = names_of(profile.modules()[frame.module->value - 1]);
    if (names == nullptr) continue;
    put_named(profile, id, frame, names->name(ImageAddress(frame.address)).levels, last);
  }
}

void NamesHere::keep() {
  for (auto& [module, names] : modules_) {
    if (names) names->keep();
  }
}

void look_up_packages(std::vector<NativeRows::Missing>& missing) {
  // Successive programs of a recording may have had different roots.
  std::map<std::shared_ptr<Descriptor>, std::vector<std::string>> paths;
  for (const NativeRows::Missing& row : missing) {
    if (row.root && !row.names.complete) paths[row.root].push_back(row.names.module);
  }
  for (const auto& [root, of_root] : paths) {
    const auto packages = process::packages_of(*root, of_root);
    for (NativeRows::Missing& row : missing) {
      const auto found = packages.find(row.names.module);
      if (row.root == root && found != packages.end())
        row.names.advice = symbols::advise(row.names, found->second);
    }
  }
}

void NativeRows::advise(std::vector<Missing>& missing) {
  look_up_packages(missing);
  for (const Missing& row : missing) {
    if (row.names.complete) continue;
    profile::Module& module = modules_[row.module.value];
    module.missing = {row.names.no_symbols, row.names.no_lines, row.names.why, row.names.advice};
    sink_.emit(row.module, module);
  }
}

std::string describe(const NativeRows::Missing& missing) {
  const symbols::MissingNames& names = missing.names;
  return fmt::format("{}: no {} ({}): {}", names.module,
                     names.no_symbols && names.no_lines ? "functions, no lines"
                     : names.no_symbols                 ? "functions"
                                                        : "lines",
                     names.why, names.advice);
}

}  // namespace phlox::naming
