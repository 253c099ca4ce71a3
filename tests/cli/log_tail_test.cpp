#include "phlox/cli/log_tail.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace phlox::cli {
namespace {

namespace fs = std::filesystem;

class Tail : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "phlox-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "app.log";
  }
  void TearDown() override { fs::remove_all(folder_); }
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  std::unique_ptr<LogTail> open(const std::string& regex) {
    auto made = LogTail::open(path_, regex, {});
    EXPECT_TRUE(made) << made.error().message;
    return made ? *std::move(made) : nullptr;
  }

  fs::path folder_, path_;
};

TEST_F(Tail, only_what_is_appended_is_read) {
  append("ERROR old\n");
  const auto tail = open("ERROR");
  EXPECT_FALSE(tail->next_match());
  append("fine\nERROR ne");
  EXPECT_FALSE(tail->next_match());
  append("w\nERROR second\n");
  EXPECT_EQ(tail->next_match(), "ERROR new");
  EXPECT_FALSE(tail->next_match());
}

TEST_F(Tail, a_rotated_file_is_followed) {
  append("start\n");
  const auto tail = open("ERROR");
  append("ERROR last of the old\n");
  fs::rename(path_, folder_ / "app.log.1");
  append("ERROR first of the new\n");
  EXPECT_EQ(tail->next_match(), "ERROR last of the old");
  append("ERROR second\n");
  EXPECT_EQ(tail->next_match(), "ERROR second");
}

// An app that may write into the folder of its log could name any file that only root may read.
TEST_F(Tail, a_file_of_another_user_does_not_take_its_place) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr uid_t kApp = 65534;
  append("start\n");
  ASSERT_EQ(::chown(path_.c_str(), kApp, kApp), 0);
  const auto tail = open("ERROR");
  const fs::path secret = folder_ / "secret";
  std::ofstream(secret) << "ERROR password\n";
  fs::remove(path_);
  fs::create_symlink(secret, path_);
  EXPECT_FALSE(tail->next_match());
  EXPECT_TRUE(tail->take_refused());
  EXPECT_FALSE(tail->take_refused()) << "once";
  ASSERT_EQ(::chown(secret.c_str(), kApp, kApp), 0);
  EXPECT_EQ(tail->next_match(), "ERROR password");
}

TEST_F(Tail, a_link_of_another_user_does_not_take_its_place) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  append("start\n");
  const auto tail = open("ERROR");  // root's log, in a folder in which others may rename
  const fs::path secret = folder_ / "secret";
  std::ofstream(secret) << "ERROR password\n";
  fs::remove(path_);
  fs::create_symlink(secret, path_);
  ASSERT_EQ(::lchown(path_.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(tail->next_match());
  EXPECT_TRUE(tail->take_refused());
  ASSERT_EQ(::lchown(path_.c_str(), 0, 0), 0);
  EXPECT_EQ(tail->next_match(), "ERROR password");
}

// The user cannot read what the link leads to, but may move a link of root's into a folder of his own.
TEST_F(Tail, a_link_of_roots_in_a_users_folder_shows_only_what_the_user_may_read) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr uid_t kApp = 65534;
  append("start\n");  // root's log
  const fs::path secret = folder_ / "secret", others = folder_ / "others";
  std::ofstream(secret) << "ERROR password\n";
  std::ofstream(others) << "ERROR for everyone\n";
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  ASSERT_EQ(::chown(folder_.c_str(), kApp, kApp), 0);
  const auto tail = open("ERROR");
  fs::remove(path_);
  fs::create_symlink(secret, path_);
  EXPECT_FALSE(tail->next_match());
  fs::remove(path_);
  fs::create_symlink(others, path_);
  EXPECT_EQ(tail->next_match(), "ERROR for everyone");
  fs::remove(path_);
  append("ERROR by root\n");
  EXPECT_EQ(tail->next_match(), "ERROR by root");
}

TEST_F(Tail, a_file_that_is_emptied_is_read_from_its_start) {
  append("a long first line\n");
  const auto tail = open("ERROR");
  EXPECT_FALSE(tail->next_match());
  fs::resize_file(path_, 0);
  append("ERROR x\n");
  EXPECT_EQ(tail->next_match(), "ERROR x");
}

TEST_F(Tail, what_is_no_plain_file_is_refused_and_blocks_nobody) {
  EXPECT_EQ(LogTail::open(path_, "x", {}).error().kind, ErrorKind::input);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(LogTail::open(path_, "x", {}).error().kind, ErrorKind::input);
  EXPECT_EQ(LogTail::open(folder_, "x", {}).error().kind, ErrorKind::input);
}

TEST_F(Tail, the_hint_is_about_the_reason) {
  EXPECT_NE(LogTail::open(path_, "x", {}).error().hint.find("touch"), std::string::npos);
  EXPECT_NE(LogTail::open("~/app.log", "x", {}).error().hint.find("$HOME"), std::string::npos);
  const auto folder = LogTail::open(folder_, "x", {});
  EXPECT_NE(folder.error().message.find("no plain file"), std::string::npos) << folder.error().message;
  EXPECT_EQ(folder.error().hint.find("touch"), std::string::npos) << folder.error().hint;
  append("");
  EXPECT_NE(LogTail::open(path_, "(?=x)", {}).error().hint.find("lookahead"), std::string::npos);
}

TEST_F(Tail, hostile_expressions_and_lines_take_little_time) {
  append("");
  EXPECT_EQ(LogTail::open(path_, "(", {}).error().kind, ErrorKind::usage);
  EXPECT_EQ(LogTail::open(path_, "(((a{1000}){1000}){1000})", {}).error().kind, ErrorKind::usage);
  const auto tail = open("(a*)*b");
  append(std::string(50'000, 'a') + "\n" + std::string("\0\xff\n", 3));
  EXPECT_FALSE(tail->next_match());
}

}  // namespace
}  // namespace phlox::cli
