#include "phlox/sampler/kernel/kernel_records.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "support/kernel_bytes.h"
#include "support/layout_rows.h"

namespace phlox::sampler {
namespace {

bool is_none(const KernelRecord& record) {
  return std::holds_alternative<std::monostate>(record);
}

TEST(KernelRecords, a_sample_has_the_frames_that_it_says) {
  kernel_sample sample = test::kernel_sample_of(7, {});
  const auto bytes = test::kernel_bytes(sample, std::vector<KernelFrame>{{3, 14}, {2, 8}});
  const auto record = parse_kernel_record(bytes);
  const auto& parsed = std::get<KernelSample>(record);
  ASSERT_TRUE(parsed.has_frames());
  ASSERT_EQ(parsed.sample.stack.count, 2U);
  EXPECT_EQ(parsed.frame(0).serial, 3U);
  EXPECT_EQ(parsed.frame(0).instruction, 14U);
  EXPECT_EQ(parsed.frame(1).serial, 2U);
}

TEST(KernelRecords, what_is_cut_off_is_no_record) {
  const auto whole = test::kernel_bytes(test::kernel_sample_of(7, {}), std::vector<KernelFrame>{{3, 14}});
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_TRUE(is_none(parse_kernel_record(std::span(whole).first(size)))) << size;
}

TEST(KernelRecords, more_frames_than_there_can_be_are_no_record) {
  kernel_sample sample = test::kernel_sample_of(7, {});
  sample.stack.flags = KERNEL_FRAMES;
  sample.stack.count = KERNEL_MAX_FRAMES + 1;
  std::vector<std::byte> bytes = test::kernel_bytes(sample, {});
  bytes.resize(bytes.size() + (KERNEL_MAX_FRAMES + 1) * 8);
  EXPECT_TRUE(is_none(parse_kernel_record(bytes)));
}

TEST(KernelRecords, more_left_out_than_is_ever_walked_is_no_record) {
  kernel_sample sample = test::kernel_sample_of(7, {});
  sample.stack.left_out = KERNEL_MOST_STEPS + 1;
  EXPECT_TRUE(is_none(parse_kernel_record(test::kernel_bytes(sample, {}))));
}

TEST(KernelRecords, an_execve_has_an_id_that_the_kernel_gave_and_no_more_text_than_there_is_room_for) {
  kernel_exec exec{};
  exec.ended.head.type = KERNEL_EXEC;
  exec.id = KERNEL_FIRST_BORN;
  const auto bytes = std::as_bytes(std::span(&exec, 1));
  EXPECT_TRUE(std::holds_alternative<kernel_exec>(parse_kernel_record(bytes)));
  exec.arguments = KERNEL_ARGUMENT_BYTES + 1;
  EXPECT_TRUE(is_none(parse_kernel_record(bytes)));
  exec.arguments = 0;
  exec.id = 7;
  EXPECT_TRUE(is_none(parse_kernel_record(bytes)));
}

TEST(KernelRecords, a_time_that_cannot_be_is_no_record) {
  const kernel_sample good = test::kernel_sample_of(7, {});
  EXPECT_FALSE(is_none(parse_kernel_record(test::kernel_bytes(good, {}))));
  for (__u64 kernel_sample::*field : {&kernel_sample::time, &kernel_sample::ran, &kernel_sample::blocked,
                                      &kernel_sample::queued, &kernel_sample::off_since}) {
    kernel_sample bad = good;
    bad.*field = ~__u64{0};
    EXPECT_TRUE(is_none(parse_kernel_record(test::kernel_bytes(bad, {}))));
  }
}

TEST(KernelRecords, a_native_half_has_the_parts_that_it_says) {
  kernel_native half{};
  half.pc = 0x401000;
  const auto bytes = test::kernel_native_bytes(half, std::vector<uint64_t>{11, 12},
                                               std::vector<std::pair<uint64_t, uint64_t>>{{0x7000, 3}},
                                               std::vector<uint64_t>{21, 22, 23});
  const auto record = parse_kernel_record(bytes);
  const auto& native = std::get<KernelNative>(record);
  EXPECT_EQ(native.half.pc, 0x401000U);
  EXPECT_EQ(load<uint64_t>(native.kernel(), 8), 12U);
  EXPECT_EQ(load<uint64_t>(native.starts(), 0), 0x70000003U);
  ASSERT_EQ(native.stack().size(), 24U);
  EXPECT_EQ(load<uint64_t>(native.stack(), 16), 23U);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_TRUE(is_none(parse_kernel_record(std::span(bytes).first(size)))) << size;
}

TEST(KernelRecords, a_native_half_with_more_than_there_can_be_is_no_record) {
  const auto parsed = [](auto set) {
    kernel_native half{};
    half.head = {KERNEL_NATIVE, 1};
    set(half);
    std::vector<std::byte> bytes(size_t{1} << 20);
    std::memcpy(bytes.data(), &half, sizeof half);
    return !is_none(parse_kernel_record(bytes));
  };
  EXPECT_TRUE(parsed([](auto& half) { half.stack = KERNEL_STACK_BYTES; }));
  EXPECT_FALSE(parsed([](auto& half) { half.stack = KERNEL_STACK_BYTES + 1; }));
  EXPECT_FALSE(parsed([](auto& half) { half.kernel = KERNEL_KERNEL_FRAMES + 1; }));
  EXPECT_FALSE(parsed([](auto& half) { half.starts = KERNEL_MAX_STARTS + 1; }));
}

TEST(KernelRecords, a_birth_is_of_a_process_that_the_kernel_numbered) {
  kernel_birth birth{};
  birth.head = {KERNEL_BIRTH, 1};
  birth.id = KERNEL_FIRST_BORN + 3;
  birth.process = 71;
  const auto bytes = std::as_bytes(std::span(&birth, 1));
  EXPECT_EQ(std::get<kernel_birth>(parse_kernel_record(bytes)).process, 71U);
  EXPECT_TRUE(is_none(parse_kernel_record(bytes.first(sizeof birth - 1))));
  birth.id = 3;
  EXPECT_TRUE(is_none(parse_kernel_record(bytes)));
}

TEST(KernelRecords, a_part_that_lies_outside_is_no_record) {
  test::FakeInterpreter fake(*python::find_layout(3, 13, {}));
  const auto good = test::kernel_code_bytes(fake, fake.code("f"), 1);
  EXPECT_FALSE(is_none(parse_kernel_record(good)));
  for (const uint32_t at : {0xffffffffU, static_cast<uint32_t>(good.size())}) {
    auto bad = good;
    kernel_code code{};
    std::memcpy(&code, bad.data(), sizeof code);
    code.part[0].at = at;
    std::memcpy(bad.data(), &code, sizeof code);
    EXPECT_TRUE(is_none(parse_kernel_record(bad)));
  }
}

class KernelCodes : public testing::TestWithParam<const python::Layout*> {};

TEST_P(KernelCodes, a_code_object_is_what_reading_it_from_outside_gives) {
  test::FakeInterpreter fake(*GetParam());
  const RemoteAddress address = fake.make_code({.name = "work",
                                                .qualname = "Büro.work",
                                                .file = "/srv/app/büro.py",
                                                .first_line = 12,
                                                .instructions = 40});
  const auto bytes = test::kernel_code_bytes(fake, address, 5);
  const auto record = parse_kernel_record(bytes);
  const auto capture = capture_of(fake.layout(), std::get<KernelCode>(record));
  ASSERT_NE(capture, nullptr);
  const auto code = python::decode_code(fake.layout(), *capture);
  const auto expected = python::read_code(fake.layout(), fake.memory(), address);
  ASSERT_TRUE(code && expected);
  EXPECT_EQ(code->name, expected->name);
  EXPECT_EQ(code->qualified_name, expected->qualified_name);
  EXPECT_EQ(code->file, expected->file);
  EXPECT_EQ(code->first_line, expected->first_line);
  EXPECT_EQ(code->line_table, expected->line_table);
  EXPECT_FALSE(code->cut);
}

TEST_P(KernelCodes, a_name_that_did_not_fit_is_cut_and_says_so) {
  test::FakeInterpreter fake(*GetParam());
  const RemoteAddress address = fake.make_code({.name = std::string(2000, 'n')});
  const auto bytes = test::kernel_code_bytes(fake, address, 5);
  const auto record = parse_kernel_record(bytes);
  const auto capture = capture_of(fake.layout(), std::get<KernelCode>(record));
  ASSERT_NE(capture, nullptr);
  const auto code = python::decode_code(fake.layout(), *capture);
  ASSERT_TRUE(code);
  EXPECT_TRUE(code->cut);
  EXPECT_TRUE(code->name.starts_with("nnnn"));
  EXPECT_TRUE(code->name.ends_with("…"));
  EXPECT_LT(code->name.size(), size_t{KERNEL_NAME_BYTES});
}

INSTANTIATE_TEST_SUITE_P(Versions, KernelCodes,
                         testing::ValuesIn(test::layout_rows([](const python::Layout& row) {
                           return row.major == 3 && row.minor >= 8;
                         })),
                         test::row_name);

// `name`: as the kernel sends it.
process::NamedFile file_in(kernel_wait_target wait_target, std::string_view name) {
  const auto bytes = test::kernel_wait_target_bytes(wait_target, name);
  const KernelRecord record = parse_kernel_record(bytes);
  return file_of(std::get<KernelWaitTarget>(record));
}

TEST(KernelRecords, a_file_has_its_path_from_the_root_on) {
  using namespace std::string_view_literals;
  kernel_wait_target wait_target{};
  wait_target.mode = S_IFREG;
  wait_target.flags = KERNEL_WAIT_TARGET_CUT | KERNEL_WAIT_TARGET_REMOVED;
  const auto file = file_in(wait_target, "app.log\0log\0var\0"sv);
  EXPECT_EQ(file.name, "/var/log/app.log");
  EXPECT_EQ(file.file.kind, process::OpenFile::Kind::file);
  EXPECT_TRUE(file.file.cut && file.file.removed);
  wait_target.mode = S_IFCHR;
  EXPECT_EQ(file_in(wait_target, "3\0pts\0dev\0"sv).file.kind, process::OpenFile::Kind::device);
  EXPECT_EQ(file_in(wait_target, "memfd:cache\0"sv).name, "memfd:cache");
  EXPECT_EQ(file_in(wait_target, "no end"sv).name, "/no end");
  EXPECT_EQ(file_in(wait_target, ""sv).name, "");
}

TEST(KernelRecords, sockets_and_pipes_are_those_of_proc) {
  using namespace std::string_view_literals;
  kernel_wait_target wait_target{};
  wait_target.magic = PIPEFS_MAGIC;
  wait_target.mode = S_IFIFO;
  wait_target.access = 1;
  wait_target.inode = 4711;
  auto file = file_in(wait_target, "");
  EXPECT_EQ(file.file.kind, process::OpenFile::Kind::pipe);
  EXPECT_EQ(file.file.inode, 4711U);
  EXPECT_TRUE(file.file.reads && !file.file.writes);
  wait_target.magic = SOCKFS_MAGIC;
  wait_target.family = 2;
  wait_target.peer_port = 5432;
  wait_target.peer[0] = 10;
  wait_target.peer[3] = 5;
  file = file_in(wait_target, "");
  EXPECT_EQ(process::address_words(2, file.file.peer), "10.0.0.5:5432");
  EXPECT_FALSE(file.file.accepts);
  wait_target.state = 10;
  EXPECT_TRUE(file_in(wait_target, "").file.accepts);
  wait_target.family = 1;
  EXPECT_EQ(file_in(wait_target, "/run/app.sock"sv).name, "/run/app.sock");
  EXPECT_EQ(file_in(wait_target, "\0abstract"sv).name, "@abstract");
  wait_target.magic = ANON_INODE_FS_MAGIC;
  EXPECT_EQ(file_in(wait_target, "[eventfd]\0"sv), process::parse_descriptor_link("anon_inode:[eventfd]"));
}

TEST(KernelRecords, a_name_that_is_not_there_is_no_record) {
  kernel_wait_target wait_target{};
  wait_target.mode = S_IFREG;
  const auto whole = test::kernel_wait_target_bytes(wait_target, "name");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_TRUE(is_none(parse_kernel_record(std::span(whole).first(size)))) << size;
  EXPECT_TRUE(is_none(parse_kernel_record(
      test::kernel_wait_target_bytes(wait_target, std::string(KERNEL_PATH_BYTES + 1, 'x')))));
}

}  // namespace
}  // namespace phlox::sampler
