#include "phlox/unwind/table_format.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "phlox/base/byte_reader.h"

namespace phlox::unwind {
namespace {

constexpr std::array<char, 8> kMagic = {'P', 'H', 'L', 'X', 'C', 'F', 'I', '3'};

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

std::vector<std::byte> table_bytes(const UnwindTable& table) {
  std::vector<std::byte> out(sizeof(TableHeader));
  append(out, table.offsets_);
  append(out, table.rules_);
  append(out, table.ids_);
  TableHeader header;
  header.machine = table.machine_;
  header.rules = static_cast<uint32_t>(table.rules_.size());
  header.base = table.base_.value;
  header.rows = static_cast<uint32_t>(table.offsets_.size());
  header.left_rows =
      static_cast<uint32_t>(std::min<size_t>(table.leftovers_.rows, std::numeric_limits<uint32_t>::max()));
  header.left_entries = table.leftovers_.entries;
  header.checksum = checksum_of(std::span(out).subspan(sizeof header));
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

std::unique_ptr<UnwindTable> parse_table(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto header = in.read<TableHeader>();
  if (in.failed() || header.magic != kMagic || header.rule_size != sizeof(Rule) ||
      header.rules > UnwindTable::kMaxRules)
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
