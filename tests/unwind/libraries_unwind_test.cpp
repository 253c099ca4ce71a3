// Our frames against libdwfl's on the same captured bytes, over the libraries that a Python meets first:
// those of its own modules, NumPy, code in C++ and in Rust (bench/targets/libraries.py; bench/unwinding does
// it at length).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "support/frame_comparison.h"
#include "support/live_python.h"
#include "support/source_path.h"

namespace phlox::unwind {
namespace {

constexpr size_t kSamplesEach = 90;

const std::string kTargets = test::source_path("bench/targets/");

// The system's Python has NumPy (packages-test.txt), the tests' environment orjson and pydantic-core
// (requirements-test.txt).
std::vector<test::Python> environments() {
  std::vector<test::Python> found = {{"/usr/bin/python3", "system", 3, 0}};
  const char* venv = std::getenv("PHLOX_VENV");
  const char* home = std::getenv("HOME");
  const std::string folder =
      venv != nullptr ? venv : std::string(home != nullptr ? home : "/root") + "/.cache/phlox/venv";
  if (std::filesystem::exists(folder + "/bin/python"))
    found.push_back({folder + "/bin/python", "venv", 3, 0});
  return found;
}

TEST(LibrariesUnwind, frames_equal_libdwfl_s_over_many_libraries) {
  const std::string library = testing::TempDir() + "phlox-libraries-cxx.so";
  ASSERT_EQ(std::system(("g++ -O2 -shared -fPIC " + kTargets + "libraries.cpp -o " + library).c_str()), 0);
  ::setenv("PHLOX_CXX_LIBRARY", library.c_str(), 1);
  std::set<std::string> done, files;
  size_t samples = 0, equal = 0, said = 0;
  for (const test::Python& python : environments()) {
    std::istringstream names(test::run_python(python, {kTargets + "libraries.py", "NAMES"}));
    for (std::string name; names >> name;) {
      if (!done.insert(name).second) continue;
      test::LivePython live(python, kTargets + "libraries.py", {name});
      ASSERT_TRUE(live.ready()) << name;
      test::FrameComparison comparison(live.pid());
      ASSERT_TRUE(comparison.ok()) << name;
      while (comparison.numbers().samples < kSamplesEach && comparison.take()) {
      }
      const auto& numbers = comparison.numbers();
      EXPECT_EQ(numbers.samples, kSamplesEach) << name;
      std::printf("%-14s %zu of %zu equal, %zu whole, %zu said\n", name.c_str(), numbers.equal,
                  numbers.samples, numbers.whole, numbers.said);
      for (const std::string& example : comparison.examples()) std::printf("%s", example.c_str());
      samples += numbers.samples;
      equal += numbers.equal;
      said += numbers.said;
      for (const auto& [path, count] : numbers.libraries) files.insert(path);
    }
  }
  std::filesystem::remove(library);
  for (const char* name : {"numpy", "sqlite3", "openssl", "libc", "libstdcxx", "orjson", "pydantic_core"})
    EXPECT_TRUE(done.count(name)) << name << " is not there: tools/packages-test.txt, requirements-test.txt";
  std::printf("%zu of %zu equal, %zu said, %zu files\n", equal, samples, said, files.size());
  EXPECT_GE(done.size(), 10u);
  EXPECT_GE(files.size(), 10u);
  EXPECT_GE(samples, 1000u);
  EXPECT_GE(static_cast<double>(equal), 0.999 * static_cast<double>(samples));
}

}  // namespace
}  // namespace phlox::unwind
