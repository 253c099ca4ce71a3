#include "phlox/base/memory_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace phlox {
namespace {

TEST(MemoryFile, is_opened_by_its_path_as_long_as_it_is_held) {
  constexpr std::string_view kText = "no name, but a place";
  const Descriptor file = memory_file(std::as_bytes(std::span(kText)));
  ASSERT_TRUE(file);
  std::ifstream in(path_of(file));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), kText);
}

}  // namespace
}  // namespace phlox
