#include "phlox/symbols/module_names.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "phlox/base/byte_reader.h"
#include "phlox/base/file_identity.h"
#include "phlox/base/regular_file.h"
#include "phlox/base/text.h"
#include "phlox/symbols/demangle.h"

namespace phlox::symbols {
namespace {

// Cython's C files have up to some 10 MB.
constexpr size_t kLargestSource = 64 << 20;
constexpr uint32_t kCompressedZstd = 2;  // ELFCOMPRESS_ZSTD, gABI 2022; elfutils reads it from 0.189 on

bool holds_zstd(const elf::ElfFile& file) {
  for (const elf::Section& s : file.sections()) {
    if ((s.flags & SHF_COMPRESSED) == 0 || s.name.substr(0, 6) != ".debug") continue;
    ByteReader in(file.contents(s));
    if (in.read<uint32_t>() == kCompressedZstd) return true;
  }
  return false;
}

bool says_rust(const elf::ElfFile& file) {
  const elf::Section* comment = file.find_section(".comment");
  if (comment == nullptr) return false;
  const auto bytes = file.contents(*comment);
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).find("rustc") !=
         std::string_view::npos;
}

// By the rules of C++ or Rust.
bool is_mangled(std::string_view name) {
  return name.starts_with("_Z") || name.starts_with("_R");
}

bool has_lines(const elf::ElfFile& file) {
  return file.find_section(".debug_info") != nullptr || file.find_section(".zdebug_info") != nullptr;
}

// Calls `visit` with the file at a path; false: it cannot be read.
template <class Visit>
bool with_file(const std::string& path, const DebugSearch& search, Visit&& visit) {
  const Descriptor fd = search.open(path);
  const auto bytes = fd ? elf::FileBytes::read(fd.get(), path, search.budget)
                        : Result<elf::FileBytes>(fail(ErrorKind::input, "cannot open"));
  const auto file =
      bytes ? elf::ElfFile::parse(*bytes) : Result<elf::ElfFile>(fail(ErrorKind::input, "cannot read"));
  if (!file) return false;
  visit(*file);
  return true;
}

// Empty: nothing from it may be cached.
std::string identity_of(const std::string& path, const DebugSearch& search) {
  if (path.empty()) return "none";
  const Descriptor file = search.open(path);
  return file ? kept_identity(file.get()) : std::string();
}

}  // namespace

ModuleNames ModuleNames::open(const std::string& path, const std::string& shown_path,
                              const DebugSearch& search) {
  ModuleNames names;
  names.shown_path_ = shown_path;
  names.tried_debuginfod_ = search.debuginfod != nullptr;
  const Descriptor fd = search.open(path);
  if (!fd) {
    names.trouble_ = "the file cannot be opened";
    return names;
  }
  auto bytes = elf::FileBytes::read(fd.get(), path, search.budget);
  const auto file = bytes ? elf::ElfFile::parse(*bytes) : Result<elf::ElfFile>(fail(bytes));
  if (!file) {
    names.trouble_ = file.error().message;
    return names;
  }
  names.bytes_.emplace(*std::move(bytes));
  names.starts_ = FunctionStarts(*file);
  names.file_ = *file;
  names.build_id_ = file->build_id();
  names.rust_ = says_rust(*file);
  names.search_ = search;
  // Fedora's addition to a stripped file is one too: the symbols that are not exported, compressed.
  names.has_symbol_table_ = file->has_symbol_table() || file->find_section(".gnu_debugdata") != nullptr;
  if (has_lines(*file)) names.with_lines_ = path;
  if (names.with_lines_.empty() || !file->has_symbol_table()) {
    names.debug_path_ = find_debug_file(*file, path, search);
    bool lines = false;
    const auto sample = [&](const elf::ElfFile& debug) {
      lines = has_lines(debug);
      names.has_symbol_table_ = names.has_symbol_table_ || debug.has_symbol_table();
    };
    if (!names.debug_path_.empty() && with_file(names.debug_path_, search, sample) && lines &&
        names.with_lines_.empty())
      names.with_lines_ = names.debug_path_;
  }
  if (names.with_lines_.empty()) {
    names.trouble_ = names.build_id_.empty()
                         ? "no debug information in the file, which has no build-id"
                         : "no debug information in the file, and none found for its build-id";
  }
  const std::string kept = kept_identity(fd.get()), kept_debug = identity_of(names.debug_path_, search);
  // The number is the version of the naming rules.
  if (!search.name_cache.empty() && !kept.empty() && !kept_debug.empty())
    names.cache_ = NameCache(search.name_cache, fmt::format("5 {} {} {}", kept, kept_debug, shown_path));
  return names;
}

