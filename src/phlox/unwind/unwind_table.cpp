#include "phlox/unwind/unwind_table.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "phlox/base/byte_reader.h"
#include "phlox/unwind/arch/aarch64.h"
#include "phlox/unwind/arch/x86_64.h"

namespace phlox::unwind {
namespace {

// DWARF 5, section 6.4 and 7.24; the .eh_frame differences: Linux Standard Base Core 5.0, chapter 10.6.
enum : uint8_t {
  DW_CFA_nop = 0x00,
  DW_CFA_set_loc = 0x01,
  DW_CFA_advance_loc1 = 0x02,
  DW_CFA_advance_loc2 = 0x03,
  DW_CFA_advance_loc4 = 0x04,
  DW_CFA_offset_extended = 0x05,
  DW_CFA_restore_extended = 0x06,
  DW_CFA_undefined = 0x07,
  DW_CFA_same_value = 0x08,
  DW_CFA_register = 0x09,
  DW_CFA_remember_state = 0x0a,
  DW_CFA_restore_state = 0x0b,
  DW_CFA_def_cfa = 0x0c,
  DW_CFA_def_cfa_register = 0x0d,
  DW_CFA_def_cfa_offset = 0x0e,
  DW_CFA_def_cfa_expression = 0x0f,
  DW_CFA_expression = 0x10,
  DW_CFA_offset_extended_sf = 0x11,
  DW_CFA_def_cfa_sf = 0x12,
  DW_CFA_def_cfa_offset_sf = 0x13,
  DW_CFA_val_offset = 0x14,
  DW_CFA_val_offset_sf = 0x15,
  DW_CFA_val_expression = 0x16,
  DW_CFA_AARCH64_negate_ra_state = 0x2d,
  DW_CFA_GNU_args_size = 0x2e,
  DW_CFA_GNU_negative_offset_extended = 0x2f,
  DW_CFA_advance_loc = 0x40,
  DW_CFA_offset = 0x80,
  DW_CFA_restore = 0xc0,
};
enum : uint8_t {
  DW_OP_deref = 0x06,
  DW_OP_and = 0x1a,
  DW_OP_plus = 0x22,
  DW_OP_plus_uconst = 0x23,
  DW_OP_shl = 0x24,
  DW_OP_ge = 0x2a,
  DW_OP_lit0 = 0x30,
  DW_OP_lit3 = 0x33,
  DW_OP_lit15 = 0x3f,
  DW_OP_lit31 = 0x4f,
  DW_OP_breg0 = 0x70,
  DW_OP_breg31 = 0x8f,
};
enum : uint8_t { DW_EH_PE_omit = 0xff, DW_EH_PE_indirect = 0x80 };

// gcc nests remember_state two or three deep; anything near this is not a compiler's work.
constexpr size_t kMaxRemembered = 64;
// A rule number is 16 bits wide; OpenBLAS has about 1,000.
constexpr size_t kMaxRules = 65535;
constexpr std::array<char, 8> kMagic = {'P', 'H', 'L', 'X', 'C', 'F', 'I', '3'};

// Where a module's registers are, in DWARF's numbering.
struct DwarfRegisters {
  uint64_t sp, fp, bx, ra;
  bool ra_in_register;  // what "not said" means for the return address: still in the link register
};

std::optional<DwarfRegisters> registers_of(uint16_t machine) {
  if (machine == EM_X86_64)
    return DwarfRegisters{X86_64::kDwarfSp, X86_64::kDwarfFp, X86_64::kDwarfBx, X86_64::kDwarfRa, false};
  if (machine == EM_AARCH64)
    return DwarfRegisters{Aarch64::kDwarfSp, Aarch64::kDwarfFp, Aarch64::kDwarfBx, Aarch64::kDwarfRa, true};
  return std::nullopt;
}

struct Cfa {
  enum Kind : uint8_t { unknown, reg, deref, plt } kind = unknown;
  uint64_t base = 0;  // register
  int64_t offset = 0;
  int64_t inner = 0;
};
struct Saved {
  enum Kind : uint8_t { unsaid, undefined, same, at_cfa, at_fp, unknown } kind = unsaid;
  int64_t offset = 0;
};
struct State {
  Cfa cfa;
  Saved fp, ra, bx;
};

struct Cie {
  bool valid = false;
  uint64_t code_align = 1;
  int64_t data_align = 1;
  uint64_t ra_register = 0;
  uint8_t encoding = 0;  // of FDE addresses
  bool has_augmentation_size = false;
  bool signal = false;
  State initial;
};
struct Fde {
  uint64_t start = 0, end = 0;
  const Cie* cie = nullptr;
  std::span<const std::byte> instructions;
  uint64_t instructions_address = 0;
  const FrameSection* section = nullptr;
};

struct RuleHash {
  size_t operator()(const Rule& r) const {
    uint64_t h = static_cast<uint64_t>(r.kind) | static_cast<uint64_t>(r.base) << 8 |
                 static_cast<uint64_t>(r.fp) << 16 | static_cast<uint64_t>(r.ra) << 24 |
                 static_cast<uint64_t>(r.bx) << 32 | uint64_t{static_cast<uint16_t>(r.bx_offset)} << 40;
    for (const int32_t v : {r.cfa_offset, r.inner, r.fp_offset, r.ra_offset}) {
      h = (h ^ static_cast<uint32_t>(v)) * 0x9e3779b97f4a7c15ULL;
      h ^= h >> 29;
    }
    return static_cast<size_t>(h);
  }
};

bool fits32(int64_t v) {
  return v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max();
}

// Multiplies like the machine does; a product that makes no sense is caught by fits32.
int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

// A pointer in one of .eh_frame's encodings. `field` is the address of its first byte.
std::optional<uint64_t> read_pointer(ByteReader& in, uint8_t encoding, uint64_t section_address,
                                     const FrameSection& section, bool range) {
  const uint64_t field = section_address + in.offset();
  uint64_t value = 0;
  switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
      value = in.read<uint64_t>();
      break;
    case 0x01:
      value = in.uleb128();
      break;
    case 0x02:
      value = in.read<uint16_t>();
      break;
    case 0x03:
      value = in.read<uint32_t>();
      break;
    case 0x09:
      value = static_cast<uint64_t>(in.sleb128());
      break;
    case 0x0a:
      value = static_cast<uint64_t>(int64_t{in.read<int16_t>()});
      break;
    case 0x0b:
      value = static_cast<uint64_t>(int64_t{in.read<int32_t>()});
      break;
    default:
      return std::nullopt;
  }
  if (in.failed()) return std::nullopt;
  if (range) return value;
  if ((encoding & DW_EH_PE_indirect) != 0) return std::nullopt;
  switch (encoding & 0x70) {
    case 0x00:
      return value;
    case 0x10:
      return value + field;
    case 0x20:
      return value + section.text_base.value;
    case 0x30:
      return value + section.data_base.value;
    default:
      return std::nullopt;
  }
}

// How many bytes an encoded pointer takes is all that is wanted of a personality routine's.
bool skip_pointer(ByteReader& in, uint8_t encoding) {
  if (encoding == DW_EH_PE_omit) return true;
  switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
      in.skip(8);
      break;
    case 0x01:
    case 0x09:
      in.uleb128();
      break;
    case 0x02:
    case 0x0a:
      in.skip(2);
      break;
    case 0x03:
    case 0x0b:
      in.skip(4);
      break;
    default:
      return false;
  }
  return !in.failed();
}

}  // namespace

