#include "phlox/python/version.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/text.h"

namespace phlox::python {
namespace {

bool take_dot(std::string_view& text) {
  if (!text.starts_with('.')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Version version_of_hex(uint32_t hex) {
  Version v;
  v.major = static_cast<uint8_t>(hex >> 24);
  v.minor = static_cast<uint8_t>(hex >> 16);
  v.micro = static_cast<uint8_t>(hex >> 8);
  v.has_micro = true;
  v.text = fmt::format("{}.{}.{}", v.major, v.minor, v.micro);
  const unsigned level = hex >> 4 & 0xF;
  if (level != 0xF) {
    v.pre_release = true;
    v.text += fmt::format("{}{}", level == 0xA ? "a" : level == 0xB ? "b" : "rc", hex & 0xF);
  }
  return v;
}

std::optional<Version> parse_version(std::string_view text) {
  const std::string_view whole = text;
  Version v;
  if (!take_number(text, v.major) || (v.major != 2 && v.major != 3)) return {};
  if (!take_dot(text) || !take_number(text, v.minor)) return {};
  if (!take_dot(text) || !take_number(text, v.micro)) return {};
  v.has_micro = true;
  for (const std::string_view level : {"a", "b", "rc", "c"}) {
    if (!text.starts_with(level)) continue;
    std::string_view rest = text.substr(level.size());
    uint8_t serial = 0;
    if (!take_number(rest, serial)) continue;
    v.pre_release = true;
    text = rest;
    break;
  }
  if (text.starts_with('+')) text.remove_prefix(1);  // built between two releases
  v.text = std::string(whole.substr(0, whole.size() - text.size()));
  return v;
}

std::optional<Version> version_of_file_name(std::string_view name) {
  const size_t at = name.find("python");
  if (at == std::string_view::npos) return {};
  std::string_view rest = name.substr(at + 6);
  Version v;
  if (!take_number(rest, v.major) || (v.major != 2 && v.major != 3)) return {};
  if (!take_dot(rest) || !take_number(rest, v.minor)) return {};
  v.text = fmt::format("{}.{}", v.major, v.minor);
  return v;
}

std::optional<Version> find_version_text(std::string_view memory) {
  // The compiler's name is the rarest part. What precedes it, version and build, has at most 203 bytes
  // ("%.80s experimental free-threading build (%.80s) %.80s", Python/getversion.c).
  constexpr size_t kReach = 250;
  for (const std::string_view compiler : {"[GCC ", "[Clang "}) {
    for (size_t at = memory.find(compiler); at != std::string_view::npos;
         at = memory.find(compiler, at + 1)) {
      const size_t reach = std::min(at, kReach);
      const std::string_view before = memory.substr(at - reach, reach);
      const size_t nul = before.rfind('\0');
      const std::string_view text = nul == std::string_view::npos ? before : before.substr(nul + 1);
      auto version = parse_version(text);
      if (version && text.substr(version->text.size()).starts_with(" (")) return version;
    }
  }
  return {};
}

std::optional<Version> find_version_constant(std::string_view constants, uint8_t major, uint8_t minor) {
  const std::string wanted = std::string(1, '\0') + fmt::format("{}.{}.", major, minor);
  for (size_t at = constants.find(wanted); at != std::string_view::npos;
       at = constants.find(wanted, at + 1)) {
    const std::string_view text = constants.substr(at + 1, 16);
    auto version = parse_version(text);
    if (version && version->text.size() < text.size() && text[version->text.size()] == '\0') return version;
  }
  return {};
}

}  // namespace phlox::python
