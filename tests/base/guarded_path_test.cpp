#include "phlox/base/guarded_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "phlox/base/regular_file.h"

namespace phlox {
namespace {

namespace fs = std::filesystem;
using Refused = GuardedFile::Refused;

constexpr uid_t kApp = 65533, kOther = 65532;
constexpr gid_t kTeam = 65531;

class Guarded : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "phlox-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    top_ = name;
    ASSERT_EQ(::chmod(name.c_str(), 0755), 0);
    logs_ = make_folder("logs", ::geteuid(), 0755);
    secret_ = make_file(top_ / "secret", ::geteuid(), 0600);
  }
  void TearDown() override { fs::remove_all(top_); }

  fs::path make_folder(const std::string& name, uid_t user, mode_t mode, gid_t group = 0) {
    const fs::path path = top_ / name;
    fs::create_directory(path);
    give(path, user, group, mode);
    return path;
  }
  fs::path make_file(const fs::path& path, uid_t user, mode_t mode, gid_t group = 0) {
    std::ofstream(path) << "text\n";
    give(path, user, group, mode);
    return path;
  }
  static void give(const fs::path& path, uid_t user, gid_t group, mode_t mode) {
    if (::geteuid() == 0) {
      EXPECT_EQ(::chown(path.c_str(), user, group), 0);
    }
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }
  static void link(const fs::path& to, const fs::path& path, uid_t user) {
    fs::create_symlink(to, path);
    if (::geteuid() == 0) {
      EXPECT_EQ(::lchown(path.c_str(), user, user), 0);
    }
  }
  // "yes", "no": not with these rights; or why it was refused.
  static std::string answer(const fs::path& path) {
    const GuardedFile found = find_guarded(path, {});
    if (found.refused == Refused::link) return "link";
    if (found.refused == Refused::private_file) return "private";
    if (found.refused == Refused::rights) return "rights";
    const ActAs as(found.user);
    return open_if_regular(found.file) ? "yes" : "no";
  }

  fs::path top_, logs_, secret_;
};

class GuardedAsRoot : public Guarded {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    Guarded::SetUp();
  }
};

TEST_F(Guarded, in_folders_of_ours_links_are_followed) {
  link(secret_, logs_ / "app.log", ::geteuid());
  link("../logs/app.log", logs_ / "again.log", ::geteuid());
  EXPECT_EQ(answer(logs_ / "app.log"), "yes");
  EXPECT_EQ(answer(logs_ / "again.log"), "yes");
  EXPECT_EQ(answer(logs_ / "none.log"), "no");
  link(logs_ / "round", logs_ / "round", ::geteuid());
  EXPECT_EQ(answer(logs_ / "round"), "no");
}

TEST_F(Guarded, a_relative_path_begins_where_we_are) {
  const fs::path before = fs::current_path();
  fs::current_path(logs_);
  EXPECT_EQ(answer("../secret"), "yes");
  fs::current_path(before);
}

// What the user has no right to move there, but may: a link of root's.
TEST_F(GuardedAsRoot, a_link_of_roots_in_a_users_folder_shows_only_what_the_user_may_read) {
  const fs::path folder = make_folder("of-app", kApp, 0755);
  link(secret_, folder / "app.log", 0);
  EXPECT_EQ(answer(folder / "app.log"), "no");
  make_file(folder / "own.log", kApp, 0600);
  EXPECT_EQ(answer(folder / "own.log"), "yes");
  make_file(folder / "moved.log", 0, 0600);
  EXPECT_EQ(answer(folder / "moved.log"), "no");
  link("own.log", folder / "current.log", kApp);
  EXPECT_EQ(answer(folder / "current.log"), "yes");
}

TEST_F(GuardedAsRoot, the_same_holds_for_a_folder_further_up) {
  const fs::path folder = make_folder("of-app", kApp, 0755);
  link(top_, folder / "logs", 0);
  EXPECT_EQ(answer(folder / "logs" / "secret"), "no");
}

TEST_F(GuardedAsRoot, where_several_users_write_no_link_is_followed_and_no_private_file_read) {
  for (const fs::path& folder : {make_folder("of-all", 0, 0777), make_folder("of-team", 0, 0775, kTeam)}) {
    link(top_ / "logs", folder / "link.log", 0);
    EXPECT_EQ(answer(folder / "link.log"), "link");
    make_file(folder / "private.log", 0, 0640);
    EXPECT_EQ(answer(folder / "private.log"), "private");
    make_file(folder / "public.log", 0, 0644);
    EXPECT_EQ(answer(folder / "public.log"), "yes");
    make_file(folder / "of-app.log", kApp, 0600);
    EXPECT_EQ(answer(folder / "of-app.log"), "yes");
    make_file(folder / "of-team.log", 0, 0640, kTeam);
    EXPECT_EQ(answer(folder / "of-team.log"), folder.filename() == "of-team" ? "yes" : "private");
  }
}

TEST_F(GuardedAsRoot, a_second_user_further_down_shares_the_choice) {
  const fs::path folder = make_folder("of-app", kApp, 0755);
  const fs::path inner = make_folder("of-app/inner", kOther, 0755);
  make_file(inner / "of-app.log", kApp, 0600);
  EXPECT_EQ(answer(inner / "of-app.log"), "private") << "the other user cannot read it";
  make_file(inner / "of-other.log", kOther, 0644);
  EXPECT_EQ(answer(inner / "of-other.log"), "yes");
}

TEST_F(GuardedAsRoot, in_a_sticky_folder_an_entry_is_its_owners_choice) {
  const fs::path folder = make_folder("sticky", 0, 01777);
  make_file(folder / "own.log", 0, 0600);
  EXPECT_EQ(answer(folder / "own.log"), "yes");
  link(secret_, folder / "link.log", 0);
  EXPECT_EQ(answer(folder / "link.log"), "link");
  const fs::path inner = make_folder("sticky/of-app", kApp, 0755);
  link(secret_, inner / "app.log", 0);
  EXPECT_EQ(answer(inner / "app.log"), "no");
}

TEST_F(GuardedAsRoot, a_group_with_the_number_of_its_user_is_that_users) {
  const fs::path folder = make_folder("of-app", kApp, 0775, kApp);
  make_file(folder / "own.log", kApp, 0600, kApp);
  EXPECT_EQ(answer(folder / "own.log"), "yes");
}

// An ordinary user cannot read with the rights of another.
TEST_F(GuardedAsRoot, an_ordinary_user_follows_no_link_of_others) {
  const fs::path folder = make_folder("of-app", kApp, 0755);
  const fs::path mine = make_file(top_ / "mine", kOther, 0600);
  link(mine, folder / "app.log", kApp);
  const FileUser other{kOther, kOther, {}};
  EXPECT_EQ(find_guarded(folder / "app.log", other).refused, Refused::link);
  EXPECT_TRUE(find_guarded(mine, other).file);
  EXPECT_FALSE(find_guarded(secret_ / "x", other).file);
}

}  // namespace
}  // namespace phlox
