#include "phlox/unwind/frame_entries.h"

#include <string_view>
#include <unordered_map>

namespace phlox::unwind {
namespace {

// DWARF 5, section 6.4.1 and 7.24; the .eh_frame differences: Linux Standard Base Core 5.0, chapter 10.6.
enum : uint8_t { DW_EH_PE_omit = 0xff, DW_EH_PE_indirect = 0x80 };

// Uses only the form in a pointer's encoding: the size of a range is never relative to anything.
std::optional<uint64_t> read_value(ByteReader& in, uint8_t encoding) {
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
  return value;
}

// Only the length of an encoded personality routine is needed.
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

// One entry in the section: offsets of its first byte, of its id and of its end.
struct Entry {
  size_t start = 0, content = 0, end = 0;
  uint64_t id = 0;
  bool wide = false;  // 64-bit DWARF
};

// Visits a section's entries in order. False: it ends in damage.
template <class Visit>
bool for_each_entry(const FrameSection& section, Visit visit) {
  ByteReader in(section.bytes);
  while (in.remaining() >= 4) {
    Entry entry;
    entry.start = in.offset();
    uint64_t length = in.read<uint32_t>();
    entry.wide = length == 0xffffffff;
    if (entry.wide) length = in.read<uint64_t>();
    if (length == 0) continue;  // a terminator; linkers leave them between joined sections
    if (in.failed() || length > in.remaining()) return false;
    entry.content = in.offset();
    entry.end = entry.content + length;
    entry.id = entry.wide ? in.read<uint64_t>() : in.read<uint32_t>();
    if (in.failed()) return false;
    visit(entry);
    in.seek(entry.end);
  }
  return true;
}

bool is_cie(const FrameSection& section, const Entry& entry) {
  if (!section.debug_frame) return entry.id == 0;
  return entry.id == (entry.wide ? ~uint64_t{0} : uint64_t{0xffffffff});
}

// Reads the augmentation string's letters, and the data they put before the instructions.
bool parse_augmentation(ByteReader& in, std::string_view augmentation, Cie& cie) {
  if (augmentation.empty()) return true;
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
  return true;
}

std::optional<Cie> parse_cie(const FrameSection& section, const Entry& entry, uint64_t return_address) {
  Cie cie;
  ByteReader in(section.bytes.first(entry.end).subspan(entry.content));
  in.skip(entry.wide ? 8 : 4);
  const auto version = in.read<uint8_t>();
  if (version != 1 && version != 3 && version != 4) return std::nullopt;
  const std::string_view augmentation = in.c_string();
  if (version == 4) {
    if (in.read<uint8_t>() != 8 || in.read<uint8_t>() != 0)
      return std::nullopt;  // address size, segment selector size
  }
  cie.code_align = in.uleb128();
  cie.data_align = in.sleb128();
  const uint64_t column = version == 1 ? in.read<uint8_t>() : in.uleb128();
  if (in.failed() || column != return_address) return std::nullopt;
  if (!parse_augmentation(in, augmentation, cie) || in.failed()) return std::nullopt;
  cie.code.address = section.address.value + entry.content + in.offset();
  cie.code.bytes = in.bytes(in.remaining());
  return cie;
}

// True for a skipped one, too.
bool parse_fde(const FrameSection& section, const Cie& cie, const Entry& entry, std::vector<Fde>& found) {
  ByteReader in(section.bytes.first(entry.end));
  in.seek(entry.content + (entry.wide ? 8 : 4));
  if (in.failed()) return false;
  const auto start = read_pointer(in, cie.encoding, section.address.value, section);
  const auto size = start ? read_value(in, cie.encoding) : std::nullopt;
  if (!size || *size > ~uint64_t{0} - *start) return false;
  if (cie.has_augmentation_size) {
    const uint64_t skipped = in.uleb128();
    if (in.failed() || skipped > in.remaining()) return false;
    in.skip(skipped);
  }
  // Linkers set the start of discarded functions to 0.
  if (*size == 0 || *start == 0) return true;
  Fde fde;
  fde.start = *start;
  fde.end = *start + *size;
  fde.cie = &cie;
  fde.code.address = section.address.value + in.offset();
  fde.code.bytes = in.bytes(in.remaining());
  found.push_back(fde);
  return true;
}

}  // namespace

std::optional<uint64_t> read_pointer(ByteReader& in, uint8_t encoding, uint64_t start,
                                     const FrameSection& section) {
  const uint64_t field = start + in.offset();
  const auto value = read_value(in, encoding);
  if (!value || (encoding & DW_EH_PE_indirect) != 0) return std::nullopt;
  switch (encoding & 0x70) {
    case 0x00:
      return *value;
    case 0x10:
      return *value + field;
    case 0x20:
      return *value + section.text_base.value;
    case 0x30:
      return *value + section.data_base.value;
    default:
      return std::nullopt;
  }
}

// First the CIEs, then the FDEs that refer to one of them. An FDE that refers elsewhere counts as damaged:
// overlapping "CIEs" would cause endless work from few bytes.
FrameEntries read_entries(const FrameSection& section, uint64_t return_address) {
  FrameEntries out;
  std::unordered_map<uint64_t, const Cie*> by_offset;
  const bool whole = for_each_entry(section, [&](const Entry& entry) {
    if (!is_cie(section, entry)) return;
    if (const auto cie = parse_cie(section, entry, return_address)) {
      by_offset[entry.start] = &out.cies.emplace_back(*cie);
    } else {
      ++out.damaged;
    }
  });
  if (!whole) ++out.damaged;
  for_each_entry(section, [&](const Entry& entry) {
    if (is_cie(section, entry)) return;
    const auto cie = by_offset.find(section.debug_frame ? entry.id : entry.content - entry.id);
    if (cie == by_offset.end() || !parse_fde(section, *cie->second, entry, out.fdes)) ++out.damaged;
  });
  return out;
}

}  // namespace phlox::unwind
