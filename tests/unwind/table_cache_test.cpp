#include "phlox/unwind/table_cache.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_identity.h"
#include "phlox/base/private_folder.h"
#include "support/frame_bytes.h"

namespace phlox::unwind {
namespace {

constexpr const char* kId = "00112233445566778899aabbccddeeff00112233";

class CacheTest : public testing::Test {
 protected:
  CacheTest() {
    std::string name = (std::filesystem::temp_directory_path() / "phlox-cache-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    test::FrameBytes cfi;
    const size_t cie = cfi.cie({0x0c, 7, 8, 0x90, 1});
    cfi.fde(cie, 0x1000, 0x40, {0x41, 0x0e, 16, 0x86, 2});
    table_ = cfi.table();
  }
  ~CacheTest() override { std::filesystem::remove_all(root_); }
  std::string folder() const { return root_ + "/a/b/phlox/unwind"; }
  std::string file() const { return folder() + "/" + kId + ".cfi5"; }

  std::string root_;
  UnwindTable table_;
};

TEST_F(CacheTest, table_comes_back_from_a_private_folder) {
  const TableCache cache(folder());
  ASSERT_TRUE(cache.usable());
  EXPECT_EQ(cache.find(kId), nullptr);
  ASSERT_TRUE(cache.write(kId, table_));
  const auto back = cache.find(kId);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(*back, table_);
  struct stat status {};
  ASSERT_EQ(::stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder()), {}),
            1);  // no temporary file is left
}

TEST_F(CacheTest, what_was_not_used_for_longest_makes_room) {
  ASSERT_TRUE(make_private_folder(folder()));
  const std::vector<std::byte> bytes(100);
  const auto left = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  };
  for (int i = 0; i < 4; ++i) {
    const std::string name = "file" + std::to_string(i);
    ASSERT_TRUE(write_whole_file(folder(), name, bytes));
    std::filesystem::last_write_time(folder() + "/" + name, std::filesystem::file_time_type::clock::now() -
                                                                (10 - i) * std::chrono::hours(24));
  }
  EXPECT_TRUE(open_kept_file(folder(), "file0", 100));  // used today
  EXPECT_FALSE(open_kept_file(folder(), "file0", 99));
  keep_within(folder(), 400);
  EXPECT_EQ(left().size(), 4u);
  keep_within(folder(), 399);
  EXPECT_EQ(left(), (std::vector<std::string>{"file0", "file2", "file3"}));
  keep_within(folder(), 250);
  EXPECT_EQ(left(), (std::vector<std::string>{"file0", "file3"}));
}

TEST_F(CacheTest, damaged_file_is_as_good_as_none_and_is_written_again) {
  const TableCache cache(folder());
  ASSERT_TRUE(cache.write(kId, table_));
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) - 1);
  EXPECT_EQ(cache.find(kId), nullptr);
  std::ofstream(file(), std::ios::trunc) << "something else";
  EXPECT_EQ(cache.find(kId), nullptr);
  ASSERT_TRUE(cache.write(kId, table_));
  EXPECT_NE(cache.find(kId), nullptr);
}

TEST_F(CacheTest, folder_that_others_may_write_to_is_not_used) {
  std::filesystem::create_directories(folder());
  ASSERT_EQ(::chmod(folder().c_str(), 0777), 0);
  const TableCache open(folder());
  EXPECT_FALSE(open.usable());
  EXPECT_FALSE(open.write(kId, table_));
  std::filesystem::create_directory_symlink("/tmp", root_ + "/link");
  EXPECT_FALSE(TableCache(root_ + "/link").usable());
  EXPECT_FALSE(TableCache("").usable());
}

TEST_F(CacheTest, link_in_place_of_a_file_and_ids_that_are_paths_are_refused) {
  const TableCache cache(folder());
  ASSERT_TRUE(cache.write(kId, table_));
  std::filesystem::rename(file(), root_ + "/elsewhere");
  std::filesystem::create_symlink(root_ + "/elsewhere", file());
  EXPECT_EQ(cache.find(kId), nullptr);
  EXPECT_FALSE(cache.write("../../../../etc/passwd", table_));
  EXPECT_FALSE(cache.write("", table_));
}

TEST_F(CacheTest, table_of_a_file_is_built_once) {
  const TableCache cache(folder());
  const char* path = "/proc/self/exe";
  const Descriptor fd(::open(path, O_RDONLY | O_CLOEXEC));
  const auto bytes = elf::FileBytes::read(fd.get(), path);
  ASSERT_TRUE(bytes);
  const auto elf = elf::ElfFile::parse(*bytes);
  ASSERT_TRUE(elf);
  const auto built = cache.table_of(*elf, kId);
  ASSERT_GE(built->row_count(), 2000u);
  EXPECT_NE(cache.find(kId), nullptr);
  EXPECT_EQ(*cache.table_of(*elf, kId), *built);
}

TEST_F(CacheTest, table_is_kept_by_the_files_identity_and_never_by_a_build_id) {
  const TableCache cache(folder());
  const Descriptor fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto mapped = elf::FileBytes::read(fd.get(), "self");
  ASSERT_TRUE(mapped);
  const auto elf = elf::ElfFile::parse(*mapped);
  ASSERT_TRUE(elf);
  ASSERT_NE(elf->build_id(), "");
  const auto built = cache.table_of(*elf);
  EXPECT_EQ(cache.find(elf->build_id()), nullptr);
  EXPECT_EQ(cache.find(kId), nullptr);
  cache.table_of(*elf, kId);
  ASSERT_NE(cache.find(kId), nullptr);
  EXPECT_EQ(*cache.find(kId), *built);
}

TEST(FileIdentity, of_what_another_user_can_write_nothing_is_kept) {
  std::string path = testing::TempDir() + "kept_identity_XXXXXX";
  const Descriptor file(::mkstemp(path.data()));
  ASSERT_TRUE(file);
  const std::string before = kept_identity(file.get());
  EXPECT_FALSE(before.empty());
  // Its owner may set back when it was written, but not when it was changed.
  struct stat there {};
  ASSERT_EQ(::fstat(file.get(), &there), 0);
  ::usleep(20'000);
  const timespec times[] = {there.st_atim, there.st_mtim};
  ASSERT_EQ(::futimens(file.get(), times), 0);
  EXPECT_NE(kept_identity(file.get()), before);
  ASSERT_EQ(::fchmod(file.get(), 0622), 0);
  EXPECT_EQ(kept_identity(file.get()), "");
  ASSERT_EQ(::fchmod(file.get(), 0600), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::fchown(file.get(), 65534, 65534), 0);
    EXPECT_EQ(kept_identity(file.get()), "");
  }
  ::unlink(path.c_str());
}

TEST(CacheFolder, follows_the_xdg_rules) {
  EXPECT_EQ(cache_folder("/x", "/home/me"), "/x/phlox/unwind");
  EXPECT_EQ(cache_folder("", "/home/me"), "/home/me/.cache/phlox/unwind");
  EXPECT_EQ(cache_folder("relative", "/home/me"), "/home/me/.cache/phlox/unwind");
  EXPECT_EQ(cache_folder("", ""), "");
}

}  // namespace
}  // namespace phlox::unwind
