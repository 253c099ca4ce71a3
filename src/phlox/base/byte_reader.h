// A cursor over bytes from outside (target memory, ELF, DWARF, recordings). Every read is checked against the
// end; reading beyond it yields zero and sets failed(), which stays set. Little-endian hosts and data only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace phlox {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t offset() const { return at_; }
  size_t size() const { return bytes_.size(); }
  size_t remaining() const { return bytes_.size() - at_; }
  bool failed() const { return failed_; }
  bool at_end() const { return at_ == bytes_.size(); }

  void seek(size_t offset) {
    if (offset > bytes_.size()) return fail();
    at_ = offset;
  }
  void skip(size_t n) {
    if (n > remaining()) return fail();
    at_ += n;
  }

  template <class T>
  T read() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (sizeof(T) > remaining()) {
      fail();
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::span<const std::byte> bytes(size_t n) {
    if (n > remaining()) {
      fail();
      return {};
    }
    auto part = bytes_.subspan(at_, n);
    at_ += n;
    return part;
  }

  // A string that ends in NUL; without one before the end the reader has failed.
  std::string_view c_string() {
    const auto* start = reinterpret_cast<const char*>(bytes_.data()) + at_;
    const void* nul = remaining() == 0 ? nullptr : std::memchr(start, 0, remaining());
    if (nul == nullptr) {
      fail();
      return {};
    }
    const auto length = static_cast<size_t>(static_cast<const char*>(nul) - start);
    at_ += length + 1;
    return {start, length};
  }

  // DWARF's LEB128, at most 10 bytes.
  uint64_t uleb128() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const auto byte = read<uint8_t>();
      if (failed_) return 0;
      if (shift < 64) value |= uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    fail();
    return 0;
  }
  int64_t sleb128() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const auto byte = read<uint8_t>();
      if (failed_) return 0;
      if (shift < 64) value |= uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) {
        if (shift + 7 < 64 && (byte & 0x40U) != 0) value |= ~uint64_t{0} << (shift + 7);
        return static_cast<int64_t>(value);
      }
    }
    fail();
    return 0;
  }

 private:
  void fail() {
    failed_ = true;
    at_ = bytes_.size();
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace phlox
