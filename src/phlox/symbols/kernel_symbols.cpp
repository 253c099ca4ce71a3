#include "phlox/symbols/kernel_symbols.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <utility>

namespace phlox::symbols {
namespace {

constexpr size_t kLargest = size_t{128} << 20;
// Behind the last symbol of the kernel and of each module lies something else; no function is as long.
constexpr uint64_t kLongestFunction = 1 << 20;

}  // namespace

KernelSymbols::KernelSymbols(std::string text) : text_(std::move(text)) {
  text_.resize(std::min(text_.size(), kLargest));
  const std::string_view all(text_);
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    const std::string_view line = all.substr(at, end - at);
    at = end + 1;
    uint64_t address = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
    const auto used = static_cast<size_t>(rest - line.data());
    if (error != std::errc() || address == 0 || line.size() < used + 4) continue;
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
  // Of several names for one address, a global one, and of those the first.
  std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
    return a.address != b.address ? a.address < b.address : a.global && !b.global;
  });
  rows_.erase(std::unique(rows_.begin(), rows_.end(),
                          [](const Row& a, const Row& b) { return a.address == b.address; }),
              rows_.end());
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
