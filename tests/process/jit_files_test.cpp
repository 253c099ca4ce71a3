#include "phlox/process/jit_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "phlox/process/root_folder.h"

namespace phlox::process {
namespace {

namespace fs = std::filesystem;

// A folder with a root in it, and what lies outside of that.
class JitFiles : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/phlox-jit-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    fs::create_directories(folder_ / "root/tmp");
    root_ = Descriptor(::open((folder_ / "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { fs::remove_all(folder_); }
  static void write(const fs::path& path) { std::ofstream(path) << "1000 10 f\n"; }
  bool opens() const { return static_cast<bool>(open_perf_map(root_, writer_)); }
  fs::path map() const { return folder_ / "root/tmp/perf-7.map"; }

  fs::path folder_;
  Descriptor root_;
  JitWriter writer_{::geteuid(), 7};
};

TEST_F(JitFiles, perf_map_lies_in_the_root_s_own_tmp) {
  EXPECT_FALSE(opens());
  write(map());
  EXPECT_TRUE(opens());
  writer_.own_pid = 8;
  EXPECT_FALSE(opens());
  EXPECT_FALSE(open_perf_map({}, writer_));
}

TEST_F(JitFiles, tmp_may_be_a_link_that_stays_in_the_root) {
  fs::remove(folder_ / "root/tmp");
  fs::create_directory(folder_ / "root/other");
  write(folder_ / "root/other/perf-7.map");
  fs::create_symlink("/other", folder_ / "root/tmp");
  EXPECT_TRUE(opens());
}

TEST_F(JitFiles, no_link_leads_out_of_the_root) {
  write(folder_ / "perf-7.map");
  for (const fs::path& to : {folder_, fs::path("../../.."), fs::path("..")}) {
    fs::remove(folder_ / "root/tmp");
    fs::create_directory_symlink(to, folder_ / "root/tmp");
    EXPECT_FALSE(opens()) << to;
  }
}

TEST_F(JitFiles, a_link_in_the_place_of_the_map_is_not_followed) {
  write(folder_ / "root/secret");
  fs::create_symlink("/secret", map());
  EXPECT_FALSE(opens());
}

TEST_F(JitFiles, what_is_no_file_is_left_alone) {
  ASSERT_EQ(::mkfifo(map().c_str(), 0600), 0);
  EXPECT_FALSE(opens());
  fs::remove(map());
  fs::create_directory(map());
  EXPECT_FALSE(opens());
}

TEST_F(JitFiles, another_user_s_file_is_not_taken) {
  write(map());
  if (::geteuid() == 0) {
    EXPECT_TRUE(opens());
    writer_.user = 4711;
    EXPECT_TRUE(opens());  // root's
    ASSERT_EQ(::chown(map().c_str(), 4711, 4711), 0);
    EXPECT_TRUE(opens());
  }
  ++writer_.user;
  EXPECT_FALSE(opens());
}

TEST_F(JitFiles, jitdump_is_opened_beneath_the_root_by_either_path) {
  const fs::path dump = folder_ / "root/tmp/jit-7.dump";
  write(dump);
  struct stat status {};
  ASSERT_EQ(::stat(dump.c_str(), &status), 0);
  // Without mappings there is nothing in map_files.
  Module module{"/tmp/jit-7.dump", 0, status.st_ino, false, {}, {}};
  EXPECT_TRUE(open_jitdump(::getpid(), module, root_, writer_));
  module.path = dump;  // what maps show of a plain chroot
  EXPECT_TRUE(open_jitdump(::getpid(), module, root_, writer_));
  module.inode = status.st_ino + 1;
  EXPECT_FALSE(open_jitdump(::getpid(), module, root_, writer_));
}

TEST_F(JitFiles, jitdump_outside_of_the_root_is_not_opened) {
  const fs::path dump = folder_ / "jit-7.dump";
  write(dump);
  struct stat status {};
  ASSERT_EQ(::stat(dump.c_str(), &status), 0);
  const Module module{dump, 0, status.st_ino, false, {}, {}};
  EXPECT_TRUE(open_module(::getpid(), module, root_));
  EXPECT_FALSE(open_jitdump(::getpid(), module, root_, writer_));
  fs::create_symlink(dump, folder_ / "root/tmp/jit-7.dump");
  EXPECT_FALSE(
      open_jitdump(::getpid(), {"/tmp/jit-7.dump", 0, status.st_ino, false, {}, {}}, root_, writer_));
}

TEST(JitWriter, is_this_process_s_user) {
  const auto writer = jit_writer(::getpid());
  ASSERT_TRUE(writer);
  EXPECT_EQ(writer->user, ::geteuid());
  EXPECT_EQ(writer->own_pid, ::getpid());
  EXPECT_FALSE(jit_writer(0x7ffffff0));
}

}  // namespace
}  // namespace phlox::process
