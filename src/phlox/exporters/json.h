// Writes JSON to a stream, piece by piece, and always valid UTF-8, whatever the bytes of a name.
#pragma once

#include <rapidjson/ostreamwrapper.h>
#include <rapidjson/writer.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "phlox/exporters/words.h"

namespace phlox::exporters {

using JsonWriter = rapidjson::Writer<rapidjson::OStreamWrapper>;

inline void put_key(JsonWriter& json, std::string_view key) {
  json.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
}

inline void put_text(JsonWriter& json, std::string_view text) {
  const std::string valid = displayable(text);
  json.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

inline void put(JsonWriter& json, std::string_view key, std::string_view text) {
  put_key(json, key);
  put_text(json, text);
}

inline void put(JsonWriter& json, std::string_view key, int64_t value) {
  put_key(json, key);
  json.Int64(value);
}

inline void put_double(JsonWriter& json, std::string_view key, double value) {
  put_key(json, key);
  json.Double(value);
}

// An array: `put_value` writes the contents of a row.
template <class Rows, class Put>
void put_column(JsonWriter& json, std::string_view name, const Rows& rows, Put&& put_value) {
  put_key(json, name);
  json.StartArray();
  for (const auto& row : rows) put_value(row);
  json.EndArray();
}

}  // namespace phlox::exporters
