#include "phlox/symbols/dwarf_lines.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <endian.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "phlox/base/byte_reader.h"
#include "phlox/base/descriptor.h"
#include "phlox/base/file_identity.h"
#include "phlox/base/regular_file.h"
#include "phlox/elf/elf_file.h"

namespace phlox::symbols {
namespace {

// For one file; a large library needs some 100 MB.
constexpr uint64_t kMostLineMemory = uint64_t{1} << 30;
constexpr size_t kMostUnits = 1'000'000;
constexpr size_t kMostRanges = 10'000'000;
constexpr size_t kMostDies = 20'000'000;  // of one unit, or below one function
constexpr size_t kDeepest = 256;          // inlining; gcc stops at a few dozen

struct Range {
  uint64_t start = 0, end = 0;
  size_t index = 0;
};

// Sorted by start. Several may contain an address (a function within a unit's hull): the narrowest wins.
std::optional<size_t> narrowest(const std::vector<Range>& ranges, uint64_t address) {
  auto next = std::upper_bound(ranges.begin(), ranges.end(), address,
                               [](uint64_t v, const Range& r) { return v < r.start; });
  std::optional<size_t> best;
  uint64_t width = ~uint64_t{0};
  for (int back = 0; back < 32 && next != ranges.begin(); ++back) {
    --next;
    if (address < next->end && next->end - next->start < width) {
      width = next->end - next->start;
      best = next->index;
    }
  }
  return best;
}

void add_ranges(Dwarf_Die* die, size_t index, std::vector<Range>& out) {
  Dwarf_Addr base = 0, start = 0, end = 0;
  ptrdiff_t at = 0;
  while (out.size() < kMostRanges && (at = ::dwarf_ranges(die, at, &base, &start, &end)) > 0) {
    // Functions that the linker discarded start at 0.
    if (start < end && start != 0) out.push_back({start, end, index});
  }
}

void sort(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::pair(a.start, b.end) < std::pair(b.start, a.end);
  });
}

// Includes functions: a function of a local class (a lambda's) may be in one, with its own code.
bool may_hold_functions(int tag) {
  return tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block || tag == DW_TAG_namespace ||
         tag == DW_TAG_module || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
         tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type;
}

std::string name_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned kind :
       {unsigned{DW_AT_linkage_name}, unsigned{DW_AT_MIPS_linkage_name}, unsigned{DW_AT_name}}) {
    if (::dwarf_attr_integrate(die, kind, &attribute) == nullptr) continue;
    const char* text = ::dwarf_formstring(&attribute);
    if (text != nullptr && *text != '\0') return text;
  }
  return {};
}

// The declaration of the function itself, whatever file its lines come from.
void put_declaration(Dwarf_Die* die, SourceLevel& level) {
  const char* file = ::dwarf_decl_file(die);
  if (file == nullptr || *file == '\0') return;
  level.declared_file = file;
  int line = 0;
  if (::dwarf_decl_line(die, &line) == 0 && line > 0) level.declared_line = line;
}

// A function that the compiler generated has no declaration: its first line replaces it.
void put_beginning(Dwarf_Die* unit, Dwarf_Die* function, SourceLevel& level) {
  Dwarf_Addr begin = 0;
  if (::dwarf_entrypc(function, &begin) != 0) return;
  Dwarf_Line* first = ::dwarf_getsrc_die(unit, begin);
  const char* file = first != nullptr ? ::dwarf_linesrc(first, nullptr, nullptr) : nullptr;
  if (file == nullptr) return;
  level.declared_file = file;
  int line = 0;
  if (::dwarf_lineno(first, &line) == 0 && line > 0) level.declared_line = line;
}

std::optional<Dwarf_Word> number(Dwarf_Die* die, unsigned kind) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (::dwarf_attr(die, kind, &attribute) == nullptr || ::dwarf_formudata(&attribute, &value) != 0)
    return std::nullopt;
  return value;
}

// The function of which an inlined one, or a copy with code, is an instance.
Dwarf_Off origin_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  Dwarf_Die origin;
  if (::dwarf_attr(die, DW_AT_abstract_origin, &attribute) == nullptr ||
      ::dwarf_formref_die(&attribute, &origin) == nullptr)
    return ::dwarf_dieoffset(die);
  return ::dwarf_dieoffset(&origin);
}

// GCC splits a function (-fpartial-inlining), and may put the part back: then the function is inlined into
// itself, called where it is declared. That is one function; a recursive one is called elsewhere.
bool is_part_of(Dwarf_Die* inlined, Dwarf_Die* around) {
  if (origin_of(inlined) != origin_of(around)) return false;
  int line = 0, column = 0;
  return ::dwarf_decl_line(inlined, &line) == 0 && ::dwarf_decl_column(inlined, &column) == 0 && column > 0 &&
         number(inlined, DW_AT_call_line) == Dwarf_Word(line) &&
         number(inlined, DW_AT_call_column) == Dwarf_Word(column);
}

