// JSON as text; the only place that uses the library. Bytes that are not UTF-8 become U+FFFD.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace phlox::report {

class JsonText {
 public:
  ~JsonText();
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  // One member of the object that is being filled.
  void text(std::string_view name, std::string_view v);
  void integer(std::string_view name, int64_t v);
  void count(std::string_view name, uint64_t v);
  void number(std::string_view name, double v);  // a NaN or an infinity becomes null
  void truth(std::string_view name, bool v);
  void nothing(std::string_view name);  // null
  void texts(std::string_view name, const std::vector<std::string>& v);
  // `fill` writes the members of the object.
  template <class Fill>
  void object(std::string_view name, Fill&& fill) {
    key(name);
    filled(fill);
  }
  // An array with one object for each row; `fill(row)` writes its members.
  template <class Rows, class Fill>
  void objects(std::string_view name, const Rows& rows, Fill&& fill) {
    key(name);
    begin_array();
    for (const auto& row : rows) filled([&] { fill(row); });
    end_array();
  }

  // The text of a document that is one object, ending in a new line.
  template <class Fill>
  static std::string document(Fill&& fill) {
    JsonText json;
    json.filled([&] { fill(json); });
    return json.finish();
  }

 private:
  template <class Fill>
  void filled(Fill&& fill) {
    begin_object();
    fill();
    end_object();
  }
  void key(std::string_view name);
  void string(std::string_view v);
  void begin_object();
  void end_object();
  void begin_array();
  void end_array();
  std::string finish();

  JsonText();
  struct Writer;
  std::unique_ptr<Writer> writer_;
};

}  // namespace phlox::report
