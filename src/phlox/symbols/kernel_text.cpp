#include "phlox/symbols/kernel_text.h"

#include <algorithm>
#include <utility>

#include "phlox/base/regular_file.h"
#include "phlox/symbols/kallsyms_line.h"

namespace phlox::symbols {
namespace {

using namespace kallsyms;

// Between two functions are some labels of data; a text that is not the kernel's may hold anything.
constexpr int kMostLines = 4096;

size_t start_of_line(std::string_view text, size_t at) {
  const size_t end = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  return end == std::string_view::npos ? 0 : end + 1;
}

std::string_view line_at(std::string_view text, size_t start) {
  return text.substr(start, text.find('\n', start) - start);
}

}  // namespace

std::optional<KernelText> KernelText::open(const std::string& path) {
  const Descriptor fd = open_regular(path);
  if (!fd) return std::nullopt;
  auto file = elf::FileBytes::read(fd.get(), path);
  if (!file || file->size() > kLargest) return std::nullopt;
  KernelText text(
      std::string_view(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()));
  text.file_.emplace(*std::move(file));
  return text;
}

// The start of the first line that is a module's, or has a higher address.
size_t KernelText::line_after(uint64_t address) const {
  size_t from = 0, to = text_.size();
  while (from < to) {
    const size_t start = start_of_line(text_, from + (to - from) / 2);
    const std::string_view line = line_at(text_, start);
    const bool before = !has_name(line) || (!is_of_module(line) && address_of(line) <= address);
    if (before) {
      from = std::min(start + line.size() + 1, to);
    } else {
      to = start;
    }
  }
  return from;
}

std::optional<std::string_view> KernelText::find(uint64_t address) const {
  std::string_view found;
  size_t at = line_after(address);
  for (int lines = 0; at > 0 && lines < kMostLines; ++lines) {
    at = start_of_line(text_, at - 1);
    const std::string_view line = line_at(text_, at);
    if (!has_name(line)) continue;
    if (!found.empty() && address_of(line) != address_of(found)) break;
    // Of several names for one address, a preferred one, and of those the first.
    if (is_function(line) && (found.empty() || is_preferred(line) || !is_preferred(found))) found = line;
  }
  if (found.empty() || address_of(found) == 0 || address - address_of(found) >= kLongestFunction)
    return std::nullopt;
  return found.substr(kName);
}

}  // namespace phlox::symbols
