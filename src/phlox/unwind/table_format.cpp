#include "phlox/unwind/table_format.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "phlox/base/byte_reader.h"

namespace phlox::unwind {
namespace {

constexpr std::array<char, 8> kMagic = {'P', 'H', 'L', 'X', 'C', 'F', 'I', '4'};

struct TableHeader {
  std::array<char, 8> magic = kMagic;
  uint16_t machine = 0;
  uint16_t rule_size = sizeof(Rule);
  uint32_t rules = 0;
  uint64_t base = 0;
  uint32_t rows = 0;
  uint32_t left_rows = 0;
  uint64_t left_entries = 0;
  uint64_t checksum = 0;  // of everything after the header
};
static_assert(sizeof(TableHeader) == 48);

// FNV-1a over words, in four parallel lanes, since one multiplication waits for the previous one: detects a
// file that was truncated or overwritten by accident. Content made to deceive is checked field by field.
uint64_t checksum_of(std::span<const std::byte> bytes) {
  constexpr uint64_t kPrime = 0x100000001b3ULL;
  std::array<uint64_t, 4> lanes = {0xcbf29ce484222325ULL, 1, 2, 3};
  ByteReader in(bytes);
  while (in.remaining() >= sizeof lanes) {
    const auto words = in.read<std::array<uint64_t, 4>>();
    for (size_t i = 0; i < lanes.size(); ++i) lanes[i] = (lanes[i] ^ words[i]) * kPrime;
  }
  while (!in.at_end()) lanes[0] = (lanes[0] ^ in.read<uint8_t>()) * kPrime;
  uint64_t h = 0;
  for (const uint64_t lane : lanes) h = (h ^ lane) * kPrime;
  return h;
}

// No early exit, so that the compiler processes several at once: a table has millions.
bool is_sorted_strictly(const std::vector<uint32_t>& offsets) {
  bool sorted = true;
  for (size_t i = 1; i < offsets.size(); ++i) sorted &= offsets[i - 1] < offsets[i];
  return sorted;
}
bool are_below(const std::vector<uint16_t>& ids, size_t limit) {
  uint16_t most = 0;
  for (const uint16_t id : ids) most = std::max(most, id);
  return ids.empty() || most < limit;
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
  const bool known = is_sorted_strictly(table->offsets_) && are_below(table->ids_, table->rules_.size());
  const bool sound = std::all_of(table->rules_.begin(), table->rules_.end(), is_sound);
  return in.failed() || !known || !sound ? nullptr : std::move(table);
}

}  // namespace phlox::unwind
