#include "phlox/base/regular_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace phlox {
namespace {

namespace fs = std::filesystem;

class RegularFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "regular_file_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string folder_;
};

TEST_F(RegularFile, one_is_opened_for_reading_by_its_name_or_a_link) {
  const std::string file = folder_ + "/file", link = folder_ + "/link";
  std::ofstream(file) << "text";
  fs::create_symlink("file", link);
  for (const std::string& path : {file, link}) {
    const Descriptor opened = open_regular(path);
    char text[5] = {};
    ASSERT_TRUE(opened) << path;
    EXPECT_EQ(::read(opened.get(), text, sizeof text), 4) << path;
    EXPECT_STREQ(text, "text");
  }
}

// Somebody who waits to write into a pipe learns that it was opened: he may not.
TEST_F(RegularFile, a_pipe_is_not_even_opened) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(open_regular(pipe));
  EXPECT_FALSE(open_if_regular(Descriptor(::open(pipe.c_str(), O_PATH | O_CLOEXEC))));
}

TEST_F(RegularFile, what_a_user_may_not_read_is_not_opened_with_its_rights) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  const std::string file = folder_ + "/file";
  std::ofstream(file) << "text";
  ASSERT_EQ(::chmod(folder_.c_str(), 0711), 0);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const FileUser nobody{65534, 65534};
  EXPECT_FALSE(open_regular(file, nobody));
  EXPECT_TRUE(open_regular(file));
  ASSERT_EQ(::chmod(file.c_str(), 0604), 0);
  EXPECT_TRUE(open_regular(file, nobody));
}

TEST_F(RegularFile, folders_devices_and_nothing_are_none) {
  EXPECT_FALSE(open_regular(folder_));
  EXPECT_FALSE(open_regular("/dev/null"));
  EXPECT_FALSE(open_regular(folder_ + "/none"));
  EXPECT_FALSE(open_if_regular(Descriptor()));
}

}  // namespace
}  // namespace phlox
