// Columns of numbers as bytes that pack well and unpack fast. web/src/model/columns.ts reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"

namespace phlox::exporters {

// The order of the bytes of a column's numbers.
enum class ColumnLayout {
  // All lowest bytes, then all second bytes, ...: for numbers with similar upper bytes. For a million real
  // times it packs a tenth smaller than variable-length numbers, and unpacks without a branch.
  planes,
  // Number by number, little-endian: for ids that occur again whole. Half a tenth smaller than planes for
  // stacks.
  words,
  // No numbers: text.
  text
};

struct Column {
  std::string name;
  ColumnLayout layout = ColumnLayout::planes;
  uint8_t width = 1;  // bytes of a number
  uint64_t rows = 0;  // for text: bytes
};

class ColumnWriter {
 public:
  // The numbers must not be negative; signs go through zigzag() first.
  void add(std::string name, ColumnLayout layout, const std::vector<int64_t>& values);
  template <class Rows, class Value>
  void add(std::string name, ColumnLayout layout, const Rows& rows, Value&& value) {
    std::vector<int64_t> values;
    values.reserve(rows.size());
    for (const auto& row : rows) values.push_back(static_cast<int64_t>(value(row)));
    add(std::move(name), layout, values);
  }
  void add_text(std::string name, std::string_view text);

  const std::vector<Column>& columns() const { return columns_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::vector<Column> columns_;
  std::string bytes_;
};

// 0, -1, 1, -2, 2, ... become 0, 1, 2, 3, 4, ...
constexpr int64_t zigzag(int64_t value) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

// In zlib's format: DecompressionStream calls it "deflate".
Result<std::string> deflated(std::string_view bytes);

}  // namespace phlox::exporters
