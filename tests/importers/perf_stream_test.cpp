#include "phlox/importers/perf_stream.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include "support/perf_builder.h"

namespace phlox::importers {
namespace {

using test::PerfBuilder;
using test::PerfBytes;

struct Outcome {
  std::vector<uint32_t> types;
  uint64_t unread = 0, damaged = 0, compressed = 0;
  bool cut = false;
};

Outcome read(const std::vector<std::byte>& bytes) {
  MemoryInput input(bytes);
  auto file = PerfFile::open(input);
  EXPECT_TRUE(file.has_value());
  PerfStream stream(input, *file);
  Outcome out;
  for (auto record = stream.next(); !record.empty(); record = stream.next()) {
    uint32_t type = 0;
    std::memcpy(&type, record.data(), 4);
    out.types.push_back(type);
  }
  out.unread = stream.unread();
  out.damaged = stream.damaged();
  out.compressed = stream.compressed();
  out.cut = stream.cut();
  return out;
}

// One zstd stream over several pieces, each flushed, as perf writes it.
std::vector<std::vector<std::byte>> packed(const std::vector<std::vector<std::byte>>& pieces) {
  ZSTD_CStream* stream = ZSTD_createCStream();
  ZSTD_initCStream(stream, 1);
  std::vector<std::vector<std::byte>> out;
  for (const auto& piece : pieces) {
    std::vector<std::byte> room(ZSTD_compressBound(piece.size()) + 64);
    ZSTD_inBuffer in{piece.data(), piece.size(), 0};
    ZSTD_outBuffer to{room.data(), room.size(), 0};
    ZSTD_compressStream(stream, &to, &in);
    ZSTD_flushStream(stream, &to);
    room.resize(to.pos);
    out.push_back(room);
  }
  ZSTD_freeCStream(stream);
  return out;
}

std::vector<std::byte> sample(uint64_t time) {
  return PerfBuilder::sample(1, 1, time, 0x1000);
}

TEST(PerfStream, records_come_in_the_order_of_the_file) {
  PerfBuilder perf;
  perf.clock().add(PerfBuilder::comm(1, 1, "app")).add(sample(5)).end_round();
  const Outcome out = read(perf.build());
  EXPECT_EQ(out.types, (std::vector<uint32_t>{PERF_RECORD_COMM, PERF_RECORD_SAMPLE, kFinishedRound}));
  EXPECT_EQ(out.unread, 0u);
  EXPECT_FALSE(out.cut);
}

TEST(PerfStream, compressed_records_go_on_in_the_next_one) {
  std::vector<std::byte> all;
  for (uint64_t i = 0; i < 10; ++i) {
    const auto record = sample(i);
    all.insert(all.end(), record.begin(), record.end());
  }
  const auto middle = static_cast<ptrdiff_t>(all.size() / 2 + 3);
  const auto pieces = packed({{all.begin(), all.begin() + middle}, {all.begin() + middle, all.end()}});
  PerfBuilder perf;
  perf.clock().add(PerfBytes(81).raw(pieces[0]).done());
  // As perf 6.16 writes it: a length, and filled up.
  perf.add(PerfBytes(83).put(uint64_t{pieces[1].size()}).raw(pieces[1]).put(uint32_t{0xdead}).done());
  const Outcome out = read(perf.build());
  EXPECT_EQ(out.types, std::vector<uint32_t>(10, PERF_RECORD_SAMPLE));
  EXPECT_EQ(out.compressed, 2u);
  EXPECT_EQ(out.damaged, 0u);
}

TEST(PerfStream, damaged_compression_is_counted_and_the_rest_is_read) {
  PerfBuilder perf;
  perf.clock().add(PerfBytes(81).put(uint64_t{0x123456789}).done()).add(sample(5));
  const Outcome out = read(perf.build());
  EXPECT_EQ(out.types.size(), 1u);
  EXPECT_EQ(out.damaged, 1u);
}

TEST(PerfStream, nothing_is_compressed_twice) {
  const auto inner = packed({sample(5)});
  const auto outer = packed({PerfBytes(81).raw(inner[0]).done()});
  PerfBuilder perf;
  perf.clock().add(PerfBytes(81).raw(outer[0]).done());
  const Outcome out = read(perf.build());
  EXPECT_TRUE(out.types.empty());
  EXPECT_EQ(out.damaged, 1u);
}

TEST(PerfStream, a_cut_file_gives_what_is_there) {
  PerfBuilder perf;
  perf.clock().add(sample(5)).add(sample(6));
  auto bytes = perf.build();
  bytes.resize(bytes.size() - 10);
  const Outcome out = read(bytes);
  EXPECT_EQ(out.types.size(), 1u);
  EXPECT_TRUE(out.cut);
  EXPECT_GT(out.unread, 0u);
}

// Found by fuzzing: there are no bytes then, not even an address of any.
TEST(PerfStream, records_that_begin_behind_the_files_end_are_none) {
  PerfBuilder perf;
  perf.clock().add(sample(5));
  auto bytes = perf.build();
  const uint64_t beyond = bytes.size() + 1000;
  std::memcpy(bytes.data() + 40, &beyond, sizeof beyond);
  const Outcome out = read(bytes);
  EXPECT_TRUE(out.types.empty());
  EXPECT_TRUE(out.cut);
}

TEST(PerfStream, of_a_killed_recorder_the_records_are_read_to_the_end) {
  PerfBuilder perf;
  perf.clock().add(sample(5)).add(sample(6));
  const Outcome out = read(perf.build(0));
  EXPECT_EQ(out.types.size(), 2u);
  EXPECT_FALSE(out.cut);
}

TEST(PerfStream, behind_a_record_that_makes_no_sense_nothing_is_guessed) {
  PerfBuilder perf;
  perf.clock().add(sample(5)).add(PerfBytes().put(uint32_t{9}, uint32_t{0}).bytes).add(sample(6));
  const Outcome out = read(perf.build());
  EXPECT_EQ(out.types.size(), 1u);
  EXPECT_EQ(out.unread, 8 + sample(6).size());
}

TEST(PerfStream, hardware_traces_are_passed_over) {
  PerfBuilder perf;
  const std::vector<std::byte> trace(100, std::byte{0x55});
  perf.clock()
      .add(PerfBytes(71).put(uint64_t{100}, 0, 0).put(uint32_t{0}, 0, 0, 0).done())
      .add(trace)
      .add(sample(6));
  const Outcome out = read(perf.build());
  EXPECT_EQ(out.types, std::vector<uint32_t>{PERF_RECORD_SAMPLE});
}

TEST(PerfStream, a_pipe_describes_its_events_on_the_way) {
  PerfBuilder perf;
  perf.clock().add(sample(5));
  EXPECT_EQ(read(perf.build_pipe()).types, std::vector<uint32_t>{PERF_RECORD_SAMPLE});
}

}  // namespace
}  // namespace phlox::importers