class TableBuilder {
 public:
  explicit TableBuilder(uint16_t machine) : registers_(*registers_of(machine)) {
    table_.machine_ = machine;
    id_of(Rule{});
  }

  void add(const FrameSection& section) {
    std::vector<Fde> found;
    collect(section, found);
    accept(std::move(found));
  }

  UnwindTable finish() {
    if (fdes_.empty()) return std::move(table_);
    table_.base_ = ImageAddress(fdes_.front().start);
    for (const Fde& fde : fdes_) {
      if (fde.end - table_.base_.value >= std::numeric_limits<uint32_t>::max()) {
        ++table_.leftovers_.entries;  // sorted: everything from here on is too far away
        break;
      }
      run(fde);
    }
    table_.offsets_.shrink_to_fit();
    table_.ids_.shrink_to_fit();
    return std::move(table_);
  }

  // Gives [start, start + size) this kind if nothing describes it.
  static void mark(UnwindTable& table, ImageAddress start, uint64_t size, RuleKind kind) {
    if (table.offsets_.empty() || start < table.base_) return;
    const uint64_t offset = start - table.base_;
    if (offset + size >= std::numeric_limits<uint32_t>::max() || table.find(start).kind != RuleKind::none)
      return;
    const auto at =
        std::upper_bound(table.offsets_.begin(), table.offsets_.end(), static_cast<uint32_t>(offset));
    const size_t next = static_cast<size_t>(at - table.offsets_.begin());
    // Inside a gap: the row before is "none" and the next one starts beyond.
    if (next < table.offsets_.size() && table.offsets_[next] < offset + size) return;
    if (table.rules_.size() >= kMaxRules) return;
    Rule rule;
    rule.kind = kind;
    auto known = std::find(table.rules_.begin(), table.rules_.end(), rule);
    const auto id = static_cast<uint16_t>(known - table.rules_.begin());
    if (known == table.rules_.end()) table.rules_.push_back(rule);
    std::vector<uint32_t> offsets = {static_cast<uint32_t>(offset)};
    std::vector<uint16_t> ids = {id};
    if (next == table.offsets_.size() || table.offsets_[next] != offset + size) {
      offsets.push_back(static_cast<uint32_t>(offset + size));
      ids.push_back(0);
    }
    size_t index = next;
    if (index > 0 && table.offsets_[index - 1] == offset) {
      table.ids_[index - 1] = id;
      offsets.erase(offsets.begin());
      ids.erase(ids.begin());
    }
    table.offsets_.insert(table.offsets_.begin() + static_cast<ptrdiff_t>(index), offsets.begin(),
                          offsets.end());
    table.ids_.insert(table.ids_.begin() + static_cast<ptrdiff_t>(index), ids.begin(), ids.end());
  }

