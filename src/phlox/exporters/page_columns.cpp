#include "phlox/exporters/page_columns.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace phlox::exporters {

void ColumnWriter::add(std::string name, ColumnLayout layout, const std::vector<int64_t>& values) {
  uint64_t all = 1;
  for (int64_t value : values) all |= static_cast<uint64_t>(value);
  auto width = static_cast<uint8_t>((std::bit_width(all) + 7) / 8);
  // Typed arrays have elements of one, two, four or eight bytes; planes may have any number of bytes.
  if (layout == ColumnLayout::words) width = std::bit_ceil(width);
  const size_t start = bytes_.size(), count = values.size();
  bytes_.resize(start + count * width);
  char* out = bytes_.data() + start;
  for (size_t i = 0; i < count; ++i) {
    auto value = static_cast<uint64_t>(values[i]);
    for (unsigned byte = 0; byte < width; ++byte, value >>= 8)
      out[layout == ColumnLayout::words ? i * width + byte : byte * count + i] =
          static_cast<char>(value & 0xff);
  }
  columns_.push_back({std::move(name), layout, width, count});
}

void ColumnWriter::add_text(std::string name, std::string_view text) {
  columns_.push_back({std::move(name), ColumnLayout::text, 1, text.size()});
  bytes_ += text;
}

Result<std::string> deflated(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  // Level 9 takes seven times as long and saves one percent.
  const int status = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 6);
  if (status != Z_OK) return fail(ErrorKind::system, "cannot compress the page's data: zlib gave up");
  out.resize(size);
  return out;
}

}  // namespace phlox::exporters
