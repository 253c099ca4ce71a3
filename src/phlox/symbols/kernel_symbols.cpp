#include "phlox/symbols/kernel_symbols.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "phlox/symbols/kallsyms_line.h"

namespace phlox::symbols {
namespace {

using namespace kallsyms;

}  // namespace

KernelSymbols::KernelSymbols(std::string text) : text_(std::move(text)) {
  text_.resize(std::min(text_.size(), kLargest));
  const std::string_view all(text_);
  rows_.reserve(all.size() / 40);
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    const std::string_view line = all.substr(at, end - at);
    at = end + 1;
    if (!has_name(line) || !is_function(line)) continue;
    const uint64_t address = address_of(line);
    const size_t tab = is_of_module(line) ? line.find('\t', kName) : std::string_view::npos;
    const size_t length = std::min(tab, line.size()) - kName;
    if (length == 0 || address == 0) continue;
    rows_.push_back({address, static_cast<uint32_t>(line.data() + kName - all.data()),
                     static_cast<uint32_t>(length), is_preferred(line)});
  }
  // The kernel's own symbols are sorted; its modules are in load order.
  const auto before = [](const Row& a, const Row& b) { return a.address < b.address; };
  if (!std::is_sorted(rows_.begin(), rows_.end(), before))
    std::stable_sort(rows_.begin(), rows_.end(), before);
  // Of several names for one address, a preferred one, and of those the first.
  size_t kept = 0;
  for (const Row& row : rows_) {
    if (kept == 0 || rows_[kept - 1].address != row.address) {
      rows_[kept++] = row;
    } else if (row.preferred && !rows_[kept - 1].preferred) {
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