 private:
  // A section's entries, in order: visit(offset of the entry, of its id, id, is it wide, end). False: it ends
  // in damage.
  template <class Visit>
  static bool for_each_entry(const FrameSection& section, Visit visit) {
    ByteReader in(section.bytes);
    while (in.remaining() >= 4) {
      const size_t entry = in.offset();
      uint64_t length = in.read<uint32_t>();
      const bool wide = length == 0xffffffff;
      if (wide) length = in.read<uint64_t>();
      if (length == 0) continue;  // a terminator; linkers leave them between joined sections
      if (in.failed() || length > in.remaining()) return false;
      const size_t content = in.offset();
      const uint64_t id = wide ? in.read<uint64_t>() : in.read<uint32_t>();
      if (in.failed()) return false;
      visit(entry, content, id, wide, content + length);
      in.seek(content + length);
    }
    return true;
  }

  // First the CIEs, each executed once, then the FDEs that point at one of them. An FDE that points elsewhere
  // counts as damaged: "CIEs" that overlap would make work without end out of few bytes.
  void collect(const FrameSection& section, std::vector<Fde>& found) {
    const bool whole = for_each_entry(section, [&](size_t entry, size_t, uint64_t id, bool wide, size_t) {
      if (!is_cie(section, id, wide)) return;
      Cie& cie = cies_[{section.bytes.data(), entry}];
      cie.valid = parse_cie(section, entry, cie);
      if (!cie.valid) ++table_.leftovers_.entries;
    });
    if (!whole) ++table_.leftovers_.entries;
    for_each_entry(section, [&](size_t, size_t content, uint64_t id, bool wide, size_t end) {
      if (is_cie(section, id, wide)) return;
      const auto cie = cies_.find({section.bytes.data(), section.debug_frame ? id : content - id});
      const size_t from = content + (wide ? 8 : 4);
      if (cie == cies_.end() || !cie->second.valid || from > end ||
          !parse_fde(section, cie->second, from, end, found)) {
        ++table_.leftovers_.entries;
      }
    });
  }

  static bool is_cie(const FrameSection& section, uint64_t id, bool wide) {
    if (!section.debug_frame) return id == 0;
    return id == (wide ? ~uint64_t{0} : uint64_t{0xffffffff});
  }

  bool parse_cie(const FrameSection& section, uint64_t at, Cie& cie) {
    ByteReader in(section.bytes);
    in.seek(at);
    uint64_t length = in.read<uint32_t>();
    const bool wide = length == 0xffffffff;
    if (wide) length = in.read<uint64_t>();
    if (in.failed() || length == 0 || length > in.remaining()) return false;
    in = ByteReader(section.bytes.first(in.offset() + length).subspan(in.offset()));
    const uint64_t start_address = section.address.value + at + (wide ? 12 : 4);
    const uint64_t id = wide ? in.read<uint64_t>() : in.read<uint32_t>();
    if (in.failed() || !is_cie(section, id, wide)) return false;
    const auto version = in.read<uint8_t>();
    if (version != 1 && version != 3 && version != 4) return false;
    const std::string_view augmentation = in.c_string();
    if (version == 4) {
      if (in.read<uint8_t>() != 8 || in.read<uint8_t>() != 0)
        return false;  // address size, segment selector size
    }
    cie.code_align = in.uleb128();
    cie.data_align = in.sleb128();
    cie.ra_register = version == 1 ? in.read<uint8_t>() : in.uleb128();
    if (in.failed() || cie.ra_register != registers_.ra) return false;
    if (!augmentation.empty()) {
      if (augmentation.front() != 'z') return false;
      cie.has_augmentation_size = true;
      const uint64_t size = in.uleb128();
      if (in.failed() || size > in.remaining()) return false;
      const size_t instructions = in.offset() + size;
      for (const char c : augmentation.substr(1)) {
        if (c == 'R') {
          cie.encoding = in.read<uint8_t>();
        } else if (c == 'P') {
          if (!skip_pointer(in, in.read<uint8_t>())) return false;
        } else if (c == 'L') {
          in.skip(1);
        } else if (c == 'S') {
          cie.signal = true;
        } else if (c != 'B' && c != 'G') {  // aarch64: pointer authentication key, memory tagging
          break;                            // unknown: the size says where the instructions start
        }
      }
      in.seek(instructions);
    }
    if (in.failed()) return false;
    const size_t from = in.offset();
    execute(cie, section, in.bytes(in.remaining()), start_address + from, cie.initial, {}, nullptr);
    return true;
  }

