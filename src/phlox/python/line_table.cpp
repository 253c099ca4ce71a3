#include "phlox/python/line_table.h"

#include <limits>

namespace phlox::python {
namespace {

// Lines of a broken table may add up to any value: wrap, do not overflow.
class Line {
 public:
  explicit Line(int32_t first) : value_(static_cast<uint32_t>(first)) {}
  void add(int64_t delta) { value_ += static_cast<uint32_t>(delta); }
  int32_t get() const {
    const auto line = static_cast<int32_t>(value_);
    return line > 0 ? line : 0;
  }

 private:
  uint32_t value_;
};

uint8_t at(std::span<const std::byte> table, size_t i) {
  return std::to_integer<uint8_t>(table[i]);
}
int8_t signed_at(std::span<const std::byte> table, size_t i) {
  return static_cast<int8_t>(at(table, i));
}

// Pairs (bytes of code, lines) that lead from one line's start to the next (Objects/lnotab_notes.txt).
int32_t lnotab_line(std::span<const std::byte> table, int32_t first_line, uint64_t offset, bool is_signed) {
  Line line(first_line);
  uint64_t address = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    address += at(table, i);
    if (address > offset) break;
    line.add(is_signed ? signed_at(table, i + 1) : at(table, i + 1));
  }
  return line.get();
}

// Pairs (bytes of code, lines) of one range each; -128: the range has no line (3.10's
// Objects/lnotab_notes.txt).
int32_t pep626_line(std::span<const std::byte> table, int32_t first_line, uint64_t offset) {
  constexpr int8_t kNoLine = -128;
  Line line(first_line);
  uint64_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    end += at(table, i);
    const int8_t delta = signed_at(table, i + 1);
    if (delta != kNoLine) line.add(delta);
    if (offset < end) return delta == kNoLine ? 0 : line.get();
  }
  return 0;
}

// Each entry starts with a byte whose top bit is set: 1, four bits of code, three bits of length in code
// units minus one. The rest depends on the code; only code 10 and above can change the line
// (InternalDocs/code_objects.md).
int32_t pep657_line(std::span<const std::byte> table, int32_t first_line, uint64_t offset) {
  enum { kOneLine1 = 11, kOneLine2 = 12, kNoColumns = 13, kLong = 14, kNone = 15 };
  constexpr uint64_t kCodeUnit = 2;
  Line line(first_line);
  uint64_t end = 0;
  size_t i = 0;
  while (i < table.size()) {
    const uint8_t head = at(table, i++);
    if ((head & 0x80U) == 0) return 0;
    end += ((head & 7U) + 1) * kCodeUnit;
    const unsigned code = (head >> 3) & 15U;
    if (code == kOneLine1 || code == kOneLine2) {
      line.add(code - 10);
    } else if (code == kNoColumns || code == kLong) {
      uint64_t value = 0;
      for (unsigned shift = 0; i < table.size(); shift += 6) {
        const uint8_t byte = at(table, i++);
        if (shift < 36) value |= uint64_t{byte & 63U} << shift;
        if ((byte & 64U) == 0) break;
      }
      const auto magnitude = static_cast<int64_t>(value >> 1);
      line.add((value & 1U) != 0 ? -magnitude : magnitude);
    }
    if (offset < end) return code == kNone ? 0 : line.get();
    while (i < table.size() && (at(table, i) & 0x80U) == 0) ++i;
  }
  return 0;
}

}  // namespace

int32_t instruction_offset(const Traits& traits, RemoteAddress first_instruction, uint64_t raw) {
  auto clamp = [](int64_t value) {
    if (value < 0) return int32_t{-1};
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    return static_cast<int32_t>(value < kMost ? value : kMost);
  };
  switch (traits.instruction) {
    case InstructionUnit::lasti_bytes:
      return clamp(static_cast<int32_t>(raw));
    case InstructionUnit::lasti_code_units:
      return clamp(int64_t{static_cast<int32_t>(raw)} * 2);
    case InstructionUnit::prev_instr:
    case InstructionUnit::instr_ptr:
      return clamp(static_cast<int64_t>(raw - first_instruction.value));
  }
  return -1;
}

int32_t line_of(LineTable kind, std::span<const std::byte> table, int32_t first_line, int32_t offset) {
  if (offset < 0) return first_line > 0 ? first_line : 0;
  const auto place = static_cast<uint64_t>(offset);
  switch (kind) {
    case LineTable::lnotab_unsigned:
      return lnotab_line(table, first_line, place, false);
    case LineTable::lnotab:
      return lnotab_line(table, first_line, place, true);
    case LineTable::pep626:
      return pep626_line(table, first_line, place);
    case LineTable::pep657:
      return pep657_line(table, first_line, place);
  }
  return 0;
}

}  // namespace phlox::python
