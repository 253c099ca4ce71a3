#include "phlox/symbols/module_names.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <charconv>

#include "phlox/base/byte_reader.h"
#include "phlox/base/descriptor.h"
#include "phlox/symbols/demangle.h"

namespace phlox::symbols {
namespace {

// Cython's C files reach some 10 MB.
constexpr size_t kLargestSource = 64 << 20;
constexpr uint32_t kCompressedZstd = 2;  // ELFCOMPRESS_ZSTD, gABI 2022; elfutils reads it from 0.189 on

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

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

bool has_lines(const elf::ElfFile& file) {
  return file.find_section(".debug_info") != nullptr || file.find_section(".zdebug_info") != nullptr;
}

// Adds the symbols of a separate file; says whether it has DWARF.
bool add_debug_symbols(const std::string& path, SymbolTable& symbols) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto bytes = fd ? elf::FileBytes::read(fd.get(), path)
                        : Result<elf::FileBytes>(fail(ErrorKind::input, "cannot open"));
  const auto file = bytes ? elf::ElfFile::parse(bytes->bytes())
                          : Result<elf::ElfFile>(fail(ErrorKind::input, "cannot read"));
  if (!file) return false;
  symbols.add(*file);
  return has_lines(*file);
}

}  // namespace

ModuleNames ModuleNames::open(const std::string& path, const std::string& shown_path,
                              const DebugSearch& search) {
  ModuleNames names;
  names.shown_path_ = shown_path;
  names.tried_debuginfod_ = search.debuginfod;
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    names.trouble_ = "the file cannot be opened";
    return names;
  }
  const auto bytes = elf::FileBytes::read(fd.get(), path);
  const auto file = bytes ? elf::ElfFile::parse(bytes->bytes()) : Result<elf::ElfFile>(fail(bytes));
  if (!file) {
    names.trouble_ = file.error().message;
    return names;
  }
  names.build_id_ = file->build_id();
  names.rust_ = says_rust(*file);
  names.symbols_.add(*file);
  std::string with_lines = has_lines(*file) ? path : std::string();
  if (with_lines.empty() || !file->has_symbol_table()) {
    names.debug_path_ = find_debug_file(*file, path, search);
    if (!names.debug_path_.empty() && add_debug_symbols(names.debug_path_, names.symbols_) &&
        with_lines.empty())
      with_lines = names.debug_path_;
  }
  names.symbols_.settle();
  if (with_lines.empty()) {
    names.trouble_ = names.build_id_.empty()
                         ? "no debug information in the file, which has no build-id"
                         : "no debug information in the file, and none found for its build-id";
    return names;
  }
  const Descriptor debug_fd(::open(with_lines.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto debug_bytes = debug_fd ? elf::FileBytes::read(debug_fd.get(), with_lines)
                                    : Result<elf::FileBytes>(fail(ErrorKind::input, "gone"));
  const auto debug = debug_bytes ? elf::ElfFile::parse(debug_bytes->bytes())
                                 : Result<elf::ElfFile>(fail(ErrorKind::input, "gone"));
  if (!debug) return names;
  const std::string alt = find_alt_file(*debug, with_lines, search);
  names.lines_ = DwarfLines::open(with_lines, alt);
  if (names.lines_ == nullptr) {
    names.trouble_ = holds_zstd(*debug)
                         ? "its debug information is compressed with zstd, which this libdw cannot read"
                         : "its debug information cannot be read";
  } else if (alt.empty() && debug_alt_link(*debug)) {
    names.trouble_ =
        fmt::format("the shared part of its debug information ({}) is missing", debug_alt_link(*debug)->path);
  }
  return names;
}

const Naming& ModuleNames::name(ImageAddress address) {
  const auto [place, fresh] = names_.try_emplace(address.value);
  if (fresh) {
    place->second = look_up(address);
    if (place->second.source == NameSource::none) ++without_symbol_;
    if (place->second.levels.front().line == 0 && place->second.source != NameSource::plt) ++without_line_;
  }
  return place->second;
}

Naming ModuleNames::look_up(ImageAddress address) {
  Naming naming;
  const auto symbol = symbols_.find(address);
  std::vector<SourceLevel> levels = lines_ != nullptr ? lines_->find(address) : std::vector<SourceLevel>();
  for (size_t i = 0; i < levels.size(); ++i) {
    NativeName name;
    const bool outermost = i + 1 == levels.size();
    // DWARF names C's functions only; for the one with code of its own the symbol says it as the linker does
    // ("f.cold").
    std::string_view mangled = levels[i].function;
    if (mangled.empty() && outermost && symbol) mangled = symbol->name;
    if (mangled.empty()) continue;
    name.function = demangle(mangled);
    name.file = std::move(levels[i].file);
    name.line = levels[i].line;
    name.inlined = !outermost;
    naming.levels.push_back(std::move(name));
    naming.source = NameSource::debug_info;
  }
  if (naming.levels.empty() && symbol) {
    NativeName name;
    name.function = demangle(symbol->name);
    naming.levels.push_back(std::move(name));
    const bool plt = symbol->name.size() > 4 && symbol->name.substr(symbol->name.size() - 4) == "@plt";
    naming.source = plt ? NameSource::plt : NameSource::symbol;
  }
  for (NativeName& name : naming.levels) {
    name.short_name = short_name(name.function);
    improve_cython(name);
  }
  if (naming.levels.empty()) {
    NativeName name;
    name.function = fmt::format("{}+{:#x}", base_name(shown_path_), address.value);
    name.short_name = name.function;
    naming.levels.push_back(std::move(name));
  }
  return naming;
}

void ModuleNames::improve_cython(NativeName& name) {
  const bool c_file = name.file.size() > 2 && (name.file.substr(name.file.size() - 2) == ".c" ||
                                               name.file.substr(name.file.size() - 4) == ".cpp");
  if (!c_file || name.line == 0) return;
  const auto [place, fresh] = sources_.try_emplace(name.file);
  if (fresh) {
    const Descriptor fd(::open(name.file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const auto bytes = fd ? elf::FileBytes::read(fd.get(), name.file)
                          : Result<elf::FileBytes>(fail(ErrorKind::input, "gone"));
    if (bytes && bytes->bytes().size() < kLargestSource) {
      const std::string_view text(reinterpret_cast<const char*>(bytes->bytes().data()),
                                  bytes->bytes().size());
      if (text.substr(0, 64).find("Generated by Cython") != std::string_view::npos) place->second = text;
    }
  }
  if (place->second.empty()) return;
  SourcePlace pyx = cython_place(place->second, name.line);
  if (pyx.file.empty()) return;
  name.file = std::move(pyx.file);
  name.line = pyx.line;
}

std::vector<MissingNames> ModuleNames::missing() const {
  if (without_symbol_ == 0 && without_line_ == 0) return {};
  MissingNames m;
  m.module = shown_path_;
  m.build_id = build_id_;
  m.no_symbols = without_symbol_ != 0;
  m.no_lines = without_line_ != 0;
  m.why = trouble_.empty() ? "its debug information does not cover every address" : trouble_;
  const bool packaged = shown_path_.substr(0, 5) == "/usr/" && shown_path_.substr(0, 11) != "/usr/local/";
  if (lines_ != nullptr) {
    m.complete = trouble_.empty();
    m.advice = "nothing to do: code without debug information was linked in";
  } else if (rust_) {
    m.advice = "build it with -C debuginfo=1 (Cargo: debug = 1 in the profile) and without strip";
  } else if (packaged) {
    m.advice = fmt::format("install its package's -dbgsym (find-dbgsym-packages {}){}", shown_path_,
                           tried_debuginfod_ || build_id_.empty() ? "" : ", or use --debuginfod");
  } else {
    m.advice = fmt::format("build it with -g and without stripping{}",
                           tried_debuginfod_ || build_id_.empty() ? "" : ", or try --debuginfod");
  }
  return {m};
}

SourcePlace cython_place(std::string_view c_source, int32_t line) {
  SourcePlace found;
  int32_t at = 1;
  while (!c_source.empty() && at <= line) {
    const size_t end = c_source.find('\n');
    const std::string_view text = c_source.substr(0, end);
    const size_t open = text.find("/* \"");
    const size_t close = open == std::string_view::npos ? open : text.find("\":", open + 4);
    if (close != std::string_view::npos) {
      int32_t number = 0;
      const char* from = text.data() + close + 2;
      if (std::from_chars(from, text.data() + text.size(), number).ec == std::errc{} && number > 0) {
        found = {std::string(text.substr(open + 4, close - open - 4)), number};
      }
    }
    if (end == std::string_view::npos) break;
    c_source.remove_prefix(end + 1);
    ++at;
  }
  return found;
}

}  // namespace phlox::symbols
