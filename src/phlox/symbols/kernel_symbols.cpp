#include "phlox/symbols/kernel_symbols.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

namespace phlox::symbols {
namespace {

constexpr size_t kLargest = size_t{128} << 20;
// Behind the last symbol of the kernel and of each module lies something else; no function is as long.
constexpr uint64_t kLongestFunction = 1 << 20;

// std::from_chars() takes three times as long, of which a text has 200,000.
const char* parse_hex(const char* at, const char* end, uint64_t& value) {
  for (; at < end; ++at) {
    const unsigned digit = static_cast<unsigned char>(*at) - unsigned{'0'};
    const unsigned letter = static_cast<unsigned char>(*at) - unsigned{'a'};
    if (digit > 9 && letter > 5) break;
    value = value << 4 | (digit <= 9 ? digit : letter + 10);
  }
  return at;
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
    uint64_t address = 0;
    const char* rest = parse_hex(line.data(), line.data() + line.size(), address);
    const auto used = static_cast<size_t>(rest - line.data());
    if (used > 16 || address == 0 || line.size() < used + 4) continue;
    const char type = line[used + 1];
    if (type != 't' && type != 'T' && type != 'w' && type != 'W') continue;
    const size_t name = used + 3;
    // "[module]" stands behind a tab, and nothing ends as it does.
    const size_t tab = line.back() == ']' ? line.find('\t', name) : std::string_view::npos;
    const size_t length = std::min(tab, line.size()) - name;
    // Room before a function, for patching it.
    if (length == 0 || line.substr(name).starts_with("__pfx_")) continue;
    rows_.push_back({address, static_cast<uint32_t>(line.data() + name - all.data()),
                     static_cast<uint32_t>(length), type == 'T'});
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
