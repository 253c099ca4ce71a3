#include "phlox/python/objects.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "phlox/base/load.h"
#include "phlox/python/unicode.h"

namespace phlox::python {
namespace {

constexpr size_t kMaxTypeName = 256;
constexpr uint64_t kMaxBasicSize = 1 << 20;

}  // namespace

Read<RemoteAddress> ObjectReader::pointer(RemoteAddress at) {
  uint64_t value = 0;
  if (!is_plausible(at)) return fault(FaultKind::implausible, at);
  if (!memory_.read_value(at, value)) return fault(FaultKind::unreadable, at);
  return RemoteAddress(value);
}

Read<std::string> ObjectReader::string(RemoteAddress object, size_t most) {
  if (!is_plausible(object)) return fault(FaultKind::implausible, object);
  std::vector<std::byte> bytes(string_head_size(layout_));
  if (!memory_.read(object, std::span(bytes))) return fault(FaultKind::unreadable, object);
  const auto head = parse_string_head(layout_, object, bytes);
  if (!head) return tl::unexpected(head.error());
  const uint64_t size = std::min<uint64_t>(head->content_bytes(), most);
  bytes.resize(size);
  if (size != 0 && !memory_.read(head->content, std::span(bytes)))
    return fault(FaultKind::unreadable, head->content);
  std::string text;
  append_utf8(text, head->kind, bytes);
  if (size < head->content_bytes()) text += "…";
  return text;
}

Read<int64_t> ObjectReader::integer(RemoteAddress object) {
  const auto type = type_of(object);
  if (!type) return tl::unexpected(type.error());
  const auto& fields = layout_.integer;
  if ((type->flags & TypeFlag::kInteger2) != 0 && fields.ob_ival.present()) {
    int64_t value = 0;
    if (!memory_.read_value(object + *fields.ob_ival, value)) return fault(FaultKind::unreadable, object);
    return value;
  }
  if ((type->flags & TypeFlag::kLong) == 0) return fault(FaultKind::implausible, object);
  uint64_t digits = 0;
  bool negative = false;
  if (fields.lv_tag.present()) {
    // Include/cpython/longintrepr.h, 3.12: digits << 3 | sign (0 positive, 1 zero, 2 negative).
    uint64_t tag = 0;
    if (!memory_.read_value(object + *fields.lv_tag, tag)) return fault(FaultKind::unreadable, object);
    digits = (tag & 3) == 1 ? 0 : tag >> 3;
    negative = (tag & 3) == 2;
  } else {
    if (!fields.ob_size.present()) return fault(FaultKind::unsupported, object);
    int64_t size = 0;
    if (!memory_.read_value(object + *fields.ob_size, size)) return fault(FaultKind::unreadable, object);
    negative = size < 0;
    digits = negative ? 0 - static_cast<uint64_t>(size) : static_cast<uint64_t>(size);
  }
  // Digits have 30 bits; 64 bits need three of them, with four bits in the third.
  std::array<uint32_t, 3> digit{};
  if (digits > digit.size()) return fault(FaultKind::too_large, object);
  if (!fields.ob_digit.present()) return fault(FaultKind::unsupported, object);
  const RemoteAddress at = object + *fields.ob_digit;
  if (digits != 0 && !memory_.read(at, std::as_writable_bytes(std::span(digit).first(digits)))) {
    return fault(FaultKind::unreadable, at);
  }
  if (digit[2] >= 16) return fault(FaultKind::too_large, object);
  const uint64_t value = uint64_t{digit[0]} | uint64_t{digit[1]} << 30 | uint64_t{digit[2]} << 60;
  if (negative && value > uint64_t{1} << 63) return fault(FaultKind::too_large, object);
  return static_cast<int64_t>(negative ? 0 - value : value);
}

Read<TypeFacts> ObjectReader::type_of(RemoteAddress object) {
  const auto type = pointer(object + *layout_.object.ob_type);
  if (!type) return tl::unexpected(type.error());
  const auto& fields = layout_.type;
  uint64_t name = 0;
  TypeFacts facts;
  facts.address = *type;
  if (!is_plausible(*type)) return fault(FaultKind::implausible, object);
  const std::array<memory::Range, 3> ranges = {
      memory::Range{*type + *fields.tp_name, std::as_writable_bytes(std::span(&name, 1))},
      memory::Range{*type + *fields.tp_flags, std::as_writable_bytes(std::span(&facts.flags, 1))},
      memory::Range{*type + *fields.tp_dictoffset, std::as_writable_bytes(std::span(&facts.dictoffset, 1))}};
  if (memory_.read(ranges) != ranges.size()) return fault(FaultKind::unreadable, *type);
  if (!is_plausible(RemoteAddress(name))) return fault(FaultKind::implausible, *type);
  std::array<char, kMaxTypeName> text{};
  // A name may end just before an unmapped page.
  const uint64_t to_page_end = 4096 - name % 4096;
  const auto bytes = std::as_writable_bytes(std::span(text));
  if (!memory_.read(RemoteAddress(name), bytes) &&
      !memory_.read(RemoteAddress(name), bytes.first(std::min<uint64_t>(to_page_end, bytes.size())))) {
    return fault(FaultKind::unreadable, RemoteAddress(name));
  }
  const std::string_view whole(text.data(), strnlen(text.data(), text.size()));
  append_utf8(facts.name, CharacterKind::bytes, std::as_bytes(std::span(whole)));
  return facts;
}

Read<ObjectReader::Keys> ObjectReader::keys(RemoteAddress keys) {
  const auto& fields = layout_.dictkeys;
  if (!is_plausible(keys)) return fault(FaultKind::implausible, keys);
  if (!fields.dk_indices.present() || !fields.dk_nentries.present())
    return fault(FaultKind::unsupported, keys);
  std::vector<std::byte> head(*fields.dk_indices);
  if (!memory_.read(keys, std::span(head))) return fault(FaultKind::unreadable, keys);
  Keys out;
  out.count = load<uint64_t>(head, *fields.dk_nentries);
  uint64_t slots = 0, index_bytes = 0;
  if (fields.dk_log2_size.present()) {
    const auto log2_size = load<uint8_t>(head, *fields.dk_log2_size);
    const auto log2_index = load<uint8_t>(head, *fields.dk_log2_index_bytes);
    const auto kind = load<uint8_t>(head, *fields.dk_kind);
    if (log2_size > 40 || log2_index > 44 || kind > 2) return fault(FaultKind::implausible, keys);
    slots = uint64_t{1} << log2_size;
    index_bytes = uint64_t{1} << log2_index;
    // DICT_KEYS_GENERAL = 0 stores hashes; entries of other kinds are only key and value.
    out.entry_size = kind == 0 ? 24 : 16;
    out.key_offset = kind == 0 ? 8 : 0;
  } else {
    // Objects/dict-common.h of 3.6 to 3.10: the width of an index follows from the size.
    slots = load<uint64_t>(head, *fields.dk_size);
    if (slots > uint64_t{1} << 40) return fault(FaultKind::implausible, keys);
    index_bytes = slots * (slots <= 0xff ? 1 : slots <= 0xffff ? 2 : slots <= 0xffffffff ? 4 : 8);
    out.entry_size = 24;
    out.key_offset = 8;
  }
  if (out.count > slots) return fault(FaultKind::implausible, keys);
  if (out.count > kMaxDictEntries) return fault(FaultKind::too_large, keys);
  out.entries = keys + *fields.dk_indices + index_bytes;
  return out;
}

Read<std::vector<DictItem>> ObjectReader::table(RemoteAddress keys_address, RemoteAddress values) {
  const auto all = keys(keys_address);
  if (!all) return tl::unexpected(all.error());
  std::vector<std::byte> entries(all->count * all->entry_size);
  if (!entries.empty() && !memory_.read(all->entries, std::span(entries))) {
    return fault(FaultKind::unreadable, all->entries);
  }
  std::vector<uint64_t> apart;
  if (values) {
    apart.resize(all->count);
    const RemoteAddress at = values + (layout_.dictvalues.values.present() ? *layout_.dictvalues.values : 0);
    if (!is_plausible(at)) return fault(FaultKind::implausible, at);
    if (!apart.empty() && !memory_.read(at, std::as_writable_bytes(std::span(apart))))
      return fault(FaultKind::unreadable, at);
  }
  std::vector<DictItem> items;
  items.reserve(all->count);
  for (uint64_t i = 0; i < all->count; ++i) {
    const size_t at = i * all->entry_size + all->key_offset;
    const uint64_t value = values ? apart[i] : load<uint64_t>(entries, at + 8);
    const DictItem item{RemoteAddress(load<uint64_t>(entries, at)), RemoteAddress(value)};
    if (item.key && item.value) items.push_back(item);
  }
  return items;
}

// 2.7: a table of ma_mask + 1 entries (hash, key, value), used or not.
Read<std::vector<DictItem>> ObjectReader::open_table(RemoteAddress dict) {
  uint64_t mask = 0, table = 0;
  if (!memory_.read_value(dict + *layout_.dict.ma_mask, mask) ||
      !memory_.read_value(dict + *layout_.dict.ma_table, table)) {
    return fault(FaultKind::unreadable, dict);
  }
  if ((mask & (mask + 1)) != 0 || !is_plausible(RemoteAddress(table)))
    return fault(FaultKind::implausible, dict);
  if (mask >= 4 * kMaxDictEntries) return fault(FaultKind::too_large, dict);
  std::vector<std::byte> entries((mask + 1) * 24);
  if (!memory_.read(RemoteAddress(table), std::span(entries)))
    return fault(FaultKind::unreadable, RemoteAddress(table));
  std::vector<DictItem> items;
  for (uint64_t i = 0; i <= mask; ++i) {
    const DictItem item{RemoteAddress(load<uint64_t>(entries, i * 24 + 8)),
                        RemoteAddress(load<uint64_t>(entries, i * 24 + 16))};
    if (item.key && item.value) items.push_back(item);
  }
  return items;
}

Read<std::vector<DictItem>> ObjectReader::dict(RemoteAddress object) {
  if (!is_plausible(object)) return fault(FaultKind::implausible, object);
  if (layout_.dict.ma_table.present()) return open_table(object);
  if (!layout_.dict.ma_keys.present() || !layout_.dict.ma_values.present())
    return fault(FaultKind::unsupported, object);
  const auto keys = pointer(object + *layout_.dict.ma_keys);
  if (!keys) return tl::unexpected(keys.error());
  const auto values = pointer(object + *layout_.dict.ma_values);
  if (!values) return tl::unexpected(values.error());
  return table(*keys, *values);
}

Read<RemoteAddress> ObjectReader::find(const std::vector<DictItem>& items, std::string_view key) {
  // The keys searched for are ASCII and contiguous: one call reads head and characters of many.
  constexpr size_t kBatch = 256;
  const size_t head = layout_.traits.python2 ? *layout_.bytes.ob_sval : *layout_.unicode.asciiobject_size;
  const size_t size = head + key.size();
  std::vector<std::byte> bytes(kBatch * size);
  std::vector<memory::Range> ranges;
  for (size_t from = 0; from < items.size();) {
    const size_t count = std::min(kBatch, items.size() - from);
    ranges.clear();
    for (size_t i = 0; i < count; ++i) {
      ranges.push_back({items[from + i].key, std::span(bytes).subspan(i * size, size)});
    }
    const size_t whole = memory_.read(ranges);
    for (size_t i = 0; i < whole; ++i) {
      const auto one = std::span(bytes).subspan(i * size, size);
      if (load<uint64_t>(one, string_length_offset(layout_)) != key.size()) continue;
      if (std::memcmp(one.data() + head, key.data(), key.size()) != 0) continue;
      const RemoteAddress object = items[from + i].key;
      if (layout_.traits.python2) return items[from + i].value;
      const auto exact = string(object, key.size());
      if (exact && *exact == key) return items[from + i].value;
    }
    // A key that cannot be read (a short one at the end of its mapping) is no match.
    from += std::min(whole + 1, count);
  }
  return RemoteAddress();
}

Read<RemoteAddress> ObjectReader::find_in_dict(RemoteAddress object, std::string_view key) {
  const auto items = dict(object);
  if (!items) return tl::unexpected(items.error());
  return find(*items, key);
}

Read<std::vector<DictItem>> ObjectReader::modules(RemoteAddress interpreter) {
  if (!layout_.interpreter.modules.present()) return fault(FaultKind::unsupported, interpreter);
  const auto all = pointer(interpreter + *layout_.interpreter.modules);
  if (!all) return tl::unexpected(all.error());
  if (!*all) return std::vector<DictItem>();
  return dict(*all);
}

Read<std::vector<DictItem>> ObjectReader::names_of(const std::vector<DictItem>& modules,
                                                   std::string_view module) {
  const auto object = find(modules, module);
  if (!object) return tl::unexpected(object.error());
  if (!*object) return std::vector<DictItem>();
  const auto names = pointer(*object + *layout_.module.md_dict);
  if (!names) return tl::unexpected(names.error());
  return dict(*names);
}

Read<std::vector<DictItem>> ObjectReader::instance_items(RemoteAddress instance) {
  constexpr uint64_t kWord = 8;
  const auto type = type_of(instance);
  if (!type) return tl::unexpected(type.error());
  auto cached_keys = [&]() { return pointer(type->address + *layout_.type.ht_cached_keys); };
  auto with_values = [&](RemoteAddress values) -> Read<std::vector<DictItem>> {
    const auto keys = cached_keys();
    if (!keys) return tl::unexpected(keys.error());
    return table(*keys, values);
  };
  RemoteAddress dict_place;
  if ((type->flags & TypeFlag::kManagedDict) != 0 && layout_.traits.managed_dict != ManagedDict::none) {
    switch (layout_.traits.managed_dict) {
      case ManagedDict::none:
        break;
      case ManagedDict::two_words: {
        const auto values = pointer(instance - 4 * kWord);
        if (!values) return tl::unexpected(values.error());
        if (*values) return with_values(*values);
        dict_place = instance - 3 * kWord;
        break;
      }
      case ManagedDict::tagged: {
        const auto word = pointer(instance - 3 * kWord);
        if (!word) return tl::unexpected(word.error());
        if ((word->value & 1) != 0) return with_values(*word + 1);
        dict_place = instance - 3 * kWord;
        break;
      }
      case ManagedDict::inline_values: {
        dict_place = instance - (layout_.traits.free_threaded ? 1 : 3) * kWord;
        const auto dict_object = pointer(dict_place);
        if (!dict_object) return tl::unexpected(dict_object.error());
        if (!*dict_object && (type->flags & TypeFlag::kInlineValues) != 0) {
          // After the object's fixed part; up to 3.13, that was only the head (_PyObject_InlineValues in
          // Include/internal/pycore_object.h).
          const auto size = pointer(type->address + *layout_.type.tp_basicsize);
          if (!size) return tl::unexpected(size.error());
          if (size->value > kMaxBasicSize) return fault(FaultKind::implausible, type->address);
          return with_values(instance + size->value);
        }
        break;
      }
    }
  } else {
    if (type->dictoffset <= 0) return fault(FaultKind::unsupported, instance);
    dict_place = instance + static_cast<uint64_t>(type->dictoffset);
  }
  const auto dict_object = pointer(dict_place);
  if (!dict_object) return tl::unexpected(dict_object.error());
  if (!*dict_object) return std::vector<DictItem>();
  return dict(*dict_object);
}

Read<RemoteAddress> ObjectReader::attribute(RemoteAddress instance, std::string_view name) {
  const auto items = instance_items(instance);
  if (!items) return tl::unexpected(items.error());
  return find(*items, name);
}

}  // namespace phlox::python