  bool parse_fde(const FrameSection& section, const Cie& cie, size_t from, size_t end,
                 std::vector<Fde>& found) {
    ByteReader in(section.bytes.first(end));
    in.seek(from);
    const auto start = read_pointer(in, cie.encoding, section.address.value, section, false);
    const auto size =
        start ? read_pointer(in, cie.encoding, section.address.value, section, true) : std::nullopt;
    if (!size || *size > ~uint64_t{0} - *start) return false;
    if (cie.has_augmentation_size) {
      const uint64_t skipped = in.uleb128();
      if (in.failed() || skipped > in.remaining()) return false;
      in.skip(skipped);
    }
    // Linkers set the start of functions they threw away to 0.
    if (*size == 0 || *start == 0) return true;
    Fde fde;
    fde.start = *start;
    fde.end = *start + *size;
    fde.cie = &cie;
    fde.instructions_address = section.address.value + in.offset();
    fde.instructions = in.bytes(in.remaining());
    fde.section = &section;
    found.push_back(fde);
    return true;
  }

  // Keeps what no earlier section covers; fdes_ stays sorted and free of overlaps.
  void accept(std::vector<Fde> found) {
    std::stable_sort(found.begin(), found.end(),
                     [](const Fde& a, const Fde& b) { return a.start < b.start; });
    std::vector<Fde> joined;
    joined.reserve(fdes_.size() + found.size());
    size_t old = 0;
    uint64_t covered = 0;
    for (const Fde& fde : found) {
      while (old < fdes_.size() && fdes_[old].start <= fde.start) {
        covered = fdes_[old].end;
        joined.push_back(fdes_[old++]);
      }
      const bool hits_next = old < fdes_.size() && fdes_[old].start < fde.end;
      if (fde.start < covered || hits_next) continue;
      covered = fde.end;
      joined.push_back(fde);
    }
    joined.insert(joined.end(), fdes_.begin() + static_cast<ptrdiff_t>(old), fdes_.end());
    fdes_ = std::move(joined);
  }

  void run(const Fde& fde) {
    State state = fde.cie->initial;
    current_ = fde.start;
    emit_end_ = fde.end;
    execute(*fde.cie, *fde.section, fde.instructions, fde.instructions_address, state, fde.cie->initial,
            &fde);
    emit(current_, state, fde.cie->signal);
    put(fde.end, 0);
  }

