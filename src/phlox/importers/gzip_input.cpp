#include "phlox/importers/gzip_input.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace phlox::importers {
namespace {

constexpr size_t kPiece = size_t{128} << 10;
constexpr int kGzip = 15 + 16;  // the largest window, and gzip's header

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

}  // namespace

struct GzipInput::Unpacker {
  z_stream stream{};
  bool good = inflateInit2(&stream, kGzip) == Z_OK;
  Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  ~Unpacker() {
    if (good) inflateEnd(&stream);
  }
};

GzipInput::GzipInput(Input& packed) : packed_(packed), unpacker_(std::make_unique<Unpacker>()) {}
GzipInput::~GzipInput() = default;

std::unique_ptr<GzipInput> GzipInput::of(Input& packed) {
  std::byte mark[2];
  if (packed.read_at(0, mark) < sizeof mark || !is_gzip(mark)) return nullptr;
  auto input = std::unique_ptr<GzipInput>(new GzipInput(packed));
  return input->unpacker_->good ? std::move(input) : nullptr;
}

size_t GzipInput::unpack(std::span<std::byte> into) {
  z_stream& stream = unpacker_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(into.data());
  stream.avail_out = static_cast<uInt>(std::min<size_t>(into.size(), 1U << 30));
  const auto wanted = stream.avail_out;
  while (!ended_ && stream.avail_out > 0) {
    if (stream.avail_in == 0) {
      piece_.resize(kPiece);
      piece_.resize(packed_.read_at(taken_, piece_));
      taken_ += piece_.size();
      stream.next_in = reinterpret_cast<Bytef*>(piece_.data());
      stream.avail_in = static_cast<uInt>(piece_.size());
    }
    if (stream.avail_in == 0) {
      damaged_ = ended_ = true;
      break;
    }
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      // A file may have several parts, one behind the other; what else follows its end is none of it.
      std::byte mark[2];
      const uint64_t next = taken_ - stream.avail_in;
      ended_ = packed_.read_at(next, mark) < sizeof mark || !is_gzip(mark) || inflateReset(&stream) != Z_OK;
    } else if (result != Z_OK) {
      damaged_ = ended_ = true;
    }
  }
  return wanted - stream.avail_out;
}

size_t GzipInput::read_at(uint64_t offset, std::span<std::byte> into) {
  if (!head_read_) {
    head_.resize(FileInput::kHead);
    head_.resize(unpack(head_));
    at_ = head_.size();
    head_read_ = true;
  }
  size_t have = 0;
  if (offset < head_.size()) {
    have = std::min<uint64_t>(into.size(), head_.size() - offset);
    std::memcpy(into.data(), head_.data() + offset, have);
    if (have == into.size() || at_ > head_.size()) return have;
    offset += have;
  }
  std::vector<std::byte> skipped(std::min<uint64_t>(offset > at_ ? offset - at_ : 0, kPiece));
  while (at_ < offset) {
    const size_t got = unpack(std::span(skipped).first(std::min<uint64_t>(skipped.size(), offset - at_)));
    if (got == 0) return have;
    at_ += got;
  }
  if (at_ != offset) return have;  // backwards
  while (have < into.size()) {
    const size_t got = unpack(into.subspan(have));
    if (got == 0) break;
    at_ += got;
    have += got;
  }
  return have;
}

}  // namespace phlox::importers