void ModuleNames::load() {
  loaded_ = true;
  if (!file_) return;
  symbols_.add(*file_);
  if (!debug_path_.empty())
    with_file(debug_path_, search_, [&](const elf::ElfFile& debug) { symbols_.add(debug); });
  symbols_.settle();
  if (with_lines_.empty()) return;
  with_file(with_lines_, search_, [&](const elf::ElfFile& debug) {
    const std::string alt = find_alt_file(debug, with_lines_, search_);
    lines_ = DwarfLines::open(with_lines_, alt, search_);
    if (lines_ == nullptr) {
      trouble_ = holds_zstd(debug)
                     ? "its debug information is compressed with zstd, which this libdw cannot read"
                     : "its debug information cannot be read";
    } else if (alt.empty() && debug_alt_link(debug)) {
      trouble_ = fmt::format("the shared part of its debug information ({}) is missing",
                             debug_alt_link(debug)->path);
    }
  });
}

const Naming& ModuleNames::name(ImageAddress address) {
  const auto [at, fresh] = names_.try_emplace(address.value);
  if (fresh) {
    if (auto known = cache_.find(address)) {
      at->second = *std::move(known);
    } else {
      if (!loaded_) load();
      at->second = look_up(address);
    }
    if (at->second.source == NameSource::none) ++without_symbol_;
    if (at->second.levels.front().line == 0 && at->second.source != NameSource::plt) ++without_line_;
  }
  return at->second;
}

void ModuleNames::keep() {
  // Debug information that exists, but could not be read completely, may be readable next time.
  if (loaded_ && !with_lines_.empty() && !trouble_.empty()) return;
  for (const auto& [address, naming] : names_) {
    // The lines of a .pyx file come from a C file, which may change.
    const bool cython = std::any_of(naming.levels.begin(), naming.levels.end(), [](const NativeName& n) {
      return n.cython != CythonPart::none && n.line > 0;
    });
    if (!cython) cache_.add(ImageAddress(address), naming);
  }
  cache_.write();
}

NativeName ModuleNames::named(std::string_view symbol) const {
  NativeName name;
  const std::string_view file = base_name(shown_path_);
  CythonName cython = cython_name(symbol, file.substr(0, file.find('.')));
  if (cython.name.empty()) {
    name.function = demangle(symbol);
    name.short_name = short_name(name.function);
    return name;
  }
  name.cython = cython.part;
  name.function = std::move(cython.name);
  // The last two parts, as for C++.
  const size_t last = name.function.rfind('.');
  const size_t dot = last == std::string::npos || last == 0 ? last : name.function.rfind('.', last - 1);
  name.short_name = dot == std::string::npos ? name.function : name.function.substr(dot + 1);
  return name;
}

Naming ModuleNames::look_up(ImageAddress address) {
  Naming naming;
  const auto start = starts_.find(address);
  auto symbol = symbols_.find(address);
  // A label without a size does not reach beyond the function around it.
  if (symbol && !symbol->sized && starts_.find(ImageAddress(address.value - symbol->offset)) != start)
    symbol.reset();
  std::vector<SourceLevel> levels = lines_ != nullptr ? lines_->find(address) : std::vector<SourceLevel>();
  for (size_t i = 0; i < levels.size(); ++i) {
    const bool outermost = i + 1 == levels.size();
    // DWARF names only C's functions. For the function with its own code, the symbol has the linker's name
    // ("f.cold"), "malloc" where the source has __libc_malloc, and the scope of a function whose debug
    // information has only lines (-g1).
    std::string_view mangled = levels[i].function;
    if (outermost && symbol &&
        (mangled.empty() || (symbol->sized && (plainer_name(symbol->name, mangled) ||
                                               (is_mangled(symbol->name) && !is_mangled(mangled))))))
      mangled = symbol->name;
    if (mangled.empty()) {
      ++without_symbol_;
      continue;
    }
    NativeName name = named(mangled);
    name.file = std::move(levels[i].file);
    name.line = levels[i].line;
    name.declared_file = std::move(levels[i].declared_file);
    name.declared_line = levels[i].declared_line;
    // Lines without a function: take the file where the symbol's code begins.
    if (outermost && name.declared_file.empty() && symbol && symbol->offset != 0) {
      const auto first = lines_->find(ImageAddress(address.value - symbol->offset));
      if (!first.empty()) name.declared_file = first.back().file;
    }
    name.inlined = !outermost;
    improve_cython(name);
    naming.levels.push_back(std::move(name));
    naming.source = NameSource::debug_info;
  }
  if (naming.levels.empty() && symbol) {
    naming.levels.push_back(named(symbol->name));
    naming.source = symbol->name.ends_with("@plt") ? NameSource::plt : NameSource::symbol;
  }
  if (naming.levels.empty()) {
    NativeName name;
    name.function = fmt::format("{}+{:#x}", base_name(shown_path_), start.value_or(address).value);
    name.short_name = name.function;
    naming.levels.push_back(std::move(name));
  }
  return naming;
}

