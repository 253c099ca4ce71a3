#include "phlox/symbols/name_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "phlox/base/byte_reader.h"
#include "phlox/base/descriptor.h"
#include "phlox/base/private_folder.h"

namespace phlox::symbols {
namespace {

// Part of the name, so that versions do not overwrite each other's files.
constexpr const char* kSuffix = ".names3";
// A program that runs for a day reaches some thousand addresses of a module.
constexpr size_t kMostNames = 50'000;
constexpr size_t kMostLevels = 512;
constexpr size_t kLargestCache = size_t{64} << 20;

// FNV-1a: only for a file name; the file itself says whose it is.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<uint32_t>(text.size()));
  out += text;
}

std::string take_text(ByteReader& in) {
  const auto bytes = in.bytes(in.read<uint32_t>());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view text_of(const elf::FileBytes& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

struct Head {
  NameSource source = NameSource::none;
  uint16_t levels = 0;
};
std::optional<Head> take_head(ByteReader& in) {
  const auto source = in.read<uint8_t>();
  const auto levels = in.read<uint16_t>();
  if (in.failed() || source > static_cast<uint8_t>(NameSource::debug_info) || levels == 0 ||
      levels > kMostLevels)
    return std::nullopt;
  return Head{static_cast<NameSource>(source), levels};
}

// The naming that follows an address.
std::optional<Naming> take_naming(ByteReader& in) {
  const auto head = take_head(in);
  if (!head) return std::nullopt;
  Naming naming;
  naming.source = head->source;
  for (uint16_t i = 0; i < head->levels && !in.failed(); ++i) {
    NativeName& name = naming.levels.emplace_back();
    name.function = take_text(in);
    name.short_name = take_text(in);
    name.file = take_text(in);
    name.line = in.read<int32_t>();
    name.declared_file = take_text(in);
    name.declared_line = in.read<int32_t>();
    name.inlined = in.read<uint8_t>() != 0;
    const auto part = in.read<uint8_t>();
    if (part > static_cast<uint8_t>(CythonPart::function)) return std::nullopt;
    name.cython = static_cast<CythonPart>(part);
  }
  return in.failed() ? std::nullopt : std::optional(std::move(naming));
}

bool skip_naming(ByteReader& in) {
  const auto head = take_head(in);
  if (!head) return false;
  for (uint16_t i = 0; i < head->levels; ++i) {
    for (int text = 0; text < 3; ++text) in.skip(in.read<uint32_t>());
    in.skip(4);                    // line
    in.skip(in.read<uint32_t>());  // file of the declaration
    in.skip(4 + 1 + 1);            // its line, inlined, part
  }
  return !in.failed();
}

std::optional<Naming> naming_at(std::string_view bytes, size_t offset) {
  ByteReader in(std::as_bytes(std::span(bytes)));
  in.seek(offset);
  return take_naming(in);
}

}  // namespace

NameCache::NameCache(std::string folder, std::string identity)
    : folder_(std::move(folder)), identity_(std::move(identity)) {
  if (folder_.empty() || !make_private_folder(folder_)) {
    folder_.clear();
    return;
  }
  file_ = fmt::format("{:016x}{}", hash_of(identity_), kSuffix);
  const Descriptor fd = open_kept_file(folder_, file_, kLargestCache);
  if (!fd) return;
  auto bytes = elf::FileBytes::read(fd.get(), folder_ + "/" + file_);
  if (!bytes) return;
  kept_ = *std::move(bytes);
  places_ = places_in(text_of(*kept_), identity_);
}

// Empty if the bytes are damaged, or of another identity.
NameCache::Places NameCache::places_in(std::string_view bytes, std::string_view identity) {
  if (bytes.size() < 8) return {};
  uint64_t size = 0;
  std::memcpy(&size, bytes.data() + bytes.size() - 8, 8);
  if (size != bytes.size() - 8) return {};
  ByteReader in(std::as_bytes(std::span(bytes.data(), bytes.size() - 8)));
  if (take_text(in) != identity) return {};
  Places places;
  while (!in.at_end() && places.size() < kMostNames) {
    const auto address = in.read<uint64_t>();
    const size_t at = in.offset();
    if (!skip_naming(in)) return {};
    places.emplace_back(address, at);
  }
  std::sort(places.begin(), places.end());
  return places;
}

const size_t* NameCache::place_of(ImageAddress address) const {
  const auto place = std::lower_bound(places_.begin(), places_.end(), std::pair(address.value, size_t{0}));
  return place != places_.end() && place->first == address.value ? &place->second : nullptr;
}

std::optional<Naming> NameCache::find(ImageAddress address) {
  const size_t* place = place_of(address);
  if (place == nullptr) return std::nullopt;
  auto naming = naming_at(text_of(*kept_), *place);
  if (!naming) places_.clear();  // damaged: everything is rebuilt
  return naming;
}

void NameCache::add(ImageAddress address, const Naming& naming) {
  if (folder_.empty() || names_.size() + places_.size() >= kMostNames || place_of(address) != nullptr) return;
  names_.try_emplace(address.value, naming);
}

void NameCache::write() const {
  if (names_.empty()) return;
  auto names = kept_ ? parse(text_of(*kept_), identity_) : std::unordered_map<uint64_t, Naming>();
  for (const auto& [address, naming] : names_) names.try_emplace(address, naming);
  const std::string bytes = bytes_of(identity_, names);
  write_whole_file(folder_, file_, std::as_bytes(std::span(bytes)));
}

std::string NameCache::bytes_of(std::string_view identity,
                                const std::unordered_map<uint64_t, Naming>& names) {
  std::string out;
  put_text(out, identity);
  for (const auto& [address, naming] : names) {
    put(out, address);
    put(out, static_cast<uint8_t>(naming.source));
    put(out, static_cast<uint16_t>(naming.levels.size()));
    for (const NativeName& name : naming.levels) {
      put_text(out, name.function);
      put_text(out, name.short_name);
      put_text(out, name.file);
      put(out, name.line);
      put_text(out, name.declared_file);
      put(out, name.declared_line);
      put(out, static_cast<uint8_t>(name.inlined));
      put(out, static_cast<uint8_t>(name.cython));
    }
  }
  // Detects a truncated file.
  put(out, uint64_t{out.size()});
  return out;
}

std::unordered_map<uint64_t, Naming> NameCache::parse(std::string_view bytes, std::string_view identity) {
  std::unordered_map<uint64_t, Naming> names;
  for (const auto& [address, place] : places_in(bytes, identity)) {
    auto naming = naming_at(bytes, place);
    if (!naming) return {};
    names.emplace(address, *std::move(naming));
  }
  return names;
}

}  // namespace phlox::symbols
