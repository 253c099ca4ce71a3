#include "phlox/report/json_text.h"

#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include <algorithm>
#include <cmath>

#include "phlox/base/utf8.h"

namespace phlox::report {
namespace {

// DEL, C1 and what turns the direction of text may stand in JSON, and steer the terminal that shows it. They
// stand in strings alone, since the rest is ours.
std::string escaped_controls(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  const auto byte = [&](size_t i) -> unsigned {
    return i < json.size() ? static_cast<unsigned char>(json[i]) : 0;
  };
  for (size_t i = 0; i < json.size(); ++i) {
    unsigned code = 0;
    size_t length = 0;
    if (byte(i) == 0x7f) {
      code = 0x7f, length = 1;
    } else if ((byte(i) == 0xc2 && byte(i + 1) < 0xa0) || (byte(i) == 0xd8 && byte(i + 1) == 0x9c)) {
      code = (byte(i) & 0x1f) << 6 | (byte(i + 1) & 0x3f), length = 2;
    } else if (byte(i) == 0xe2 && (byte(i + 1) == 0x80 || byte(i + 1) == 0x81)) {
      const unsigned point = 0x2000 | (byte(i + 1) & 0x3f) << 6 | (byte(i + 2) & 0x3f);
      const bool turns = point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
                         (point >= 0x2066 && point <= 0x2069);
      if (turns) code = point, length = 3;
    }
    if (length == 0) {
      out += json[i];
      continue;
    }
    out += fmt::format("\\u{:04x}", code);
    i += length - 1;
  }
  return out;
}

}  // namespace

struct JsonText::Writer {
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> json{buffer};
};

JsonText::JsonText() : writer_(std::make_unique<Writer>()) {
  writer_->json.SetIndent(' ', 1);
  writer_->json.SetFormatOptions(rapidjson::kFormatSingleLineArray);
}
JsonText::~JsonText() = default;

void JsonText::begin_object() {
  writer_->json.StartObject();
}
void JsonText::end_object() {
  writer_->json.EndObject();
}
void JsonText::begin_array() {
  writer_->json.StartArray();
}
void JsonText::end_array() {
  writer_->json.EndArray();
}
void JsonText::key(std::string_view name) {
  writer_->json.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
}
void JsonText::string(std::string_view v) {
  const std::string valid = valid_utf8(v);
  writer_->json.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}
void JsonText::text(std::string_view name, std::string_view v) {
  key(name);
  string(v);
}
void JsonText::texts(std::string_view name, const std::vector<std::string>& v) {
  key(name);
  begin_array();
  for (const std::string& one : v) string(one);
  end_array();
}
void JsonText::integer(std::string_view name, int64_t v) {
  key(name);
  writer_->json.Int64(v);
}
void JsonText::count(std::string_view name, uint64_t v) {
  key(name);
  writer_->json.Uint64(v);
}
void JsonText::number(std::string_view name, double v) {
  key(name);
  if (!std::isfinite(v)) {
    writer_->json.Null();
    return;
  }
  // Nine digits are more than any share is known to, and keep rounding errors out of golden files.
  const double scale = v == 0 ? 1 : std::pow(10.0, 8 - std::floor(std::log10(std::abs(v))));
  writer_->json.Double(std::isfinite(scale) ? std::round(v * scale) / scale : v);
}
void JsonText::truth(std::string_view name, bool v) {
  key(name);
  writer_->json.Bool(v);
}

void JsonText::nothing(std::string_view name) {
  key(name);
  writer_->json.Null();
}

std::string JsonText::finish() {
  std::string text = escaped_controls({writer_->buffer.GetString(), writer_->buffer.GetSize()});
  text += '\n';
  return text;
}

}  // namespace phlox::report
