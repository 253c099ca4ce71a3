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

constexpr size_t kLargestKernelFile = size_t{128} << 20;
// The kernel's own text; its modules follow from 1 GiB on (Documentation/arch/x86/x86_64/mm.rst).
constexpr uint64_t kLongestKernelText = uint64_t{1} << 30;

std::string kernel_text_of(const std::string& path) {
  auto input = FileInput::open(path);
  return input ? read_all(**input, kLargestKernelFile).value_or("") : std::string();
}

// The NT_GNU_BUILD_ID of the running kernel, in hex.
std::string own_build_id() {
  const std::string notes = kernel_text_of("/sys/kernel/notes");
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

std::optional<std::string_view> KernelNames::Source::find_own(uint64_t address) const {
  return text ? text->find(address - moved) : symbols ? symbols->find(address - moved) : std::nullopt;
}

// Only if nothing moved: then modules are still where they were.
std::optional<std::string_view> KernelNames::Source::find_of_module(uint64_t address) {
  if (moved != 0) return std::nullopt;
  if (text && !symbols) symbols.emplace(std::string(text->text()));
  return symbols ? symbols->find(address) : std::nullopt;
}

std::optional<uint64_t> KernelNames::moved_of(std::string_view text) const {
  const uint64_t there = address_of(text, symbol_);
  return there == 0 || text_ == 0 ? std::nullopt : std::optional(text_ - there);
}

std::optional<KernelNames::Source> KernelNames::source_of(std::string text) const {
  const auto moved = moved_of(text);
  if (!moved) return std::nullopt;
  Source source;
  source.moved = *moved;
  source.symbols.emplace(std::move(text));
  return source;
}

void KernelNames::take(std::string text, std::string_view symbol, uint64_t text_address) {
  symbol_ = symbol;
  text_ = text_address;
  kept_ = source_of(std::move(text)).value_or(Source());
  kept_.asked = own_.asked = true;
}

void KernelNames::open(std::string_view build_id, std::string_view symbol, uint64_t text_address,
                       std::string_view release, std::vector<std::string> build_id_dirs) {
  if (text_ != 0) return;
  build_id_ = build_id;
  symbol_ = symbol;
  release_ = release;
  text_ = text_address;
  dirs_ = std::move(build_id_dirs);
}

KernelNames::Source& KernelNames::kept() {
  if (kept_.asked) return kept_;
  if (build_id_.size() >= 4) {
    for (const std::string& folder : dirs_) {
      auto text = symbols::KernelText::open(
          fmt::format("{}/.build-id/{}/{}/kallsyms", folder, build_id_.substr(0, 2), build_id_.substr(2)));
      const auto moved = text ? moved_of(text->text()) : std::nullopt;
      if (!moved) continue;
      kept_.text = std::move(text);
      kept_.moved = *moved;
      break;
    }
  }
  kept_.asked = true;
  return kept_;
}

KernelNames::Source& KernelNames::own() {
  if (own_.asked) return own_;
  struct utsname name {};
  const std::string id = own_build_id();
  const bool is_this = build_id_.size() >= 4 ? !id.empty() && build_id_.starts_with(id)
                                             : ::uname(&name) == 0 && release_ == name.release;
  auto found = is_this ? source_of(kernel_text_of("/proc/kallsyms")) : std::nullopt;
  if (found && (found->moved == 0 || build_id_.size() >= 4)) own_ = *std::move(found);
  own_.asked = true;
  return own_;
}

std::optional<std::string_view> KernelNames::find(uint64_t address) {
  if (text_ == 0) return std::nullopt;
  const bool in_text = address >= text_ && address - text_ < kLongestKernelText;
  if (in_text) return kept().text || kept().symbols ? kept().find_own(address) : own().find_own(address);
  for (const auto ask : {&KernelNames::own, &KernelNames::kept}) {
    if (const auto name = (this->*ask)().find_of_module(address)) return name;
  }
  return std::nullopt;
}

}  // namespace phlox::importers
