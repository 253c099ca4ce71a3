#include "phlox/importers/perf_file.h"

#include <elf.h>
#include <gtest/gtest.h>

#include "support/perf_builder.h"

namespace phlox::importers {
namespace {

using test::PerfBuilder;
using test::PerfBytes;

PerfFile open(const std::vector<std::byte>& bytes) {
  MemoryInput input(bytes);
  auto file = PerfFile::open(input);
  EXPECT_TRUE(file.has_value());
  return *std::move(file);
}

std::vector<std::byte> string(std::string_view text) {
  return PerfBytes().counted(text).bytes;
}

TEST(PerfFile, events_and_facts_are_read) {
  PerfBuilder perf;
  perf.clock();
  perf.event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES).sample_max_stack = 50;
  perf.feature(3, string("server"))
      .feature(4, string("6.1.0"))
      .feature(5, string("6.1.187"))
      .feature(6, string("x86_64"));
  perf.feature(11, PerfBytes().put(uint32_t{2}).counted("perf").counted("record").bytes);
  perf.end_round();
  const PerfFile file = open(perf.build());
  EXPECT_FALSE(file.is_pipe());
  ASSERT_EQ(file.events().size(), 2u);
  EXPECT_EQ(file.events()[0].name, "cpu-clock");
  EXPECT_TRUE(file.events()[0].is_clock());
  EXPECT_EQ(file.events()[1].name, "cache-misses");
  EXPECT_FALSE(file.events()[1].is_clock());
  EXPECT_EQ(file.events()[1].most_frames, 50);
  EXPECT_EQ(file.facts().host, "server");
  EXPECT_EQ(file.facts().kernel_release, "6.1.0");
  EXPECT_EQ(file.facts().perf_version, "6.1.187");
  EXPECT_EQ(file.facts().command_line, "perf record");
  EXPECT_EQ(file.machine(), EM_X86_64);
}

TEST(PerfFile, a_record_belongs_to_the_event_of_its_identifier) {
  PerfBuilder perf;
  perf.clock();
  perf.event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
  const PerfFile file = open(perf.build());
  const auto sample = PerfBuilder::sample(1, 1, 5, 0x1000, {}, 102);
  ASSERT_NE(file.event_of(sample), nullptr);
  EXPECT_EQ(file.event_of(sample)->name, "cycles");
  PerfBytes comm(PERF_RECORD_COMM);
  comm.put(int32_t{1}, 1).text("x");
  const auto named = PerfBuilder::trail(comm, 1, 1, 5, 102).done();
  ASSERT_NE(file.event_of(named), nullptr);
  EXPECT_EQ(file.event_of(named)->name, "cycles");
  EXPECT_EQ(file.event_of(PerfBuilder::sample(1, 1, 5, 0x1000, {}, 999)), nullptr);
}

TEST(PerfFile, names_of_events_come_from_their_description) {
  PerfBuilder perf;
  perf.event(PERF_TYPE_TRACEPOINT, 311);
  perf.feature(12, PerfBytes()
                       .put(uint32_t{1}, uint32_t{8})
                       .put(uint64_t{0})
                       .put(uint32_t{1})
                       .counted("sched:sched_switch")
                       .put(uint64_t{101})
                       .bytes);
  perf.end_round();
  const PerfFile file = open(perf.build());
  EXPECT_TRUE(file.events()[0].is_sched_switch());
}

TEST(PerfFile, build_ids_are_as_long_as_they_say) {
  const auto entry = [](uint16_t misc, uint8_t size, std::string_view path) {
    PerfBytes b(0, misc);
    b.put(int32_t{-1});
    for (uint8_t i = 0; i < 20; ++i) b.put(static_cast<uint8_t>(i < size ? 0xa0 + i : 0));
    b.put(size, uint8_t{0}, uint8_t{0}, uint8_t{0}).text(path);
    return b.done();
  };
  PerfBuilder perf;
  perf.clock().feature(2, PerfBytes()
                              .raw(entry(0x8000, 16, "/short"))
                              .raw(entry(0, 20, "/long"))
                              .raw(entry(0x8000, 8, "/short"))
                              .bytes);
  perf.end_round();
  const PerfFile file = open(perf.build());
  EXPECT_EQ(file.facts().build_ids.at("/short"),
            (std::vector<std::string>{"a0a1a2a3a4a5a6a7a8a9aaabacadaeaf", "a0a1a2a3a4a5a6a7"}));
  EXPECT_EQ(file.facts().build_ids.at("/long").at(0).size(), 40u);
}

TEST(PerfFile, a_pipe_has_the_same_in_records) {
  PerfBuilder perf;
  perf.clock().feature(3, string("server"));
  const auto bytes = perf.build_pipe();
  PerfFile file = open(bytes);
  EXPECT_TRUE(file.is_pipe());
  EXPECT_TRUE(file.events().empty());
  size_t at = 16;
  while (at < bytes.size()) {
    uint16_t size = 0;
    std::memcpy(&size, bytes.data() + at + 6, 2);
    EXPECT_TRUE(file.take(std::span(bytes).subspan(at, size)));
    at += size;
  }
  ASSERT_EQ(file.events().size(), 1u);
  EXPECT_EQ(file.facts().host, "server");
  EXPECT_NE(file.event_of(PerfBuilder::sample(1, 1, 5, 0x1000)), nullptr);
}

TEST(PerfFile, a_recorder_that_was_killed_left_no_size_and_no_facts) {
  PerfBuilder perf;
  perf.clock();
  const PerfFile file = open(perf.build(0));
  EXPECT_FALSE(file.data_end().has_value());
  EXPECT_EQ(file.events().size(), 1u);
}

TEST(PerfFile, other_files_are_refused_with_words) {
  const auto error_of = [](std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    MemoryInput input(bytes);
    return PerfFile::open(input).error().kind;
  };
  EXPECT_EQ(error_of("2ELIFREP and so on"), ErrorKind::input);
  EXPECT_EQ(error_of("PERFFILE and so on"), ErrorKind::input);
  EXPECT_EQ(error_of("PERFILE2"), ErrorKind::input);
  EXPECT_EQ(error_of(""), ErrorKind::input);
}

TEST(PerfFile, the_machine_is_recognised_by_the_registers_if_not_named) {
  PerfBuilder perf;
  perf.event(PERF_TYPE_SOFTWARE, 0, PerfBuilder::kPlain | PERF_SAMPLE_REGS_USER).sample_regs_user =
      uint64_t{1} << 32;
  EXPECT_EQ(open(perf.build()).machine(), EM_AARCH64);
}

}  // namespace
}  // namespace phlox::importers
