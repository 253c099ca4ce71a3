#include "phlox/push/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace phlox::push {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's code for "with gzip's header"

Bytef* as_input(std::string_view bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

}  // namespace

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int kMemory = 8;
  // Fast: these bodies become a sixth of their size at any level.
  if (::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return {};
  std::string out(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = as_input(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool fits = bytes.size() <= std::numeric_limits<uInt>::max();
  const bool done = fits && ::deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(done ? stream.total_out : 0);
  ::deflateEnd(&stream);
  return out;
}

std::optional<std::string> gunzip(std::string_view bytes, size_t most) {
  z_stream stream{};
  if (bytes.size() > std::numeric_limits<uInt>::max() || ::inflateInit2(&stream, kGzipWindow) != Z_OK)
    return {};
  std::string out;
  stream.next_in = as_input(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  int state = Z_OK;
  while (state == Z_OK && out.size() <= most) {
    constexpr size_t kStep = size_t{1} << 16;
    const size_t before = out.size();
    out.resize(before + kStep);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(kStep);
    state = ::inflate(&stream, Z_NO_FLUSH);
    out.resize(before + kStep - stream.avail_out);
    if (state == Z_OK && out.size() == before && stream.avail_in == 0) break;
  }
  ::inflateEnd(&stream);
  if (state != Z_STREAM_END || out.size() > most) return {};
  return out;
}

}  // namespace phlox::push