  // Runs CFA instructions on `state`. With an FDE every step of the location emits the row before it.
  void execute(const Cie& cie, const FrameSection& section, std::span<const std::byte> code, uint64_t address,
               State& state, const State& initial, const Fde* fde) {
    ByteReader in(code);
    remembered_.clear();
    auto advance = [&](uint64_t delta) {
      if (fde == nullptr) return false;
      uint64_t step = 0, to = 0;
      if (__builtin_mul_overflow(delta, cie.code_align, &step) || __builtin_add_overflow(current_, step, &to))
        return false;
      if (step == 0) return true;
      emit(current_, state, cie.signal);
      if (to >= emit_end_) return false;
      current_ = to;
      return true;
    };
    auto set = [&](uint64_t reg, Saved saved) {
      if (reg == registers_.fp) state.fp = saved;
      if (reg == registers_.ra) state.ra = saved;
      if (reg == registers_.bx) state.bx = saved;
    };
    auto restore = [&](uint64_t reg) {
      if (reg == registers_.fp) state.fp = initial.fp;
      if (reg == registers_.ra) state.ra = initial.ra;
      if (reg == registers_.bx) state.bx = initial.bx;
    };
    auto offset_of = [&](uint64_t factor) { return times(static_cast<int64_t>(factor), cie.data_align); };
    while (!in.at_end() && !in.failed()) {
      const auto op = in.read<uint8_t>();
      switch (op & 0xc0) {
        case DW_CFA_advance_loc:
          if (!advance(op & 0x3f)) return;
          continue;
        case DW_CFA_offset: {
          const uint64_t factor = in.uleb128();
          set(op & 0x3f, {Saved::at_cfa, offset_of(factor)});
          continue;
        }
        case DW_CFA_restore:
          restore(op & 0x3f);
          continue;
        default:
          break;
      }
      switch (op) {
        case DW_CFA_nop:
          break;
        case DW_CFA_set_loc: {
          const auto to = read_pointer(in, cie.encoding, address, section, false);
          if (!to || fde == nullptr || *to < current_) return;
          if (*to > current_) {
            emit(current_, state, cie.signal);
            if (*to >= emit_end_) return;
            current_ = *to;
          }
          break;
        }
        case DW_CFA_advance_loc1:
          if (!advance(in.read<uint8_t>())) return;
          break;
        case DW_CFA_advance_loc2:
          if (!advance(in.read<uint16_t>())) return;
          break;
        case DW_CFA_advance_loc4:
          if (!advance(in.read<uint32_t>())) return;
          break;
        case DW_CFA_offset_extended: {
          const uint64_t reg = in.uleb128();
          set(reg, {Saved::at_cfa, offset_of(in.uleb128())});
          break;
        }
        case DW_CFA_offset_extended_sf: {
          const uint64_t reg = in.uleb128();
          set(reg, {Saved::at_cfa, times(in.sleb128(), cie.data_align)});
          break;
        }
        case DW_CFA_GNU_negative_offset_extended: {
          const uint64_t reg = in.uleb128();
          set(reg, {Saved::at_cfa, times(offset_of(in.uleb128()), -1)});
          break;
        }
        case DW_CFA_restore_extended: {
          const uint64_t reg = in.uleb128();
          restore(reg);
          break;
        }
        case DW_CFA_undefined:
          set(in.uleb128(), {Saved::undefined, 0});
          break;
        case DW_CFA_same_value:
          set(in.uleb128(), {Saved::same, 0});
          break;
        case DW_CFA_register: {
          const uint64_t reg = in.uleb128();
          const uint64_t other = in.uleb128();
          set(reg, {other == reg ? Saved::same : Saved::unknown, 0});
          break;
        }
        case DW_CFA_val_offset:
        case DW_CFA_val_offset_sf: {
          set(in.uleb128(), {Saved::unknown, 0});
          in.uleb128();
          break;
        }
        case DW_CFA_remember_state:
          if (remembered_.size() == kMaxRemembered) return;
          remembered_.push_back(state);
          break;
        case DW_CFA_restore_state:
          if (remembered_.empty()) return;
          state = remembered_.back();
          remembered_.pop_back();
          break;
        case DW_CFA_def_cfa: {
          const uint64_t reg = in.uleb128();
          state.cfa = {Cfa::reg, reg, static_cast<int64_t>(in.uleb128()), 0};
          break;
        }
        case DW_CFA_def_cfa_sf: {
          const uint64_t reg = in.uleb128();
          state.cfa = {Cfa::reg, reg, times(in.sleb128(), cie.data_align), 0};
          break;
        }
        case DW_CFA_def_cfa_register: {
          const uint64_t reg = in.uleb128();
          if (state.cfa.kind != Cfa::reg) state.cfa = {};
          state.cfa.base = reg;
          break;
        }
        case DW_CFA_def_cfa_offset:
          state.cfa.offset = static_cast<int64_t>(in.uleb128());
          break;
        case DW_CFA_def_cfa_offset_sf:
          state.cfa.offset = times(in.sleb128(), cie.data_align);
          break;
        case DW_CFA_def_cfa_expression:
          state.cfa = recognise_cfa(in.bytes(in.uleb128()));
          break;
        case DW_CFA_expression: {
          const uint64_t reg = in.uleb128();
          set(reg, recognise_address(in.bytes(in.uleb128())));
          break;
        }
        case DW_CFA_val_expression: {
          const uint64_t reg = in.uleb128();
          in.bytes(in.uleb128());
          set(reg, {Saved::unknown, 0});
          break;
        }
        // Whether the return address carries an authentication code: it is masked off in any case.
        case DW_CFA_AARCH64_negate_ra_state:
          break;
        case DW_CFA_GNU_args_size:
          in.uleb128();
          break;
        default:
          return;  // unknown: how long it is cannot be known either
      }
    }
  }

  // *(base + inner) + offset, or base + offset, or the expression that linkers give the lazy PLT.
  Cfa recognise_cfa(std::span<const std::byte> expression) const {
    ByteReader in(expression);
    const auto first = in.read<uint8_t>();
    if (first < DW_OP_breg0 || first > DW_OP_breg31) return {};
    const uint64_t base = first - DW_OP_breg0;
    const int64_t displacement = in.sleb128();
    if (in.failed()) return {};
    if (in.at_end()) return {Cfa::reg, base, displacement, 0};
    const auto second = in.read<uint8_t>();
    if (second == DW_OP_deref) {
      Cfa cfa{Cfa::deref, base, 0, displacement};
      if (in.at_end()) return cfa;
      const auto third = in.read<uint8_t>();
      if (third == DW_OP_plus_uconst) {
        cfa.offset = static_cast<int64_t>(in.uleb128());
      } else if (third >= DW_OP_lit0 && third <= DW_OP_lit31 && in.read<uint8_t>() == DW_OP_plus) {
        cfa.offset = third - DW_OP_lit0;
      } else {
        return {};
      }
      return in.at_end() && !in.failed() ? cfa : Cfa{};
    }
    // x86-64 only: sp + 8 + ((pc & 15) >= N) * 8, in bfd/elfxx-x86.h and lld alike.
    if (base != X86_64::kDwarfSp || registers_.ra != X86_64::kDwarfRa ||
        second != DW_OP_breg0 + X86_64::kDwarfRa)
      return {};
    if (in.sleb128() != 0 || in.read<uint8_t>() != DW_OP_lit15 || in.read<uint8_t>() != DW_OP_and) return {};
    const auto limit = in.read<uint8_t>();
    if (limit < DW_OP_lit0 || limit > DW_OP_lit15) return {};
    if (in.read<uint8_t>() != DW_OP_ge || in.read<uint8_t>() != DW_OP_lit3 ||
        in.read<uint8_t>() != DW_OP_shl || in.read<uint8_t>() != DW_OP_plus || in.failed() || !in.at_end()) {
      return {};
    }
    return {Cfa::plt, base, displacement, limit - DW_OP_lit0};
  }

