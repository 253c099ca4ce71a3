#include "phlox/importers/pprof_input.h"

#include <algorithm>
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <span>
#include <string_view>

namespace phlox::importers {
namespace {

using protozero::pbf_wire_type;

constexpr size_t kLargestPprof = size_t{1} << 30;

// profile.proto's fields are small: a field of a gigabyte, compressed to a megabyte, is meant to exhaust
// memory.
constexpr size_t kLargestField = size_t{16} << 20;
// A limit for very many fields: each takes some 16 bytes in memory.
constexpr size_t kMostFields = size_t{1} << 26;

// Walks over a message's fields while its bytes arrive.
class FieldSizes {
 public:
  // Whether the fields that begin in `bytes` (all bytes so far) are small enough, and not too many.
  bool take(std::string_view bytes) {
    while (next_ + kLongestHead < bytes.size()) {
      const char* at = bytes.data() + next_;
      const char* const end = bytes.data() + bytes.size();
      try {
        const uint64_t key = protozero::decode_varint(&at, end);
        const auto type = static_cast<pbf_wire_type>(key & 7);
        uint64_t length = 0;
        if (type == pbf_wire_type::length_delimited || type == pbf_wire_type::varint)
          length = protozero::decode_varint(&at, end);
        if (type == pbf_wire_type::varint) length = 0;
        if (type == pbf_wire_type::fixed64) length = 8;
        if (type == pbf_wire_type::fixed32) length = 4;
        if (length > kLargestField || ++fields_ > kMostFields) return false;
        next_ = static_cast<size_t>(at - bytes.data()) + length;
      } catch (const protozero::exception&) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr size_t kLongestHead = 20;  // two numbers of ten bytes
  size_t next_ = 0, fields_ = 0;
};

}  // namespace

Result<std::string> read_pprof(Input& input) {
  std::string bytes;
  FieldSizes sizes;
  constexpr size_t kPprofPiece = size_t{1} << 20;
  bytes.reserve(std::min<uint64_t>(input.size().value_or(0), kLargestPprof));
  while (bytes.size() <= kLargestPprof) {
    const size_t have = bytes.size();
    const size_t asked = input.room_for(have, kPprofPiece);
    bytes.resize(have + asked);
    bytes.resize(have + input.read_at(have, std::as_writable_bytes(std::span(bytes)).subspan(have)));
    if (!sizes.take(bytes))
      return fail(
          ErrorKind::input,
          "a field of this profile.proto is damaged or longer than 16 MiB, or it has more than 67 million",
          "write the file again with shorter names");
    if (bytes.size() < have + asked || asked == 0) return bytes;
  }
  return fail(ErrorKind::input, "more than 1 GiB of profile.proto is not read",
              "record a shorter time, or fewer samples a second");
}

}  // namespace phlox::importers
