#include "phlox/memory/recorded_memory.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace phlox::memory {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

Result<RecordedMemory> RecordedMemory::parse(std::string_view text) {
  RecordedMemory memory;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view words = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    const auto wrong = [line](const char* what) {
      return fail(ErrorKind::input, "recorded memory, line " + std::to_string(line) + ": " + what);
    };
    uint64_t address = 0;
    const auto [stop, error] = std::from_chars(words.data(), words.data() + words.size(), address, 16);
    if (error != std::errc{} || stop == words.data() + words.size() || *stop != ' ')
      return wrong("no address");
    const std::string_view hex = words.substr(static_cast<size_t>(stop - words.data()) + 1);
    if (hex.size() % 2 != 0) return wrong("half a byte");
    if (hex.size() / 2 > UINT64_MAX - address) return wrong("beyond the last address");
    std::vector<std::byte> bytes(hex.size() / 2);
    for (size_t i = 0; i < bytes.size(); ++i) {
      const int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
      if (high < 0 || low < 0) return wrong("not a hexadecimal digit");
      bytes[i] = static_cast<std::byte>(high * 16 + low);
    }
    memory.add(RemoteAddress(address), bytes);
  }
  return memory;
}

std::string RecordedMemory::text() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const auto& [address, bytes] : blocks_) {
    char word[16];
    const auto [end, error] = std::to_chars(word, word + sizeof word, address, 16);
    out.append(word, end);
    out += ' ';
    for (const std::byte byte : bytes) {
      out += kDigits[static_cast<unsigned>(byte) >> 4];
      out += kDigits[static_cast<unsigned>(byte) & 15];
    }
    out += '\n';
  }
  return out;
}

void RecordedMemory::add(RemoteAddress address, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  uint64_t start = address.value, end = start + bytes.size();
  // All blocks that overlap or touch are merged with it.
  auto first = blocks_.upper_bound(start);
  if (first != blocks_.begin() && std::prev(first)->first + std::prev(first)->second.size() >= start) --first;
  auto last = first;
  for (; last != blocks_.end() && last->first <= end; ++last) {
    start = std::min(start, last->first);
    end = std::max(end, last->first + last->second.size());
  }
  std::vector<std::byte> joined(end - start);
  for (auto it = first; it != last; ++it)
    std::copy(it->second.begin(), it->second.end(), joined.begin() + (it->first - start));
  std::copy(bytes.begin(), bytes.end(), joined.begin() + (address.value - start));
  blocks_.erase(first, last);
  blocks_.emplace(start, std::move(joined));
}

bool RecordedMemory::copy(RemoteAddress address, std::span<std::byte> into) const {
  auto block = blocks_.upper_bound(address.value);
  if (block == blocks_.begin()) return false;
  --block;
  const uint64_t at = address.value - block->first;
  if (at > block->second.size() || into.size() > block->second.size() - at) return false;
  if (!into.empty()) std::memcpy(into.data(), block->second.data() + at, into.size());
  return true;
}

size_t RecordedMemory::read(std::span<const Range> ranges) {
  size_t done = 0;
  while (done < ranges.size() && copy(ranges[done].address, ranges[done].into)) ++done;
  return done;
}

size_t RecordedMemory::size() const {
  size_t sum = 0;
  for (const auto& [address, bytes] : blocks_) sum += bytes.size();
  return sum;
}

size_t MemoryRecorder::read(std::span<const Range> ranges) {
  const size_t done = source_.read(ranges);
  for (const Range& range : ranges.first(done)) recorded_.add(range.address, range.into);
  return done;
}

}  // namespace phlox::memory
