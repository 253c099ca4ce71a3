// JSON as text, the one place that knows the library. Bytes that are not UTF-8 become U+FFFD.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace phlox::report {

class JsonText {
 public:
  JsonText();
  ~JsonText();
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  void begin_object();
  void end_object();
  void begin_array();
  void end_array();
  void key(std::string_view name);
  void value(std::string_view text);
  void value(int64_t number);
  void value(uint64_t number);
  void value(double number);  // a NaN or an infinity becomes null
  void value(bool truth);

  // key and value in one
  void text(std::string_view name, std::string_view v) { key(name), value(v); }
  void integer(std::string_view name, int64_t v) { key(name), value(v); }
  void count(std::string_view name, uint64_t v) { key(name), value(v); }
  void number(std::string_view name, double v) { key(name), value(v); }
  void truth(std::string_view name, bool v) { key(name), value(v); }
  void object(std::string_view name) { key(name), begin_object(); }
  void array(std::string_view name) { key(name), begin_array(); }

  // All of it, ending in a new line. Every object and array must be closed.
  std::string finish() &&;

 private:
  struct Writer;
  std::unique_ptr<Writer> writer_;
};

}  // namespace phlox::report