  // Where a register is saved: fp + offset (functions that realign their stack), nothing else is followed.
  Saved recognise_address(std::span<const std::byte> expression) const {
    ByteReader in(expression);
    if (in.read<uint8_t>() != DW_OP_breg0 + registers_.fp) return {Saved::unknown, 0};
    const int64_t offset = in.sleb128();
    if (in.failed() || !in.at_end()) return {Saved::unknown, 0};
    return {Saved::at_fp, offset};
  }

  Rule rule_of(const State& s, bool signal) const {
    Rule rule;
    if (signal) {
      rule.kind = RuleKind::signal;
      return rule;
    }
    if (s.ra.kind == Saved::undefined) {
      rule.kind = RuleKind::end;
      return rule;
    }
    rule.kind = RuleKind::plain;
    const bool on_sp = s.cfa.base == registers_.sp;
    const bool on_bx = s.cfa.base == registers_.bx && s.cfa.kind == Cfa::reg;
    if (s.cfa.kind == Cfa::unknown || (!on_sp && !on_bx && s.cfa.base != registers_.fp)) return {};
    if (!fits32(s.cfa.offset) || !fits32(s.cfa.inner) || !fits32(s.fp.offset) || !fits32(s.ra.offset))
      return {};
    if (s.cfa.kind == Cfa::reg) rule.base = on_sp ? CfaBase::sp : on_bx ? CfaBase::bx : CfaBase::fp;
    if (s.cfa.kind == Cfa::deref) rule.base = on_sp ? CfaBase::deref_sp : CfaBase::deref_fp;
    if (s.cfa.kind == Cfa::plt) rule.base = CfaBase::plt;
    rule.cfa_offset = static_cast<int32_t>(s.cfa.offset);
    rule.inner = static_cast<int32_t>(s.cfa.kind == Cfa::reg ? 0 : s.cfa.inner);
    switch (s.fp.kind) {
      case Saved::unsaid:
      case Saved::same:
        rule.fp = FpRule::same;
        break;
      case Saved::at_cfa:
        rule.fp = FpRule::at_cfa;
        rule.fp_offset = static_cast<int32_t>(s.fp.offset);
        break;
      case Saved::at_fp:
        rule.fp = FpRule::at_fp;
        rule.fp_offset = static_cast<int32_t>(s.fp.offset);
        break;
      case Saved::undefined:
      case Saved::unknown:
        rule.fp = FpRule::unknown;
        break;
    }
    if (s.bx.kind == Saved::at_cfa && s.bx.offset == static_cast<int16_t>(s.bx.offset)) {
      rule.bx = BxRule::at_cfa;
      rule.bx_offset = static_cast<int16_t>(s.bx.offset);
    } else if (s.bx.kind != Saved::unsaid && s.bx.kind != Saved::same) {
      rule.bx = BxRule::unknown;
    }
    switch (s.ra.kind) {
      case Saved::at_cfa:
        rule.ra = RaRule::at_cfa;
        rule.ra_offset = static_cast<int32_t>(s.ra.offset);
        break;
      case Saved::unsaid:
      case Saved::same:
        if (!registers_.ra_in_register) return {};
        rule.ra = RaRule::link_register;
        break;
      default:
        return {};
    }
    return rule;
  }

  uint16_t id_of(const Rule& rule) {
    const auto known = ids_.find(rule);
    if (known != ids_.end()) return known->second;
    if (table_.rules_.size() >= kMaxRules) return 0;
    const auto id = static_cast<uint16_t>(table_.rules_.size());
    table_.rules_.push_back(rule);
    ids_.emplace(rule, id);
    return id;
  }

  void emit(uint64_t pc, const State& state, bool signal) {
    const Rule rule = rule_of(state, signal);
    if (rule.kind == RuleKind::none) ++table_.leftovers_.rows;
    put(pc, id_of(rule));
  }

  void put(uint64_t pc, uint16_t id) {
    const auto offset = static_cast<uint32_t>(pc - table_.base_.value);
    auto& offsets = table_.offsets_;
    auto& ids = table_.ids_;
    if (!offsets.empty() && offsets.back() == offset) {
      offsets.pop_back();
      ids.pop_back();
    }
    if (!ids.empty() && ids.back() == id) return;
    offsets.push_back(offset);
    ids.push_back(id);
  }

