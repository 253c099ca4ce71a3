// What a gzip file contains, up to 64 kB. Throws if it is none.
#pragma once

#include <zlib.h>

#include <stdexcept>
#include <string>

namespace phlox::test {

inline std::string gunzip(std::string packed) {
  std::string unpacked(1 << 16, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, MAX_WBITS + 16) != Z_OK) throw std::runtime_error("no zlib");
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
  stream.avail_out = static_cast<uInt>(unpacked.size());
  const int end = inflate(&stream, Z_FINISH);
  unpacked.resize(stream.total_out);
  inflateEnd(&stream);
  if (end != Z_STREAM_END) throw std::runtime_error("no gzip file");
  return unpacked;
}

}  // namespace phlox::test
