#include "phlox/importers/kernel_names.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <charconv>
#include <utility>

#include "phlox/base/byte_reader.h"
#include "phlox/importers/hex.h"
#include "phlox/importers/input.h"

namespace phlox::importers {
namespace {

constexpr size_t kLargest = size_t{128} << 20;
// The kernel's own text; behind it, from 1 GiB on, lie its modules (Documentation/arch/x86/x86_64/mm.rst).
constexpr uint64_t kLongestText = uint64_t{1} << 30;

std::string text_of(const std::string& path) {
  auto input = FileInput::open(path);
  return input ? read_all(**input, kLargest).value_or("") : std::string();
}

// The NT_GNU_BUILD_ID of the kernel that runs here, as hex.
std::string own_build_id() {
  const std::string notes = text_of("/sys/kernel/notes");
  ByteReader in(std::as_bytes(std::span(notes)));
  while (in.remaining() >= sizeof(Elf64_Nhdr)) {
    const auto note = in.read<Elf64_Nhdr>();
    const auto name = in.bytes((note.n_namesz + size_t{3}) & ~size_t{3});
    const auto id = in.bytes((note.n_descsz + size_t{3}) & ~size_t{3});
    if (in.failed() || note.n_type != NT_GNU_BUILD_ID || name.size() != 4) continue;
    return hex(id.first(note.n_descsz));
  }
  return {};
}

uint64_t address_of(std::string_view text, std::string_view symbol) {
  const std::string wanted = fmt::format(" T {}\n", symbol);
  const size_t at = text.find(wanted);
  if (at == std::string_view::npos) return 0;
  const size_t line = text.rfind('\n', at == 0 ? 0 : at - 1);
  const std::string_view digits = text.substr(line == std::string_view::npos ? 0 : line + 1);
  uint64_t address = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), address, 16);
  return address;
}

}  // namespace

void KernelNames::take(std::string text, std::string_view symbol, uint64_t text_address) {
  text_ = address_of(text, symbol);
  if (text_ == 0 || text_address == 0) return;
  moved_ = text_address - text_;
  symbols_.emplace(std::move(text));
}

void KernelNames::open(std::string_view build_id, std::string_view symbol, uint64_t text_address,
                       std::string_view release, const std::vector<std::string>& build_id_dirs) {
  if (symbols_) return;
  if (build_id.size() < 4) {
    struct utsname own_name {};
    if (::uname(&own_name) != 0 || release != own_name.release) return;
    take(text_of("/proc/kallsyms"), symbol, text_address);
    if (moved_ != 0) symbols_.reset();
    return;
  }
  const std::string own = own_build_id();
  if (!own.empty() && build_id.starts_with(own)) take(text_of("/proc/kallsyms"), symbol, text_address);
  for (const std::string& folder : build_id_dirs) {
    if (symbols_) return;
    take(text_of(
             fmt::format("{}/.build-id/{}/{}/kallsyms", folder, build_id.substr(0, 2), build_id.substr(2))),
         symbol, text_address);
  }
}

std::optional<std::string_view> KernelNames::find(uint64_t address) const {
  if (!symbols_) return std::nullopt;
  const uint64_t at = address - moved_;
  const bool in_text = at >= text_ && at - text_ < kLongestText;
  return moved_ == 0 || in_text ? symbols_->find(at) : std::nullopt;
}

}  // namespace phlox::importers
