#include "phlox/base/new_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace phlox {
namespace {

namespace fs = std::filesystem;

class InFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "new_file_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  static void write(NewFile& file, std::string_view text) {
    ASSERT_EQ(::write(file.descriptor(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string text(const char* name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(InFolder, nothing_is_there_until_it_is_put_in_place) {
  {
    NewFile file = NewFile::make(folder_ / "a");
    ASSERT_TRUE(file);
    write(file, "half");
    EXPECT_EQ(files(), 0U);
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(InFolder, it_replaces_what_is_there_with_its_own_mode) {
  std::ofstream(folder_ / "a") << "before";
  NewFile file = NewFile::make(folder_ / "a");
  write(file, "after");
  EXPECT_EQ(text("a"), "before");
  ASSERT_TRUE(file.put_in_place(0640));
  EXPECT_EQ(text("a"), "after");
  EXPECT_EQ(files(), 1U);
  struct stat there {};
  ASSERT_EQ(::stat((folder_ / "a").c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 07777, 0640U);
}

TEST_F(InFolder, a_folder_that_is_not_there_is_said_by_errno) {
  const NewFile file = NewFile::make(folder_ / "none" / "a");
  EXPECT_FALSE(file);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(InFolder, what_cannot_be_put_in_place_leaves_nothing) {
  fs::create_directory(folder_ / "a");
  {
    NewFile file = NewFile::make(folder_ / "a");
    write(file, "text");
    EXPECT_FALSE(file.put_in_place(0600));
  }
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace phlox
