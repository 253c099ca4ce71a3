#include "phlox/perf/records.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <array>
#include <cstring>
#include <string>

namespace phlox::perf {
namespace {

class Bytes {
 public:
  explicit Bytes(uint32_t type, uint16_t misc = 0) {
    put(type);
    put(misc);
    put(uint16_t{0});
  }
  // One number after the other, all of the first one's type.
  template <class T, class... More>
  Bytes& put(T value, More... more) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    (put<T>(static_cast<T>(more)), ...);
    return *this;
  }
  Bytes& text(const std::string& s) {
    for (const char c : s) put(c);
    put('\0');
    while (bytes.size() % 8 != 0) put('\0');
    return *this;
  }
  std::vector<std::byte>& done() {
    const auto size = static_cast<uint16_t>(bytes.size());
    std::memcpy(bytes.data() + 6, &size, 2);
    return bytes;
  }
  std::vector<std::byte> bytes;
};

// The thread that a record is about: pid 10, tid 11.
Bytes of_thread(uint32_t type, uint16_t misc = 0) {
  return Bytes(type, misc).put<int32_t>(10, 11);
}

// A sample of pid 10, tid 11, time 12, CPU 3, as far as its registers.
Bytes sample_head(uint64_t ip, uint64_t period) {
  return Bytes(PERF_RECORD_SAMPLE)
      .put(ip)
      .put<int32_t>(10, 11)
      .put<uint64_t>(12)
      .put<uint32_t>(3, 0)
      .put(period);
}

// With registers bx, fp, sp, pc in the order of their numbers; 16 bytes asked for, 8 of them there.
Bytes sample() {
  return sample_head(0x401000, 1000)
      .put<uint64_t>(PERF_SAMPLE_REGS_ABI_64, 0xb0b, 0x7ffe0010, 0x7ffe0000, 0x401000)
      .put<uint64_t>(16, 0x402000, 0, 8);
}

TEST(PerfRecords, sample_with_registers_and_stack) {
  Bytes b = sample();
  const Record record = parse_record(b.done(), native_shape(EM_X86_64));
  const auto& s = std::get<SampleRecord>(record);
  EXPECT_EQ(s.pid, 10);
  EXPECT_EQ(s.tid, 11);
  EXPECT_EQ(s.time, 12);
  EXPECT_EQ(s.cpu, 3u);
  EXPECT_EQ(s.period, 1000u);
  EXPECT_TRUE(s.has_registers);
  EXPECT_EQ(s.registers.pc, RemoteAddress(0x401000));
  EXPECT_EQ(s.registers.sp, RemoteAddress(0x7ffe0000));
  EXPECT_EQ(s.registers.fp, 0x7ffe0010u);
  EXPECT_EQ(s.registers.bx, 0xb0bu);
  EXPECT_TRUE(s.registers.bx_known);
  EXPECT_FALSE(s.registers.lr_known);
  EXPECT_EQ(s.stack.size(), 8u);
}

TEST(PerfRecords, thread_without_user_registers) {
  Bytes b = sample_head(1, 1).put<uint64_t>(PERF_SAMPLE_REGS_ABI_NONE, 0);
  const Record record = parse_record(b.done(), native_shape(EM_X86_64));
  EXPECT_FALSE(std::get<SampleRecord>(record).has_registers);
  EXPECT_TRUE(std::get<SampleRecord>(record).stack.empty());
}

TEST(PerfRecords, aarch64_link_register_is_taken) {
  Bytes b = sample_head(1, 1).put<uint64_t>(PERF_SAMPLE_REGS_ABI_64, 29, 30, 31, 32, 0);
  const Record record = parse_record(b.done(), native_shape(EM_AARCH64));
  const auto& r = std::get<SampleRecord>(record).registers;
  EXPECT_EQ(r.fp, 29u);
  EXPECT_EQ(r.lr, 30u);
  EXPECT_EQ(r.sp, RemoteAddress(31));
  EXPECT_EQ(r.pc, RemoteAddress(32));
  EXPECT_TRUE(r.lr_known);
  EXPECT_FALSE(r.bx_known);
}

TEST(PerfRecords, sample_cut_or_lying_about_a_length_is_damaged) {
  const Shape shape = native_shape(EM_X86_64);
  const size_t whole = sample().bytes.size();
  for (size_t n = 8; n < whole; ++n) {
    Bytes b = sample();
    b.bytes.resize(n);
    EXPECT_TRUE(std::get<OtherRecord>(parse_record(b.done(), shape)).damaged) << n;
  }
  Bytes b = sample();
  const uint64_t huge = ~uint64_t{0};
  std::memcpy(b.bytes.data() + whole - 32, &huge, 8);  // the size of the dump
  EXPECT_TRUE(std::get<OtherRecord>(parse_record(b.done(), shape)).damaged);
}

TEST(PerfRecords, kernel_s_part_of_a_call_chain) {
  Bytes b = sample_head(1, 1);
  constexpr auto kKernel = static_cast<uint64_t>(PERF_CONTEXT_KERNEL);
  constexpr auto kUser = static_cast<uint64_t>(PERF_CONTEXT_USER);
  b.put<uint64_t>(6, kKernel, 0xffffffff81000010, 0xffffffff81000020, kUser, 0x401000, 0x402000);
  b.put<uint64_t>(PERF_SAMPLE_REGS_ABI_NONE, 0);
  Shape shape = native_shape(EM_X86_64);
  shape.sample_type |= PERF_SAMPLE_CALLCHAIN;
  const Record record = parse_record(b.done(), shape);
  const auto& chain = std::get<SampleRecord>(record).callchain;
  std::array<uint64_t, 4> found{};
  ASSERT_EQ(parse_kernel_chain(chain, found), 2u);
  EXPECT_EQ(found[0], 0xffffffff81000010);
  EXPECT_EQ(found[1], 0xffffffff81000020);
  EXPECT_EQ(parse_kernel_chain(chain, std::span(found).first(1)), 1u);
  EXPECT_EQ(parse_kernel_chain({}, found), 0u);
  EXPECT_EQ(parse_kernel_chain(chain.subspan(8), found), 0u);  // nothing says whose these are
}

TEST(PerfRecords, switch_has_thread_time_and_reason) {
  Bytes b = of_thread(PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
  b.put<uint64_t>(12).put<uint32_t>(3, 0);
  const Record record = parse_record(b.done(), native_shape(EM_X86_64));
  const auto& s = std::get<SwitchRecord>(record);
  EXPECT_EQ(s.tid, 11);
  EXPECT_EQ(s.time, 12);
  EXPECT_EQ(s.cpu, 3u);
  EXPECT_TRUE(s.out);
  EXPECT_TRUE(s.preempted);
}

TEST(PerfRecords, maps_names_tasks_and_losses) {
  const Shape shape = native_shape(EM_X86_64);
  Bytes map = of_thread(PERF_RECORD_MMAP2).put<uint64_t>(0x1000, 0x2000, 0x3000);
  map.put<uint32_t>(8, 1).put<uint64_t>(77, 0).put<uint32_t>(5, 2).text("/lib/x.so");
  const Record m = parse_record(map.done(), shape);
  EXPECT_EQ(std::get<MapRecord>(m).path, "/lib/x.so");
  EXPECT_EQ(std::get<MapRecord>(m).offset, 0x3000u);
  EXPECT_TRUE(std::get<MapRecord>(m).executable);
  Bytes name = of_thread(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC).text("python3");
  const Record n = parse_record(name.done(), shape);
  EXPECT_EQ(std::get<NameRecord>(n).name, "python3");
  EXPECT_TRUE(std::get<NameRecord>(n).exec);
  Bytes exit(PERF_RECORD_EXIT);
  exit.put<int32_t>(10, 1, 11, 10).put<uint64_t>(99);
  const Record e = parse_record(exit.done(), shape);
  EXPECT_EQ(std::get<TaskRecord>(e).tid, 11);
  EXPECT_TRUE(std::get<TaskRecord>(e).exit);
  Bytes lost(PERF_RECORD_LOST);
  lost.put<uint64_t>(1, 42);
  EXPECT_EQ(std::get<LostRecord>(parse_record(lost.done(), shape)).count, 42u);
  Bytes strange(4711);
  EXPECT_FALSE(std::get<OtherRecord>(parse_record(strange.done(), shape)).damaged);
}

TEST(PerfRing, record_that_wraps_is_put_together) {
  Bytes lost(PERF_RECORD_LOST);
  lost.put<uint64_t>(1, 42);
  const auto one = lost.done();
  std::vector<std::byte> ring(64);
  const uint64_t tail = 64 * 5 + 16;
  for (size_t i = 0; i < 2 * one.size(); ++i) ring[(tail + i) % 64] = one[i % one.size()];
  RingReader reader(ring, tail, tail + 2 * one.size());
  for (int i = 0; i < 2; ++i) {
    const auto bytes = reader.next();
    ASSERT_EQ(bytes.size(), one.size());
    EXPECT_EQ(std::get<LostRecord>(parse_record(bytes, native_shape(EM_X86_64))).count, 42u);
  }
  EXPECT_TRUE(reader.next().empty());
  EXPECT_FALSE(reader.damaged());
  EXPECT_EQ(reader.tail(), tail + 2 * one.size());
}

TEST(PerfRing, positions_or_sizes_that_make_no_sense_end_it) {
  std::vector<std::byte> ring(64);
  RingReader zero(ring, 0, 32);  // a record of size 0
  EXPECT_TRUE(zero.next().empty());
  EXPECT_TRUE(zero.damaged());
  RingReader backwards(ring, 32, 0);
  EXPECT_TRUE(backwards.next().empty());
  EXPECT_TRUE(backwards.damaged());
  RingReader beyond(ring, 0, 65);
  EXPECT_TRUE(beyond.next().empty());
  RingReader short_header(ring, 0, 4);
  EXPECT_TRUE(short_header.next().empty());
  EXPECT_TRUE(short_header.damaged());
}

// What only files hold: counters, a tracepoint's fields, branches, which event it was.
TEST(PerfRecords, parts_that_are_not_asked_for_live_are_found_or_passed_over) {
  Shape shape;
  shape.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_READ | PERF_SAMPLE_RAW |
                      PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_STACK_USER;
  shape.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED;
  shape.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX;
  Bytes b(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
  b.put<uint64_t>(77, 0x401000);
  b.put<uint64_t>(2, /*enabled*/ 9, /*value, id*/ 1, 77, 2, 78);
  b.put<uint32_t>(4, 0xabcdef01);
  b.put<uint64_t>(1, /*index*/ 0, /*from, to, flags*/ 0x10, 0x20, 0);
  b.put<uint64_t>(8, 0x1234, 8);
  const auto bytes = b.done();
  EXPECT_EQ(identifier_of(bytes), 77u);
  const Record record = parse_record(bytes, shape);
  const auto& s = std::get<SampleRecord>(record);
  EXPECT_EQ(s.id, 77u);
  EXPECT_EQ(s.ip, 0x401000u);
  EXPECT_EQ(s.mode, PERF_RECORD_MISC_KERNEL);
  EXPECT_EQ(s.raw.size(), 4u);
  EXPECT_EQ(s.branches.size(), sizeof(perf_branch_entry));
  EXPECT_EQ(s.stack.size(), 8u);
  EXPECT_EQ(s.stack_asked, 8u);
}

TEST(PerfRecords, a_group_larger_than_its_record_is_damaged) {
  Shape shape;
  shape.sample_type = PERF_SAMPLE_READ;
  shape.read_format = PERF_FORMAT_GROUP;
  Bytes b(PERF_RECORD_SAMPLE);
  b.put<uint64_t>(uint64_t{1} << 61, 0);
  EXPECT_TRUE(std::get<OtherRecord>(parse_record(b.done(), shape)).damaged);
}

TEST(PerfRecords, an_identifier_is_last_in_records_other_than_samples) {
  Bytes b(PERF_RECORD_COMM);
  b.put<int32_t>(10, 11).text("x").put<uint64_t>(78);
  EXPECT_EQ(identifier_of(b.done()), 78u);
  EXPECT_EQ(identifier_of({}), 0u);
}

}  // namespace
}  // namespace phlox::perf
