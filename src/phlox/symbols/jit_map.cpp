#include "phlox/symbols/jit_map.h"

#include <algorithm>
#include <utility>

#include "phlox/base/byte_reader.h"
#include "phlox/base/text.h"

namespace phlox::symbols {
namespace {

constexpr size_t kMostMapRanges = 4'000'000;
constexpr size_t kMostMapLines = 1'000'000;  // of one function
constexpr size_t kMostMoves = 100'000;
constexpr size_t kLongestJitName = 1 << 16;  // numba's have thousands of characters
constexpr uint32_t kMagic = 0x4A695444;      // "JiTD", in the writer's byte order
enum Record : uint32_t { code_load = 0, code_move = 1, code_debug_info = 2, code_close = 3 };

bool take_hex(std::string_view& text, uint64_t& value) {
  if (text.substr(0, 2) == "0x") text.remove_prefix(2);
  if (!take_number(text, value, 16) || !text.starts_with(' ')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

JitMap::JitMap(std::vector<RemoteAddress> only) : all_(false), only_(std::move(only)) {
  std::sort(only_.begin(), only_.end());
}

// A range without any of the addresses changes nothing for them.
bool JitMap::wants(uint64_t start, uint64_t size) const {
  if (all_) return true;
  const auto at = std::lower_bound(only_.begin(), only_.end(), RemoteAddress(start));
  return at != only_.end() && at->value - start < size;
}

// Moved code may be wanted at its destination.
void JitMap::want_moved(std::span<const std::byte> bytes, size_t header) {
  const size_t before = only_.size();
  for (size_t start = header; bytes.size() - start >= 16;) {
    ByteReader in(bytes.subspan(start));
    const auto kind = in.read<uint32_t>();
    const auto size = in.read<uint32_t>();
    if (size < 16 || size > bytes.size() - start || kind == code_close) break;
    start += size;
    if (kind != code_move || only_.size() - before == kMostMoves) continue;
    in.skip(8 + 16);
    const auto from = in.read<uint64_t>();
    if (!in.failed()) only_.emplace_back(from);
  }
  std::sort(only_.begin(), only_.end());
}

void JitMap::put(uint64_t start, uint64_t size, std::shared_ptr<const Code> code) {
  if (size == 0 || size > ~uint64_t{0} - start || code->name.empty() || ranges_.size() >= kMostMapRanges) {
    ++refused_;
    return;
  }
  const uint64_t end = start + size;
  // The previous code here is gone; its parts outside this range stay.
  auto at = ranges_.lower_bound(start);
  if (at != ranges_.begin()) {
    auto before = std::prev(at);
    if (before->second.end > end) {
      Range rest = before->second;
      ranges_.emplace_hint(at, end, std::move(rest));
    }
    before->second.end = std::min(before->second.end, start);
  }
  at = ranges_.lower_bound(start);
  while (at != ranges_.end() && at->first < end) {
    if (at->second.end > end) {
      Range rest = std::move(at->second);
      ranges_.erase(at);
      ranges_.emplace(end, std::move(rest));
      break;
    }
    at = ranges_.erase(at);
  }
  ranges_[start] = Range{end, start, std::move(code)};
}

void JitMap::add_perf_map(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return;  // still being written
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.empty()) continue;
    uint64_t start = 0, size = 0;
    if (take_hex(line, start) && take_hex(line, size)) {
      if (wants(start, size))
        put(start, size, std::make_shared<Code>(Code{shortened(line, kLongestJitName), {}, {}}));
    } else {
      ++refused_;
    }
  }
}

JitMap::Code JitMap::parse_lines(std::span<const std::byte> bytes) {
  ByteReader record(bytes);
  const auto lines_of = record.read<uint64_t>();
  const auto count = record.read<uint64_t>();
  Code code;
  for (uint64_t i = 0; i < count && i < kMostMapLines && !record.failed(); ++i) {
    Line line;
    line.offset = record.read<uint64_t>() - lines_of;
    line.line = static_cast<int32_t>(record.read<uint32_t>() & 0x7fffffff);
    record.skip(4);
    auto name = record.c_string();
    if (record.failed()) break;
    if (name.size() > kLongestJitName) name = {};
    // The byte 0xff means "the same as before".
    if (code.files.empty() || (name != "\xff" && name != code.files.back())) code.files.emplace_back(name);
    line.file = static_cast<uint32_t>(code.files.size() - 1);
    code.lines.push_back(line);
  }
  std::stable_sort(code.lines.begin(), code.lines.end(),
                   [](const Line& x, const Line& y) { return x.offset < y.offset; });
  return code;
}

void JitMap::add_jitdump(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto magic = in.read<uint32_t>();
  in.skip(4);
  const auto header = in.read<uint32_t>();
  if (in.failed() || magic != kMagic || header < 40 || header > bytes.size()) {
    ++refused_;
    return;
  }
  if (!all_) want_moved(bytes, header);
  in.seek(header);
  // Debug information precedes its code.
  std::optional<std::span<const std::byte>> lines;
  while (in.remaining() >= 16) {
    const size_t start = in.offset();
    const auto kind = in.read<uint32_t>();
    const auto size = in.read<uint32_t>();
    if (size < 16 || size > bytes.size() - start) {
      ++refused_;
      return;
    }
    ByteReader record(bytes.subspan(start + 16, size - 16));
    if (kind == code_load) {
      record.skip(16);
      const auto address = record.read<uint64_t>();
      const auto length = record.read<uint64_t>();
      record.skip(8);
      const auto name = record.c_string();
      if (record.failed()) {
        ++refused_;
      } else if (wants(address, length)) {
        Code code;
        if (lines && ByteReader(*lines).read<uint64_t>() == address) code = parse_lines(*lines);
        code.name = shortened(name, kLongestJitName);
        put(address, length, std::make_shared<Code>(std::move(code)));
      }
      lines.reset();
    } else if (kind == code_move) {
      record.skip(16);
      const auto from = record.read<uint64_t>();
      const auto to = record.read<uint64_t>();
      const auto length = record.read<uint64_t>();
      const auto old = ranges_.find(from);
      if (record.failed() || old == ranges_.end()) {
        ++refused_;
      } else {
        const auto code = old->second.code;
        ranges_.erase(old);
        put(to, length, code);
      }
    } else if (kind == code_debug_info) {
      lines = bytes.subspan(start + 16, size - 16);
    } else if (kind == code_close) {
      return;
    }
    in.seek(start + size);
  }
}

std::optional<JitMap::Found> JitMap::find(RemoteAddress address) const {
  auto next = ranges_.upper_bound(address.value);
  if (next == ranges_.begin()) return std::nullopt;
  --next;
  if (address.value >= next->second.end) return std::nullopt;
  const Code& code = *next->second.code;
  Found found{code.name, address.value - next->second.origin, {}, 0};
  auto line = std::upper_bound(code.lines.begin(), code.lines.end(), found.offset,
                               [](uint64_t v, const Line& l) { return v < l.offset; });
  if (line != code.lines.begin()) {
    --line;
    found.file = code.files[line->file];
    found.line = line->line;
  }
  return found;
}

}  // namespace phlox::symbols
