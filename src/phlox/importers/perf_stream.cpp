#include "phlox/importers/perf_stream.h"

#include <linux/perf_event.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace phlox::importers {
namespace {

// Small enough that a few of them stay in a CPU's cache until their records are taken.
constexpr size_t kPerfPiece = size_t{512} << 10;
// perf compresses what it took from a ring, 512 KiB by default (-m makes it larger), into records of up to 64
// KiB.
constexpr size_t kMostUnpacked = size_t{256} << 20;

enum PackedRecord : uint32_t {
  record_user_start = 64,
  record_tracing_data = 66,
  record_auxtrace = 71,
  record_compressed = 81,
  record_compressed2 = 83,  // perf 6.16: has its own length, and is padded to 8 bytes
};

perf_event_header header_of(std::span<const std::byte> bytes) {
  perf_event_header header{};
  if (!bytes.empty()) std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof header));
  return header;
}

}  // namespace

struct PerfStream::Unpacker {
  ZSTD_DStream* stream = ZSTD_createDStream();
  Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  ~Unpacker() { ZSTD_freeDStream(stream); }
};

PerfStream::PerfStream(Input& input, PerfFile& file)
    : input_(input), file_(file), at_(file.data_start()), piece_(pieces_.take()), unpacked_(pieces_.take()) {}
PerfStream::~PerfStream() = default;

std::span<const std::byte> PerfStream::bytes_at(uint64_t offset, size_t size) {
  const bool there = offset >= piece_at_ && offset - piece_at_ <= piece_->size() &&
                     piece_->size() - (offset - piece_at_) >= size;
  if (!there) {
    // The rest of the piece is put before the next one: a pipe is read once.
    const size_t keep = offset >= piece_at_ && offset - piece_at_ < piece_->size()
                            ? piece_->size() - (offset - piece_at_)
                            : 0;
    const PerfPiece next = pieces_.take();
    next->resize(keep + input_.room_for(offset + keep, kPerfPiece - keep));
    if (keep > 0) std::memcpy(next->data(), piece_->data() + (piece_->size() - keep), keep);
    next->resize(keep + input_.read_at(offset + keep, std::span(*next).subspan(keep)));
    piece_ = next;
    piece_at_ = offset;
  }
  const auto rest = std::span<const std::byte>(*piece_).subspan(offset - piece_at_);
  return rest.first(std::min(size, rest.size()));
}

std::span<const std::byte> PerfStream::next() {
  while (true) {
    auto record = from_unpacked();
    was_packed_ = !record.empty();
    if (!was_packed_) record = from_file();
    if (record.empty()) return {};
    const uint32_t type = header_of(record).type;
    if (type == record_compressed || type == record_compressed2) {
      // perf compresses nothing twice.
      if (was_packed_) {
        ++damaged_;
      } else {
        unpack(record);
      }
    } else if (type >= record_user_start && type != kFinishedRound) {
      if (!file_.take(record) && !was_packed_) pass_over(record);
    } else {
      return record;
    }
  }
}

std::span<const std::byte> PerfStream::from_file() {
  if (ended_) return {};
  const uint64_t end = file_.data_end().value_or(~uint64_t{0});
  const auto left = [&] {
    const uint64_t known = std::min(end, input_.size().value_or(at_ + piece_->size()));
    return known > at_ ? known - at_ : 0;
  };
  if (at_ >= end) {
    ended_ = true;
    return {};
  }
  const auto head = bytes_at(at_, sizeof(perf_event_header));
  const auto header = header_of(head);
  if (head.empty() && !file_.data_end()) {
    ended_ = true;
    return {};
  }
  if (head.size() < sizeof header || header.size < sizeof header || header.size > end - at_) {
    ended_ = true;
    cut_ = head.size() < sizeof header;
    unread_ += left();
    return {};
  }
  const auto record = bytes_at(at_, header.size);
  if (record.size() < header.size) {
    ended_ = cut_ = true;
    unread_ += file_.data_end() ? end - at_ : record.size();
    return {};
  }
  at_ += header.size;
  return record;
}

// A record that is only partly in a compressed one continues in the next.
std::span<const std::byte> PerfStream::from_unpacked() {
  const auto rest =
      std::span<const std::byte>(*unpacked_).subspan(unpacked_at_, unpacked_end_ - unpacked_at_);
  if (rest.size() < sizeof(perf_event_header)) return {};
  const auto header = header_of(rest);
  if (header.size < sizeof header) {
    unread_ += rest.size();
    unpacked_at_ = unpacked_end_;
    return {};
  }
  if (rest.size() < header.size) return {};
  unpacked_at_ += header.size;
  return rest.first(header.size);
}

void PerfStream::unpack(std::span<const std::byte> record) {
  ++compressed_;
  const auto header = header_of(record);
  auto packed = record.subspan(sizeof header);
  if (header.type == record_compressed2) {
    uint64_t size = 0;
    std::memcpy(&size, packed.data(), std::min(packed.size(), sizeof size));
    packed = packed.subspan(std::min(packed.size(), sizeof size));
    packed = packed.first(std::min<uint64_t>(packed.size(), size));
  }
  if (!unpacker_) unpacker_ = std::make_unique<Unpacker>();
  const PerfPiece next = pieces_.take();
  const size_t keep = unpacked_end_ - unpacked_at_;
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  const size_t room = ZSTD_DStreamOutSize();
  next->resize(std::max(next->size(), keep + room));
  if (keep > 0) std::memcpy(next->data(), unpacked_->data() + unpacked_at_, keep);
  unpacked_ = next;
  unpacked_at_ = 0;
  unpacked_end_ = keep;
  while (true) {
    if (next->size() - unpacked_end_ < room) next->resize(next->size() * 2);
    ZSTD_outBuffer out{next->data() + unpacked_end_, room, 0};
    const size_t result = ZSTD_decompressStream(unpacker_->stream, &out, &in);
    unpacked_end_ += out.pos;
    if (ZSTD_isError(result) != 0 || unpacked_end_ > kMostUnpacked) {
      // After an error the stream yields nothing more: each later record counts as damaged too.
      ++damaged_;
      unread_ += packed.size() - std::min(in.pos, packed.size());
      ZSTD_initDStream(unpacker_->stream);
      return;
    }
    if (in.pos == in.size && out.pos < room) return;
  }
}

// Some records are followed by more data than their size says.
void PerfStream::pass_over(std::span<const std::byte> record) {
  const auto header = header_of(record);
  if (record.size() < sizeof header + 8) return;
  if (header.type == record_auxtrace) {
    uint64_t size = 0;
    std::memcpy(&size, record.data() + sizeof header, sizeof size);
    const uint64_t end = file_.data_end().value_or(~uint64_t{0});
    size = std::min(size, end - std::min(end, at_));
    trace_bytes_ += size;
    at_ += size;
  } else if (header.type == record_tracing_data) {
    uint32_t size = 0;
    std::memcpy(&size, record.data() + sizeof header, sizeof size);
    at_ += (uint64_t{size} + 7) & ~uint64_t{7};
  }
}

}  // namespace phlox::importers
