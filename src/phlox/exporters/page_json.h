// The page's data as JSON.
#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "phlox/exporters/words.h"

namespace phlox::exporters {

// Writes JSON, one key and its value at a time. Text is made displayable.
class Json {
 public:
  void open(char bracket) { bracket == '{' ? writer_.StartObject() : writer_.StartArray(); }
  void close(char bracket) { bracket == '}' ? writer_.EndObject() : writer_.EndArray(); }
  void key(std::string_view name) { writer_.Key(name.data(), static_cast<rapidjson::SizeType>(name.size())); }
  void text(std::string_view value) {
    const std::string valid = displayable(value);
    writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
  }
  void number(int64_t value) { writer_.Int64(value); }
  void real(double value) { writer_.Double(value); }
  // The JSON of another writer: a whole array or object.
  void raw(std::string_view document) {
    writer_.RawValue(document.data(), document.size(), rapidjson::kArrayType);
  }
  void truth(bool value) { writer_.Bool(value); }

  void text(std::string_view name, std::string_view value) { key(name), text(value); }
  void number(std::string_view name, int64_t value) { key(name), number(value); }
  std::string_view document() const { return {buffer_.GetString(), buffer_.GetSize()}; }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

}  // namespace phlox::exporters