// The memory that libdw needs to unpack a section.
uint64_t unpacked_size(const elf::ElfFile& file, const elf::Section& section) {
  elf::Section head = section;
  if ((section.flags & SHF_COMPRESSED) != 0) {
    head.size = std::min<uint64_t>(section.size, sizeof(Elf64_Chdr));
    ByteReader in(file.contents(head));
    return in.read<Elf64_Chdr>().ch_size;
  }
  if (!section.name.starts_with(".zdebug")) return 0;
  // "ZLIB" and the size in network byte order.
  head.size = std::min<uint64_t>(section.size, 12);
  ByteReader in(file.contents(head));
  in.skip(4);
  return be64toh(in.read<uint64_t>());
}

// Reads what libdw will use. False: it is more than we read of one file.
bool fetch_debug_sections(const elf::ElfFile& file) {
  uint64_t left = kMostLineMemory;
  for (const elf::Section& section : file.sections()) {
    const bool debug = section.name.starts_with(".debug") || section.name.starts_with(".zdebug") ||
                       section.name.starts_with(".gnu_debug");
    if (!debug || section.type == SHT_NOBITS || section.size == 0) continue;
    for (const uint64_t size : {section.size, unpacked_size(file, section)}) {
      if (size > left) return false;
      left -= size;
    }
    if (file.contents(section).empty()) return false;
  }
  return true;
}

bool is_ours(int fd) {
  struct stat there {};
  return ::fstat(fd, &there) == 0 && is_written_by_us(there);
}

// One file for libdw: a copy of the bytes that we read. dwarf_begin() would map the file, and truncating a
// mapped file would kill us.
struct DwarfFile {
  DwarfFile() = default;
  DwarfFile(const DwarfFile&) = delete;
  DwarfFile& operator=(const DwarfFile&) = delete;
  ~DwarfFile() {
    if (dwarf != nullptr) ::dwarf_end(dwarf);
    if (elf != nullptr) ::elf_end(elf);
  }

  bool open(const std::string& path, const DebugSearch& search) {
    const Descriptor file = search.open(path);
    auto read = file ? elf::FileBytes::read(file.get(), path, search.budget)
                     : Result<elf::FileBytes>(fail(ErrorKind::input, "cannot open"));
    if (!read) return false;
    bytes.emplace(*std::move(read));
    const auto parsed = elf::ElfFile::parse(*bytes);
    if (!parsed || !fetch_debug_sections(*parsed)) return false;
    ours = is_ours(file.get());
    const auto image = bytes->as_fetched();
    ::elf_version(EV_CURRENT);
    elf = ::elf_memory(reinterpret_cast<char*>(image.data()), image.size());
    if (elf != nullptr) dwarf = ::dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
    return dwarf != nullptr;
  }

  std::optional<elf::FileBytes> bytes;
  bool ours = false;  // only root or our user can have written it: libdw may open what it names (split units)
  Elf* elf = nullptr;
  Dwarf* dwarf = nullptr;
};

}  // namespace

struct DwarfLines::Libdw {
  struct Unit {
    Dwarf_Die die{};
    bool indexed = false;
    std::vector<Range> function_ranges;
    std::vector<Dwarf_Die> functions;
  };

  void index_units() {
    Dwarf_CU* cu = nullptr;
    Dwarf_Half version = 0;
    uint8_t type = 0;
    Dwarf_Die die, sub{};
    Dwarf_Die* const split = file.ours ? &sub : nullptr;
    while (units.size() < kMostUnits &&
           ::dwarf_get_units(file.dwarf, cu, &cu, &version, &type, &die, split) == 0) {
      if (type == DW_UT_type || type == DW_UT_split_type || ::dwarf_tag(&die) == DW_TAG_partial_unit)
        continue;
      if (split != nullptr && type == DW_UT_skeleton && ::dwarf_tag(&sub) != DW_TAG_invalid) die = sub;
      Unit unit;
      unit.die = die;
      add_ranges(&die, units.size(), unit_ranges);
      units.push_back(std::move(unit));
    }
    sort(unit_ranges);
  }

