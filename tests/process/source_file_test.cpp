#include "phlox/process/source_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace phlox::process {
namespace {

class SourceFile : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/phlox-source-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::ofstream(folder_ / "app.py") << "a = 1\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(SourceFile, is_read_by_its_absolute_or_relative_name) {
  EXPECT_EQ(read_file_of(getpid(), folder_ / "app.py", 100, std::nullopt), "a = 1\n");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  EXPECT_EQ(read_file_of(getpid(), "app.py", 100, std::nullopt), "a = 1\n");
  std::filesystem::current_path(before);
}

TEST_F(SourceFile, is_read_with_the_rights_of_the_user) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  const auto file = folder_ / "app.py";
  const FileUser nobody{65534, 65534};
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  EXPECT_FALSE(read_file_of(getpid(), file, 100, nobody));
  EXPECT_TRUE(read_file_of(getpid(), file, 100, std::nullopt));
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  EXPECT_EQ(read_file_of(getpid(), file, 100, nobody), "a = 1\n");
}

TEST_F(SourceFile, what_is_no_ordinary_short_file_is_not_read) {
  EXPECT_FALSE(read_file_of(getpid(), folder_ / "app.py", 5, std::nullopt));
  EXPECT_FALSE(read_file_of(getpid(), folder_, 100, std::nullopt));
  EXPECT_FALSE(read_file_of(getpid(), folder_ / "none.py", 100, std::nullopt));
  EXPECT_FALSE(read_file_of(getpid(), "", 100, std::nullopt));
  EXPECT_FALSE(read_file_of(getpid(), "<string>", 100, std::nullopt));
  EXPECT_FALSE(read_file_of(getpid(), "/dev/zero", 100, std::nullopt));
  EXPECT_FALSE(read_file_of(getpid(), "/proc/self/exe", size_t{1} << 30, std::nullopt));  // a magic link
  EXPECT_FALSE(read_file_of(0x7ffffff0, folder_ / "app.py", 100, std::nullopt));
}

}  // namespace
}  // namespace phlox::process
