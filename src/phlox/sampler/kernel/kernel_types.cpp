#include "phlox/sampler/kernel/kernel_types.h"

#include <linux/btf.h>

#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "phlox/base/byte_reader.h"

namespace phlox::sampler {
namespace {

using Names = std::set<std::string, std::less<>>;

// Kinds that older headers do not name (include/uapi/linux/btf.h).
constexpr uint32_t kDeclTag = 17, kTypeTag = 18, kEnum64 = 19;
constexpr std::string_view kTracepoint = "btf_trace_", kPerCpu = ".data..percpu";

uint32_t kind_of(const btf_type& type) {
  return BTF_INFO_KIND(type.info);
}
bool is_struct(uint32_t kind) {
  return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION;
}
// Only a name, or a qualifier, for another type.
bool is_alias(uint32_t kind) {
  return kind == BTF_KIND_TYPEDEF || kind == BTF_KIND_CONST || kind == BTF_KIND_VOLATILE ||
         kind == BTF_KIND_RESTRICT || kind == kTypeTag;
}

// What follows a type in the bytes; none: the kind is not known.
std::optional<size_t> bytes_after(const btf_type& type) {
  const size_t n = BTF_INFO_VLEN(type.info);
  switch (kind_of(type)) {
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case kDeclTag:
      return 4;
    case BTF_KIND_ARRAY:
      return sizeof(struct btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
      return n * sizeof(btf_member);
    case BTF_KIND_ENUM:
      return n * sizeof(struct btf_enum);
    case kEnum64:
    case BTF_KIND_DATASEC:
      return n * sizeof(btf_var_secinfo);
    case BTF_KIND_FUNC_PROTO:
      return n * sizeof(btf_param);
    case BTF_KIND_PTR:
    case BTF_KIND_FWD:
    case BTF_KIND_FUNC:
    case BTF_KIND_FLOAT:
      return 0;
    default:
      return is_alias(kind_of(type)) ? std::optional<size_t>(0) : std::nullopt;
  }
}

class Types {
 public:
  explicit Types(std::span<const std::byte> btf) {
    ByteReader reader(btf);
    const auto header = reader.read<btf_header>();
    if (reader.failed() || header.magic != BTF_MAGIC || header.version != BTF_VERSION) return;
    reader.seek(header.hdr_len);
    reader.skip(header.type_off);
    types_ = reader.bytes(header.type_len);
    reader.seek(header.hdr_len);
    reader.skip(header.str_off);
    strings_ = reader.bytes(header.str_len);
    if (reader.failed() || !index()) at_.clear();
  }

  // The first one is 1; 0 is void.
  uint32_t end() const { return at_.empty() ? 1 : static_cast<uint32_t>(at_.size()); }
  btf_type type(uint32_t id) const {
    return id == 0 || id >= end() ? btf_type{} : reader_at(id).read<btf_type>();
  }
  // What follows it.
  ByteReader reader_after(uint32_t id) const {
    ByteReader reader = reader_at(id);
    reader.skip(sizeof(btf_type));
    return reader;
  }
  std::string_view name(uint32_t offset) const {
    ByteReader reader(strings_);
    reader.seek(offset);
    return reader.c_string();
  }

 private:
  ByteReader reader_at(uint32_t id) const {
    ByteReader reader(types_);
    reader.seek(at_[id]);
    return reader;
  }
  bool index() {
    ByteReader reader(types_);
    at_.reserve(types_.size() / (2 * sizeof(btf_type)));
    at_.push_back(0);
    while (!reader.at_end()) {
      at_.push_back(static_cast<uint32_t>(reader.offset()));
      const auto after = bytes_after(reader.read<btf_type>());
      if (!after) return false;
      reader.skip(*after);
    }
    return !reader.failed();
  }

  std::span<const std::byte> types_, strings_;
  std::vector<uint32_t> at_;
};

// Copies types, and what they are made of, into BTF of its own.
class SomeTypes {
 public:
  explicit SomeTypes(const Types& from) : from_(from) {}

  void add(uint32_t id) {
    copied(id);
    while (!waiting_.empty()) copy(std::exchange(waiting_, {}));
  }
  std::vector<std::byte> bytes() const {
    btf_header header{};
    header.magic = BTF_MAGIC;
    header.version = BTF_VERSION;
    header.hdr_len = sizeof header;
    header.type_len = header.str_off = static_cast<uint32_t>(types_.size());
    header.str_len = static_cast<uint32_t>(strings_.size());
    std::vector<std::byte> out(sizeof header);
    std::memcpy(out.data(), &header, sizeof header);
    out.insert(out.end(), types_.begin(), types_.end());
    const auto* strings = reinterpret_cast<const std::byte*>(strings_.data());
    out.insert(out.end(), strings, strings + strings_.size());
    return out;
  }

 private:
  void copy(const std::vector<uint32_t>& ids) {
    for (const uint32_t id : ids) copy(id);
  }
  // Its number in the copy. Each is copied once, in the order of these numbers.
  uint32_t copied(uint32_t id) {
    if (id == 0 || id >= from_.end()) return 0;
    const auto [row, is_new] = numbers_.try_emplace(id, static_cast<uint32_t>(numbers_.size() + 1));
    if (is_new) waiting_.push_back(id);
    return row->second;
  }
  uint32_t copied_name(uint32_t offset) {
    const std::string_view name = from_.name(offset);
    if (name.empty()) return 0;
    const auto [row, is_new] = names_.try_emplace(name, static_cast<uint32_t>(strings_.size()));
    if (is_new) strings_.append(name).push_back('\0');
    return row->second;
  }
  template <class T>
  void put(const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    types_.insert(types_.end(), bytes, bytes + sizeof value);
  }
  void copy(uint32_t id) {
    btf_type type = from_.type(id);
    const uint32_t kind = kind_of(type);
    ByteReader after = from_.reader_after(id);
    type.name_off = copied_name(type.name_off);
    if (kind == BTF_KIND_PTR) type.type = 0;
    if (is_alias(kind)) type.type = copied(type.type);
    // No value of an enumeration is looked up.
    if (kind == BTF_KIND_ENUM || kind == kEnum64) type.info &= ~0xffffU;
    put(type);
    if (kind == BTF_KIND_INT) put(after.read<uint32_t>());
    if (kind == BTF_KIND_ARRAY) {
      auto array = after.read<struct btf_array>();
      array.type = copied(array.type);
      array.index_type = copied(array.index_type);
      put(array);
    }
    for (uint32_t i = 0; is_struct(kind) && i < BTF_INFO_VLEN(type.info); ++i) {
      auto member = after.read<btf_member>();
      member.name_off = copied_name(member.name_off);
      member.type = copied(member.type);
      put(member);
    }
  }

  const Types& from_;
  std::unordered_map<uint32_t, uint32_t> numbers_;
  std::unordered_map<std::string_view, uint32_t> names_;
  std::vector<uint32_t> waiting_;
  std::vector<std::byte> types_;
  std::string strings_ = std::string(1, '\0');
};

kernel_host host_of(const Types& types, uint32_t section) {
  std::map<std::string_view, int64_t> offsets;
  ByteReader variables = types.reader_after(section);
  for (uint32_t i = 0; i < BTF_INFO_VLEN(types.type(section).info); ++i) {
    const auto variable = variables.read<btf_var_secinfo>();
    offsets.emplace(types.name(types.type(variable.type).name_off), variable.offset);
  }
  kernel_host host{};
  const auto queue = offsets.find("runqueues");
  if (queue == offsets.end()) return host;
  // In Linux 6.2 to 6.14 the count is in a struct, and the program knows its place there.
  auto count = offsets.find("__preempt_count");
  if (count == offsets.end()) count = offsets.find("pcpu_hot");
  if (count != offsets.end()) host.preempt_count = count->second - queue->second;
  if (const auto timers = offsets.find("hrtimer_bases"); timers != offsets.end())
    host.timers = timers->second - queue->second;
  return host;
}

}  // namespace

KernelTypes pick_kernel_types(std::span<const std::byte> btf, const Names& structs,
                              const Names& tracepoints) {
  KernelTypes picked;
  const Types types(btf);
  SomeTypes some(types);
  for (uint32_t id = 1; id < types.end(); ++id) {
    const btf_type type = types.type(id);
    const uint32_t kind = kind_of(type);
    if (!is_struct(kind) && kind != BTF_KIND_TYPEDEF && kind != BTF_KIND_DATASEC) continue;
    const std::string_view name = types.name(type.name_off);
    if (kind == BTF_KIND_DATASEC) {
      if (name == kPerCpu) picked.host = host_of(types, id);
      continue;
    }
    if (kind == BTF_KIND_TYPEDEF && name.starts_with(kTracepoint)) {
      const auto wanted = tracepoints.find(name.substr(kTracepoint.size()));
      if (wanted != tracepoints.end()) picked.tracepoints.emplace(*wanted, id);
    } else if (structs.contains(name)) {
      some.add(id);
    }
  }
  picked.structs = some.bytes();
  return picked;
}

Names names_of_structs(std::span<const std::byte> btf) {
  Names names;
  const Types types(btf);
  for (uint32_t id = 1; id < types.end(); ++id) {
    const btf_type type = types.type(id);
    if (!is_struct(kind_of(type)) && kind_of(type) != BTF_KIND_TYPEDEF) continue;
    const std::string_view name = types.name(type.name_off);
    if (!name.empty()) names.emplace(name.substr(0, name.find("___")));
  }
  return names;
}

}  // namespace phlox::sampler
