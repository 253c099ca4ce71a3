#include "phlox/python/web_objects.h"

#include <algorithm>
#include <utility>

namespace phlox::python {
namespace {

// Of all objects: a table that contains itself several times has more with each step down.
constexpr size_t kMostAttributes = 200'000;
constexpr size_t kAttributesAtOnce = 256;
constexpr size_t kMostText = 200;  // bytes of a path
constexpr size_t kMostBases = 12;

}  // namespace

bool WebObjects::may_read(RemoteAddress object) {
  if (!is_plausible(object) || ++attributes_ > kMostAttributes) return false;
  if (between_ && attributes_ % kAttributesAtOnce == 0) between_();
  return true;
}

RemoteAddress WebObjects::attribute(RemoteAddress object, std::string_view name) {
  const auto value = may_read(object) ? objects_.attribute(object, name) : RemoteAddress();
  return value ? *value : RemoteAddress();
}

std::optional<uint32_t> WebObjects::slot_of(RemoteAddress type, std::string_view name) {
  for (size_t i = 0; i < kMostBases && is_plausible(type); ++i) {
    if (const auto offset = types_.slot(type, name)) return offset;
    type = word(type + *layout_.type.tp_base);
  }
  return {};
}

RemoteAddress WebObjects::slot(RemoteAddress object, std::string_view name) {
  if (!may_read(object)) return {};
  const auto offset = slot_of(word(object + *layout_.object.ob_type), name);
  return offset ? word(object + *offset) : RemoteAddress();
}

std::string WebObjects::text(RemoteAddress object) {
  if (!is_plausible(object) || type_name(object) != "str") return {};
  const auto read = objects_.string(object, kMostText);
  return read ? *read : std::string();
}

bool WebObjects::derives(RemoteAddress object, std::string_view name) {
  return is_plausible(object) && types_.derives(word(object + *layout_.object.ob_type), name);
}

std::vector<RemoteAddress> WebObjects::items(RemoteAddress object) {
  std::vector<RemoteAddress> out;
  if (!is_plausible(object)) return out;
  const std::string type = type_name(object);
  if (type == "set" || type == "frozenset") {
    const auto members = types_.set_members_once(object, kMostItems);
    return members ? *members : out;
  }
  const bool list = derives(object, "list");
  if (!list && type != "tuple") return out;
  const uint64_t size = word(object + (list ? *layout_.list.ob_size : *layout_.tuple.ob_size)).value;
  const RemoteAddress at = list ? word(object + *layout_.list.ob_item) : object + *layout_.tuple.ob_item;
  for (uint64_t i = 0; i < std::min<uint64_t>(size, kMostItems); ++i) out.push_back(word(at + 8 * i));
  return out;
}

std::vector<DictItem> WebObjects::dict(RemoteAddress object) {
  if (!is_plausible(object) || !derives(object, "dict")) return {};
  auto read = objects_.dict(object);
  return read ? *std::move(read) : std::vector<DictItem>();
}

RemoteAddress WebObjects::named(const std::vector<DictItem>& names, std::string_view name) {
  const auto found = objects_.find(names, name);
  return found ? *found : RemoteAddress();
}

}  // namespace phlox::python