// Only functions of the .pyx file: in Cython's own code, comments belong to what precedes it.
void ModuleNames::improve_cython(NativeName& name) {
  if (name.cython == CythonPart::none) return;
  if (SourceLine pyx = pyx_line(name.file, name.line); !pyx.file.empty()) {
    name.file = std::move(pyx.file);
    name.line = pyx.line;
  }
  // The comment before a function belongs to what precedes it: its file is right, its line is not.
  if (SourceLine pyx = pyx_line(name.declared_file, name.declared_line); !pyx.file.empty()) {
    name.declared_file = std::move(pyx.file);
    name.declared_line = 0;
  }
}

// Empty: the line of the C file belongs to none, or the C file is missing.
SourceLine ModuleNames::pyx_line(const std::string& file, int32_t line) {
  const bool c_file = file.ends_with(".c") || file.ends_with(".cpp");
  if (!c_file || line == 0) return {};
  const auto [at, fresh] = sources_.try_emplace(file);
  if (fresh) {
    const Descriptor fd = open_regular(file, search_.user);
    const auto bytes = fd ? elf::FileBytes::read(fd.get(), file, search_.budget)
                          : Result<elf::FileBytes>(fail(ErrorKind::input, "gone"));
    if (bytes && bytes->size() < kLargestSource) {
      at->second = CythonSource(
          std::string_view(reinterpret_cast<const char*>(bytes->bytes().data()), bytes->bytes().size()));
    }
  }
  return at->second.find(line);
}

MissingNames ModuleNames::missing_names(bool symbols, bool lines) const {
  MissingNames m;
  m.module = shown_path_;
  m.build_id = build_id_;
  m.no_symbols = symbols;
  m.no_lines = lines;
  m.why = trouble_.empty() ? "its debug information does not cover every address" : trouble_;
  m.complete = !with_lines_.empty() && trouble_.empty();
  m.rust = rust_;
  m.tried_debuginfod = tried_debuginfod_;
  m.advice = advise(m, {});
  return m;
}

std::vector<MissingNames> ModuleNames::missing() const {
  if (without_symbol_ == 0 && without_line_ == 0) return {};
  return {missing_names(without_symbol_ != 0, without_line_ != 0)};
}

std::optional<MissingNames> ModuleNames::lacks() const {
  if (!with_lines_.empty()) return {};  // it names functions as well
  return missing_names(!has_symbol_table_, true);
}

namespace {

// Debian's C library and Pythons have separate debug packages; all others have them in the archive's part for
// debug symbols.
std::string debug_package_of(std::string_view package) {
  if (package == "libc6") return "libc6-dbg";
  std::string_view python = package;
  if (python.starts_with("lib")) python.remove_prefix(3);
  constexpr std::string_view kPython = "python3.";
  if (python.starts_with(kPython)) {
    const size_t end = python.find_first_not_of("0123456789", kPython.size());
    return std::string(python.substr(0, end)) + "-dbg";
  }
  return std::string(package) + "-dbgsym";
}

}  // namespace

std::string advise(const MissingNames& missing, std::string_view package) {
  const std::string_view path = missing.module;
  const bool wheel = path.find("/site-packages/") != std::string_view::npos ||
                     path.find("/dist-packages/") != std::string_view::npos;
  const bool packaged = path.starts_with("/usr/") && !path.starts_with("/usr/local/") && !wheel;
  std::string by_id;
  if (!missing.tried_debuginfod && !missing.build_id.empty())
    by_id = fmt::format(", or ask with --debuginfod (debuginfod-find debuginfo {})", missing.build_id);
  if (missing.complete) return "nothing to do: code without debug information was linked in";
  if (!package.empty()) {
    const std::string name = debug_package_of(package);
    return fmt::format("apt install {}{}{}", name,
                       name.ends_with("-dbgsym") ? " (from the archive's debug part)" : "", by_id);
  }
  if (packaged) return "install the debug symbols of its package" + by_id;
  if (missing.rust)
    return "build it with -C debuginfo=1 (Cargo: debug = 1 in the profile) and without strip" + by_id;
  if (wheel)
    return "build it from source with -g and without stripping (CFLAGS=-g pip install --no-binary)" + by_id;
  return "build it with -g and without stripping" + by_id;
}

}  // namespace phlox::symbols
