#include "phlox/elf/file_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "phlox/base/descriptor.h"

namespace phlox::elf {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;

bool is_filled(std::span<const std::byte> bytes, char with) {
  return !bytes.empty() &&
         std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b == std::byte(with); });
}

class FileBytesTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = Descriptor(::open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!file_) GTEST_SKIP() << "no file without a name here";
  }
  void write(uint64_t size, char with = 'x') {
    const std::string text(size, with);
    ASSERT_EQ(::pwrite(file_.get(), text.data(), size, 0), static_cast<ssize_t>(size));
  }

  Descriptor file_;
};

TEST_F(FileBytesTest, gives_the_parts_of_a_file) {
  write(kMegabyte);
  ASSERT_EQ(::pwrite(file_.get(), "abc", 3, 600'000), 3);
  const auto bytes = FileBytes::read(file_.get(), "it");
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(bytes->size(), kMegabyte);
  const auto part = bytes->part(600'000, 3);
  ASSERT_EQ(part.size(), 3u);
  EXPECT_EQ(part[1], std::byte('b'));
  EXPECT_TRUE(bytes->part(kMegabyte - 1, 2).empty());
  EXPECT_TRUE(bytes->part(~uint64_t{0}, 2).empty());
  EXPECT_EQ(bytes->bytes().size(), kMegabyte);
  std::byte copied[3];
  ASSERT_TRUE(bytes->copy(600'000, copied));
  EXPECT_EQ(copied[2], std::byte('c'));
  EXPECT_FALSE(bytes->copy(kMegabyte - 1, copied));
}

TEST_F(FileBytesTest, a_file_that_is_cut_short_while_it_is_open_has_zeros_there) {
  write(kMegabyte);
  const auto bytes = FileBytes::read(file_.get(), "it");
  ASSERT_TRUE(bytes.has_value());
  const auto before = bytes->part(0, 4096);
  ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
  EXPECT_TRUE(is_filled(before, 'x'));
  EXPECT_TRUE(is_filled(bytes->part(kMegabyte / 2, 4096), '\0'));
}

TEST_F(FileBytesTest, what_was_read_stays_when_the_file_changes) {
  write(kMegabyte);
  const auto bytes = FileBytes::read(file_.get(), "it");
  ASSERT_TRUE(bytes.has_value());
  const auto part = bytes->part(0, 4096);
  write(kMegabyte, 'y');
  EXPECT_TRUE(is_filled(part, 'x'));
  EXPECT_TRUE(is_filled(bytes->part(0, 4096), 'x'));
}

TEST_F(FileBytesTest, no_part_is_larger_than_the_limit) {
  ASSERT_EQ(::ftruncate(file_.get(), int64_t{8} << 30), 0);
  const auto bytes = FileBytes::read(file_.get(), "it");
  ASSERT_TRUE(bytes.has_value());
  EXPECT_TRUE(bytes->part(0, FileBytes::kMostPart + 1).empty());
  EXPECT_EQ(bytes->part(uint64_t{7} << 30, 4096).size(), 4096u);
}

TEST_F(FileBytesTest, the_files_of_one_target_share_its_budget) {
  write(4 * kMegabyte);
  const auto budget = std::make_shared<ReadBudget>(3 * kMegabyte);
  const auto one = FileBytes::read(file_.get(), "one", budget),
             two = FileBytes::read(file_.get(), "two", budget);
  ASSERT_TRUE(one.has_value() && two.has_value());
  EXPECT_EQ(one->part(0, 2 * kMegabyte).size(), 2 * kMegabyte);
  EXPECT_EQ(one->part(4096, kMegabyte).size(), kMegabyte) << "was read before";
  EXPECT_TRUE(two->part(0, 2 * kMegabyte).empty());
  EXPECT_EQ(two->part(0, kMegabyte).size(), kMegabyte);
  std::byte byte[1];
  EXPECT_FALSE(two->copy(0, byte));
  ASSERT_EQ(::ftruncate(file_.get(), 100), 0);
  EXPECT_FALSE(FileBytes::read(file_.get(), "small", budget).has_value());
}

TEST_F(FileBytesTest, is_for_files_with_contents_alone) {
  EXPECT_FALSE(FileBytes::read(file_.get(), "empty").has_value());
  const Descriptor device(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(FileBytes::read(device.get(), "device").has_value());
}

}  // namespace
}  // namespace phlox::elf