  struct PlaceHash {
    size_t operator()(const std::pair<const std::byte*, uint64_t>& p) const {
      return std::hash<const void*>{}(p.first) ^ (p.second * 0x9e3779b97f4a7c15ULL);
    }
  };

  UnwindTable table_;
  DwarfRegisters registers_;
  std::unordered_map<std::pair<const std::byte*, uint64_t>, Cie, PlaceHash> cies_;
  std::vector<Fde> fdes_;
  std::unordered_map<Rule, uint16_t, RuleHash> ids_;
  std::vector<State> remembered_;
  uint64_t current_ = 0, emit_end_ = 0;
};

UnwindTable UnwindTable::build(std::span<const FrameSection> sections, uint16_t machine) {
  UnwindTable empty;
  empty.machine_ = machine;
  if (!registers_of(machine)) return empty;
  TableBuilder builder(machine);
  for (const FrameSection& section : sections) builder.add(section);
  return builder.finish();
}

namespace {

// Without section headers (the vdso's are kept, but some packers drop them): PT_GNU_EH_FRAME points at the
// header, which points at .eh_frame, which ends at its terminator or with its segment.
std::optional<FrameSection> section_of_segments(const elf::ElfFile& file) {
  for (const elf::Segment& s : file.segments()) {
    if (s.type != PT_GNU_EH_FRAME) continue;
    ByteReader in(file.at(s.address, s.file_size));
    FrameSection header{{}, s.address, false, s.address, {}};
    in.skip(1);
    const auto encoding = in.read<uint8_t>();
    in.skip(2);
    const auto frames =
        in.failed() ? std::nullopt : read_pointer(in, encoding, s.address.value, header, false);
    if (!frames) return std::nullopt;
    for (const elf::Segment& load : file.segments()) {
      if (load.type != PT_LOAD || *frames < load.address.value ||
          *frames - load.address.value >= load.file_size)
        continue;
      const ImageAddress at(*frames);
      auto bytes = file.at(at, load.file_size - (at - load.address));
      return FrameSection{bytes, at, false, s.address, {}};
    }
  }
  return std::nullopt;
}

void mark_trampolines(const elf::ElfFile& file, UnwindTable& table, std::string_view code) {
  for (const elf::Segment& s : file.segments()) {
    if (s.type != PT_LOAD || (s.flags & PF_X) == 0) continue;
    const auto bytes = file.at(s.address, s.file_size);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (size_t at = text.find(code); at != std::string_view::npos; at = text.find(code, at + 1)) {
      TableBuilder::mark(table, s.address + at, code.size(), RuleKind::signal);
    }
  }
}

// Nobody calls where a program starts; some C runtimes (conda's) do not say so.
void mark_entry(const elf::ElfFile& file, UnwindTable& table) {
  constexpr size_t kEntryField = offsetof(Elf64_Ehdr, e_entry);
  constexpr uint64_t kLongestStart = 48;  // glibc's: 38 bytes; musl's: 22
  ByteReader in(file.bytes());
  in.seek(kEntryField);
  const auto entry = in.read<uint64_t>();
  if (!in.failed() && entry != 0)
    TableBuilder::mark(table, ImageAddress(entry), kLongestStart, RuleKind::end);
}

}  // namespace

UnwindTable UnwindTable::build(const elf::ElfFile& file) {
  std::vector<FrameSection> sections;
  const elf::Section* header = file.find_section(".eh_frame_hdr");
  const ImageAddress data_base = header == nullptr ? ImageAddress{} : header->address;
  for (const elf::Section& s : file.sections()) {
    if (s.name != ".eh_frame" && s.name != ".debug_frame") continue;
    if ((s.flags & SHF_COMPRESSED) != 0) continue;
    const auto bytes = file.contents(s);
    if (bytes.empty()) continue;
    const FrameSection section{bytes, s.address, s.name == ".debug_frame", data_base, {}};
    sections.insert(section.debug_frame ? sections.end() : sections.begin(), section);
  }
  if (file.find_section(".eh_frame") == nullptr) {
    if (const auto section = section_of_segments(file)) sections.insert(sections.begin(), *section);
  }
  UnwindTable table = build(sections, file.machine());
  // musl's trampoline has no CFI: https://git.musl-libc.org/cgit/musl/tree/src/signal/x86_64/restore.s
  if (file.machine() == EM_X86_64) mark_trampolines(file, table, X86_64::kSigreturn);
  if (file.machine() == EM_AARCH64) mark_trampolines(file, table, Aarch64::kSigreturn);
  mark_entry(file, table);
  return table;
}

Rule UnwindTable::find(ImageAddress pc) const {
  const uint64_t offset = pc.value - base_.value;
  if (pc < base_ || offsets_.empty() || offset > std::numeric_limits<uint32_t>::max()) return {};
  const auto next = std::upper_bound(offsets_.begin(), offsets_.end(), static_cast<uint32_t>(offset));
  if (next == offsets_.begin()) return {};
  return rules_[ids_[static_cast<size_t>(next - offsets_.begin()) - 1]];
}

