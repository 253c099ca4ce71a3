#include "phlox/importers/gzip_input.h"

#include <zlib.h>

#include <algorithm>

namespace phlox::importers {
namespace {

constexpr size_t kGzipPiece = size_t{128} << 10;
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

GzipInput::GzipInput(Input& packed)
    : packed_(packed),
      unpacker_(std::make_unique<Unpacker>()),
      unpacked_([this](std::span<std::byte> into) { return unpack(into); }) {}
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
      piece_.resize(packed_.room_for(taken_, kGzipPiece));
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
      // A file may have several parts in a row; anything else after the end does not belong to it.
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
  return unpacked_.read_at(offset, into);
}

}  // namespace phlox::importers
