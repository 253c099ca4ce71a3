#include "phlox/unwind/table_cache.h"

#include <utility>

#include "phlox/base/descriptor.h"
#include "phlox/base/private_folder.h"
#include "phlox/unwind/table_builder.h"
#include "phlox/unwind/table_format.h"

namespace phlox::unwind {
namespace {

// A smaller table is built faster than its file is opened.
constexpr size_t kWorthKeeping = 2000;
// Part of the name, so that versions do not overwrite each other's files.
constexpr std::string_view kSuffix = ".cfi5";

bool is_identity(std::string_view id) {
  return id.size() >= 16 && id.size() <= 128 &&
         id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string cache_folder(std::string_view xdg_cache_home, std::string_view home) {
  if (!xdg_cache_home.empty() && xdg_cache_home.front() == '/')
    return std::string(xdg_cache_home) + "/phlox/unwind";
  if (!home.empty() && home.front() == '/') return std::string(home) + "/.cache/phlox/unwind";
  return {};
}

TableCache::TableCache(std::string folder) : folder_(std::move(folder)) {
  usable_ = !folder_.empty() && folder_.front() == '/' && make_private_folder(folder_);
}

std::unique_ptr<UnwindTable> TableCache::find(std::string_view identity) const {
  if (!usable_ || !is_identity(identity)) return nullptr;
  const std::string name = std::string(identity) + std::string(kSuffix);
  const Descriptor fd = open_kept_file(folder_, name, kMostKept);
  if (!fd) return nullptr;
  const auto bytes = elf::FileBytes::read(fd.get(), folder_ + "/" + name);
  return bytes ? parse_table(bytes->bytes()) : nullptr;
}

bool TableCache::write(std::string_view identity, const UnwindTable& table) const {
  if (!usable_ || !is_identity(identity)) return false;
  return write_whole_file(folder_, std::string(identity) + std::string(kSuffix), table_bytes(table));
}

std::unique_ptr<UnwindTable> TableCache::table_of(const elf::ElfFile& file, std::string_view identity) const {
  if (auto known = find(identity); known != nullptr && known->machine() == file.machine()) return known;
  auto table = std::make_unique<UnwindTable>(build_table(file));
  if (table->row_count() >= kWorthKeeping) write(identity, *table);
  return table;
}

}  // namespace phlox::unwind
