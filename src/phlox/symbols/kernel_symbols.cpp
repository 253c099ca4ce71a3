#include "phlox/symbols/kernel_symbols.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace phlox::symbols {
namespace {

constexpr size_t kLargest = size_t{128} << 20;
// Behind the last symbol of the kernel and of each module lies something else; no function is as long.
constexpr uint64_t kLongestFunction = 1 << 20;

// Eight digits of a text of which there are 200,000 lines, all at once; other bytes than 0-9 and a-f give
// some number.
uint64_t eight_digits(const char* at) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  bytes = __builtin_bswap64(bytes);
  constexpr uint64_t kEach = 0x0101010101010101U;
  // A letter has bit 6 set, and its lower half counts from 1.
  uint64_t digits = (bytes & kEach * 0x0f) + (bytes >> 6 & kEach) * 9;
  digits = (digits | digits >> 4) & 0x00ff00ff00ff00ffU;
  digits = (digits | digits >> 8) & 0x0000ffff0000ffffU;
  return (digits | digits >> 16) & 0xffffffffU;
}

// "ffffffff81000000 T _text": 16 digits, a letter, a name; "[module]" may follow.
constexpr size_t kType = 17, kName = 19;

bool is_function(std::string_view line) {
  if (line.size() <= kName || line[kType - 1] != ' ') return false;
  const char type = line[kType];
  // "__pfx_": room before a function, for patching it.
  return (type == 't' || type == 'T' || type == 'w' || type == 'W') &&
         !line.substr(kName).starts_with("__pfx_");
}

}  // namespace

KernelSymbols::KernelSymbols(std::string text) : text_(std::move(text)) {
  text_.resize(std::min(text_.size(), kLargest));
  const std::string_view all(text_);
  rows_.reserve(all.size() / 40);
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    const std::string_view line = all.substr(at, end - at);
    at = end + 1;
    if (!is_function(line)) continue;
    const uint64_t address = eight_digits(line.data()) << 32 | eight_digits(line.data() + 8);
    // "[module]" stands behind a tab, and nothing ends as it does.
    const size_t tab = line.back() == ']' ? line.find('\t', kName) : std::string_view::npos;
    const size_t length = std::min(tab, line.size()) - kName;
    if (length == 0 || address == 0) continue;
    rows_.push_back({address, static_cast<uint32_t>(line.data() + kName - all.data()),
                     static_cast<uint32_t>(length), line[kType] == 'T'});
  }
  // The kernel's own are in order; its modules come as they were loaded.
  const auto before = [](const Row& a, const Row& b) { return a.address < b.address; };
  if (!std::is_sorted(rows_.begin(), rows_.end(), before))
    std::stable_sort(rows_.begin(), rows_.end(), before);
  // Of several names for one address, a global one, and of those the first.
  size_t kept = 0;
  for (const Row& row : rows_) {
    if (kept == 0 || rows_[kept - 1].address != row.address) {
      rows_[kept++] = row;
    } else if (row.global && !rows_[kept - 1].global) {
      rows_[kept - 1] = row;
    }
  }
  rows_.resize(kept);
}

KernelSymbols KernelSymbols::read() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/kallsyms", "re"),
                                                   [](FILE* f) { return f != nullptr ? std::fclose(f) : 0; });
  std::string text;
  if (!file) return KernelSymbols({});
  for (size_t have = 0; have < kLargest;) {
    text.resize(have + (size_t{1} << 20));
    const size_t got = std::fread(text.data() + have, 1, text.size() - have, file.get());
    text.resize(have += got);
    if (got == 0) break;
  }
  return KernelSymbols(std::move(text));
}

std::optional<std::string_view> KernelSymbols::find(uint64_t address) const {
  const auto next = std::upper_bound(rows_.begin(), rows_.end(), address,
                                     [](uint64_t a, const Row& row) { return a < row.address; });
  if (next == rows_.begin()) return std::nullopt;
  const Row& row = *std::prev(next);
  if (address - row.address >= kLongestFunction) return std::nullopt;
  return std::string_view(text_).substr(row.name, row.length);
}

}  // namespace phlox::symbols
