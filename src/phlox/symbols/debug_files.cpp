#include "phlox/symbols/debug_files.h"

#include <fmt/format.h>
#include <zlib.h>

#include "phlox/base/byte_reader.h"
#include "phlox/base/regular_file.h"

namespace phlox::symbols {
namespace {

std::string folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string(".") : std::string(path.substr(0, slash));
}

bool is_hex(std::string_view text) {
  return text.size() >= 4 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A name from a file that we did not write must stay in the searched folder.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.find('/') == std::string_view::npos && name != ".." && name != ".";
}

std::string build_id_path(std::string_view folder, std::string_view build_id) {
  return fmt::format("{}/.build-id/{}/{}.debug", folder, build_id.substr(0, 2), build_id.substr(2));
}

uint32_t crc_of(std::span<const std::byte> bytes) {
  uLong crc = ::crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    const size_t part = std::min<size_t>(bytes.size(), 1 << 30);
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(part));
    bytes = bytes.subspan(part);
  }
  return static_cast<uint32_t>(crc);
}

// The proof that a file is the wanted one.
struct Proof {
  std::string build_id;
  std::optional<uint32_t> crc;
};

bool belongs(const std::string& path, const Proof& proof, const DebugSearch& search) {
  const Descriptor fd = search.open(path);
  if (!fd) return false;
  const auto bytes = elf::FileBytes::read(fd.get(), path, search.budget);
  if (!bytes) return false;
  const auto file = elf::ElfFile::parse(*bytes);
  if (!file) return false;
  if (!proof.build_id.empty()) {
    const std::string id = file->build_id();
    if (!id.empty()) return id == proof.build_id;
  }
  return proof.crc && bytes->size() <= elf::FileBytes::kMostPart && crc_of(bytes->bytes()) == *proof.crc;
}

// From a server, and then it is the wanted one, unless the server or the cache lies.
std::string ask_debuginfod(const std::string& build_id, const DebugSearch& search) {
  if (!search.debuginfod || !is_hex(build_id)) return {};
  const std::string path = search.debuginfod->find(build_id);
  return !path.empty() && belongs(path, {build_id, std::nullopt}, search) ? path : std::string();
}

}  // namespace

Descriptor DebugSearch::open(const std::string& path) const {
  return open_regular(path, debuginfod && debuginfod->owns(path) ? std::nullopt : user);
}

std::optional<DebugLink> debug_link(const elf::ElfFile& file) {
  const elf::Section* section = file.find_section(".gnu_debuglink");
  if (section == nullptr) return std::nullopt;
  ByteReader in(file.contents(*section));
  DebugLink link;
  link.name = in.c_string();
  in.skip((4 - in.offset() % 4) % 4);
  link.crc = in.read<uint32_t>();
  if (in.failed() || !is_plain_name(link.name)) return std::nullopt;
  return link;
}

std::optional<DebugAltLink> debug_alt_link(const elf::ElfFile& file) {
  const elf::Section* section = file.find_section(".gnu_debugaltlink");
  if (section == nullptr) return std::nullopt;
  ByteReader in(file.contents(*section));
  DebugAltLink link;
  link.path = in.c_string();
  if (in.failed() || in.remaining() > 64) return std::nullopt;
  while (!in.at_end()) link.build_id += fmt::format("{:02x}", in.read<uint8_t>());
  return is_hex(link.build_id) ? std::optional(link) : std::nullopt;
}

std::vector<std::string> debug_file_candidates(std::string_view build_id,
                                               const std::optional<DebugLink>& link,
                                               std::string_view module_path, const DebugSearch& search) {
  std::vector<std::string> out;
  if (is_hex(build_id)) {
    for (const auto& folder : search.folders) out.push_back(build_id_path(folder, build_id));
  }
  if (link) {
    const std::string folder = folder_of(module_path);
    out.push_back(fmt::format("{}/{}", folder, link->name));
    out.push_back(fmt::format("{}/.debug/{}", folder, link->name));
    for (const auto& root : search.folders) {
      out.push_back(fmt::format("{}{}/{}", root, folder, link->name));
      out.push_back(fmt::format("{}/{}", root, link->name));
    }
  }
  return out;
}

std::vector<std::string> alt_file_candidates(const DebugAltLink& link, std::string_view debug_path,
                                             const DebugSearch& search) {
  std::vector<std::string> out;
  for (const auto& folder : search.folders) out.push_back(build_id_path(folder, link.build_id));
  out.push_back(link.path.front() == '/' ? link.path
                                         : fmt::format("{}/{}", folder_of(debug_path), link.path));
  return out;
}

std::string find_debug_file(const elf::ElfFile& module, std::string_view module_path,
                            const DebugSearch& search) {
  const auto link = debug_link(module);
  const std::string build_id = module.build_id();
  const Proof proof{build_id, link ? std::optional(link->crc) : std::nullopt};
  for (const std::string& path : debug_file_candidates(build_id, link, module_path, search)) {
    if (path != module_path && belongs(path, proof, search)) return path;
  }
  return ask_debuginfod(build_id, search);
}

std::string find_alt_file(const elf::ElfFile& debug, std::string_view debug_path, const DebugSearch& search) {
  const auto link = debug_alt_link(debug);
  if (!link || link->path.empty()) return {};
  for (const std::string& path : alt_file_candidates(*link, debug_path, search)) {
    if (belongs(path, {link->build_id, std::nullopt}, search)) return path;
  }
  return ask_debuginfod(link->build_id, search);
}

}  // namespace phlox::symbols