std::pair<ImageAddress, ImageAddress> UnwindTable::gap(ImageAddress pc) const {
  const ImageAddress last(~uint64_t{0});
  const uint64_t offset = pc.value - base_.value;
  if (offsets_.empty()) return {ImageAddress(0), last};
  if (pc < base_ || offset < offsets_.front()) return {ImageAddress(0), row_start(0)};
  // Behind the last row its rule would hold to the end of the world.
  const bool beyond = offset > std::numeric_limits<uint32_t>::max();
  auto at = beyond ? offsets_.end()
                   : std::upper_bound(offsets_.begin(), offsets_.end(), static_cast<uint32_t>(offset));
  size_t i = static_cast<size_t>(at - offsets_.begin()) - 1, end = i + 1;
  if (row_rule(i).kind != RuleKind::none) return {pc, pc};
  while (i > 0 && row_rule(i - 1).kind == RuleKind::none) --i;
  while (end < row_count() && row_rule(end).kind == RuleKind::none) ++end;
  return {i == 0 ? ImageAddress(0) : row_start(i), end == row_count() ? last : row_start(end)};
}

size_t UnwindTable::byte_size() const {
  return offsets_.size() * sizeof(uint32_t) + ids_.size() * sizeof(uint16_t) + rules_.size() * sizeof(Rule);
}

namespace {
struct TableHeader {
  std::array<char, 8> magic = kMagic;
  uint16_t machine = 0;
  uint16_t rule_size = sizeof(Rule);
  uint32_t rules = 0;
  uint64_t base = 0;
  uint32_t rows = 0;
  uint32_t left_rows = 0;
  uint64_t left_entries = 0;
  uint64_t checksum = 0;  // of everything behind the header
};
static_assert(sizeof(TableHeader) == 48);

// FNV-1a over words: catches a file cut short or overwritten by accident. Content made to deceive is checked
// field by field.
uint64_t checksum_of(std::span<const std::byte> bytes) {
  uint64_t h = 0xcbf29ce484222325ULL;
  ByteReader in(bytes);
  while (in.remaining() >= 8) h = (h ^ in.read<uint64_t>()) * 0x100000001b3ULL;
  while (!in.at_end()) h = (h ^ in.read<uint8_t>()) * 0x100000001b3ULL;
  return h;
}

template <class T>
void append(std::vector<std::byte>& out, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

bool is_sound(const Rule& r) {
  return r.kind <= RuleKind::signal && r.base <= CfaBase::plt && r.fp <= FpRule::unknown &&
         r.ra <= RaRule::link_register && r.bx <= BxRule::unknown;
}
}  // namespace

std::vector<std::byte> UnwindTable::bytes() const {
  std::vector<std::byte> out(sizeof(TableHeader));
  append(out, offsets_);
  append(out, rules_);
  append(out, ids_);
  TableHeader header;
  header.machine = machine_;
  header.rules = static_cast<uint32_t>(rules_.size());
  header.base = base_.value;
  header.rows = static_cast<uint32_t>(offsets_.size());
  header.left_rows =
      static_cast<uint32_t>(std::min<size_t>(leftovers_.rows, std::numeric_limits<uint32_t>::max()));
  header.left_entries = leftovers_.entries;
  header.checksum = checksum_of(std::span(out).subspan(sizeof header));
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

std::unique_ptr<UnwindTable> UnwindTable::parse(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto header = in.read<TableHeader>();
  if (in.failed() || header.magic != kMagic || header.rule_size != sizeof(Rule) || header.rules > kMaxRules)
    return nullptr;
  const uint64_t expected = uint64_t{header.rows} * 6 + uint64_t{header.rules} * sizeof(Rule);
  if (expected != in.remaining() || checksum_of(bytes.subspan(sizeof header)) != header.checksum)
    return nullptr;
  auto table = std::make_unique<UnwindTable>();
  table->machine_ = header.machine;
  table->base_ = ImageAddress(header.base);
  table->leftovers_ = {header.left_entries, header.left_rows};
  auto take = [&in](auto& values, size_t count) {
    values.resize(count);
    const auto from = in.bytes(count * sizeof(values[0]));
    if (count != 0 && !in.failed()) std::memcpy(values.data(), from.data(), from.size());
  };
  take(table->offsets_, header.rows);
  take(table->rules_, header.rules);
  take(table->ids_, header.rows);
  const bool sorted = std::adjacent_find(table->offsets_.begin(), table->offsets_.end(),
                                         std::greater_equal<>()) == table->offsets_.end();
  const bool known = std::all_of(table->ids_.begin(), table->ids_.end(),
                                 [&](uint16_t id) { return id < table->rules_.size(); });
  const bool sound = std::all_of(table->rules_.begin(), table->rules_.end(), is_sound);
  return in.failed() || !sorted || !known || !sound ? nullptr : std::move(table);
}

}  // namespace phlox::unwind
