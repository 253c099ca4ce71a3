#include "phlox/process/packages.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace phlox::process {
namespace {

// A root folder with a dpkg in it.
class Root {
 public:
  Root() {
    std::string name = (std::filesystem::temp_directory_path() / "phlox-root-XXXXXX").string();
    path = ::mkdtemp(name.data());
    std::filesystem::create_directories(path + "/var/lib/dpkg/info");
  }
  ~Root() { std::filesystem::remove_all(path); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  void list(const std::string& package, const std::string& text) const {
    std::ofstream(path + "/var/lib/dpkg/info/" + package + ".list") << text;
  }
  std::map<std::string, std::string> packages(const std::vector<std::string>& paths) const {
    return packages_of(Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY)), paths);
  }
  std::string path;
};

using Found = std::map<std::string, std::string>;

TEST(Packages, file_is_of_the_package_that_lists_it) {
  const Root root;
  root.list("libfoo1:amd64", "/.\n/usr\n/usr/lib/libfoo.so.1\n");
  root.list("libc6:amd64", "/lib/x86_64-linux-gnu/libc.so.6\n");
  root.list("other", "/usr/lib/libfoo.so.10\n/usr/lib/libbar.so");
  EXPECT_EQ(root.packages({"/usr/lib/libfoo.so.1", "/usr/lib/x86_64-linux-gnu/libc.so.6",
                           "/usr/lib/libbar.so", "/usr/lib/libfoo.so", "/opt/libbaz.so"}),
            (Found{{"/usr/lib/libfoo.so.1", "libfoo1"},
                   {"/usr/lib/x86_64-linux-gnu/libc.so.6", "libc6"},
                   {"/usr/lib/libbar.so", "other"}}));
}

TEST(Packages, link_that_leads_out_of_the_root_is_not_followed) {
  const Root root, other;
  other.list("secret", "/usr/lib/libfoo.so.1\n");
  std::filesystem::remove_all(root.path + "/var/lib/dpkg");
  std::filesystem::create_directory_symlink(other.path + "/var/lib/dpkg", root.path + "/var/lib/dpkg");
  EXPECT_EQ(root.packages({"/usr/lib/libfoo.so.1"}), Found());
}

TEST(Packages, without_dpkg_there_is_none) {
  const Root root;
  std::filesystem::remove_all(root.path + "/var");
  EXPECT_EQ(root.packages({"/usr/lib/libfoo.so.1"}), Found());
  EXPECT_EQ(packages_of(Descriptor(), {"/usr/lib/libfoo.so.1"}), Found());
}

}  // namespace
}  // namespace phlox::process