  // Functions with code, in any namespace, type or function.
  static void index_functions(Unit& unit) {
    unit.indexed = true;
    std::vector<Dwarf_Die> open;
    Dwarf_Die die;
    if (::dwarf_child(&unit.die, &die) != 0) return;
    open.push_back(die);
    for (size_t seen = 0; !open.empty() && seen < kMostDies; ++seen) {
      die = open.back();
      open.pop_back();
      Dwarf_Die next, child;
      if (::dwarf_siblingof(&die, &next) == 0) open.push_back(next);
      const int tag = ::dwarf_tag(&die);
      if (tag == DW_TAG_subprogram) {
        const size_t before = unit.function_ranges.size();
        add_ranges(&die, unit.functions.size(), unit.function_ranges);
        if (unit.function_ranges.size() != before) unit.functions.push_back(die);
      }
      if (may_hold_functions(tag) && open.size() < kMostDies && ::dwarf_child(&die, &child) == 0) {
        open.push_back(child);
      }
    }
    sort(unit.function_ranges);
  }

  // The inlined functions at an address within a function, outermost first.
  static std::vector<Dwarf_Die> inlined_at(Dwarf_Die function, uint64_t address) {
    std::vector<Dwarf_Die> out;
    Dwarf_Die die;
    bool more = ::dwarf_child(&function, &die) == 0;
    for (size_t seen = 0; more && seen < kMostDies && out.size() < kDeepest; ++seen) {
      const int tag = ::dwarf_tag(&die);
      const bool scope = tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block;
      Dwarf_Die next;
      if (scope && ::dwarf_haspc(&die, address) == 1) {
        if (tag == DW_TAG_inlined_subroutine && !is_part_of(&die, out.empty() ? &function : &out.back()))
          out.push_back(die);
        more = ::dwarf_child(&die, &next) == 0;
      } else {
        more = ::dwarf_siblingof(&die, &next) == 0;
      }
      die = next;
    }
    return out;
  }

  DwarfFile alt, file;  // the alternative file outlives the one that refers to it
  std::vector<Unit> units;
  std::vector<Range> unit_ranges;
};

DwarfLines::DwarfLines(std::unique_ptr<Libdw> libdw) : libdw_(std::move(libdw)) {}
DwarfLines::~DwarfLines() = default;

std::unique_ptr<DwarfLines> DwarfLines::open(const std::string& path, const std::string& alt_path,
                                             const DebugSearch& search) {
  auto libdw = std::make_unique<Libdw>();
  if (!libdw->file.open(path, search)) return nullptr;
  if (!alt_path.empty() && libdw->alt.open(alt_path, search))
    ::dwarf_setalt(libdw->file.dwarf, libdw->alt.dwarf);
  libdw->index_units();
  if (libdw->units.empty()) return nullptr;
  return std::unique_ptr<DwarfLines>(new DwarfLines(std::move(libdw)));
}

std::vector<SourceLevel> DwarfLines::find(ImageAddress address) {
  std::vector<SourceLevel> out;
  const auto unit_index = narrowest(libdw_->unit_ranges, address.value);
  if (!unit_index) return out;
  Libdw::Unit& unit = libdw_->units[*unit_index];

  SourceLevel at;
  if (Dwarf_Line* line = ::dwarf_getsrc_die(&unit.die, address.value)) {
    int number_of_line = 0;
    ::dwarf_lineno(line, &number_of_line);
    at.line = number_of_line;
    const char* file = ::dwarf_linesrc(line, nullptr, nullptr);
    if (file != nullptr) at.file = file;
  }
  if (!unit.indexed) Libdw::index_functions(unit);
  const auto function = narrowest(unit.function_ranges, address.value);
  if (!function) {
    if (at.line != 0) out.push_back(at);
    return out;
  }
  Dwarf_Die& die = unit.functions[*function];
  std::vector<Dwarf_Die> inlined = Libdw::inlined_at(die, address.value);
  Dwarf_Files* files = nullptr;
  size_t file_count = 0;
  if (::dwarf_getsrcfiles(&unit.die, &files, &file_count) != 0) files = nullptr;
  // The call site of an inlined function is a line of the function around it.
  for (auto inner = inlined.rbegin(); inner != inlined.rend(); ++inner) {
    at.function = name_of(&*inner);
    put_declaration(&*inner, at);
    out.push_back(at);
    at = {};
    const auto file = number(&*inner, DW_AT_call_file);
    if (file && files != nullptr && *file < file_count) {
      const char* text = ::dwarf_filesrc(files, *file, nullptr, nullptr);
      if (text != nullptr) at.file = text;
    }
    const auto line = number(&*inner, DW_AT_call_line);
    if (line && *line < 0x7fffffff) at.line = static_cast<int32_t>(*line);
  }
  at.function = name_of(&die);
  put_declaration(&die, at);
  if (at.declared_file.empty()) put_beginning(&unit.die, &die, at);
  out.push_back(at);
  return out;
}

}  // namespace phlox::symbols
