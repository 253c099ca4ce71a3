#include "phlox/cli/features.h"

#include <gtest/gtest.h>

namespace phlox::cli {
namespace {

TEST(Features, what_is_missing_is_named_with_its_reason) {
  EXPECT_EQ(features_line({{"kernel capture", "libbpf is older than 1.0"}, {"instruction decoder", ""}}),
            "features: kernel capture no (libbpf is older than 1.0), instruction decoder yes");
}

TEST(Features, this_build_has_an_instruction_decoder) {
  for (const Feature& one : features()) {
    if (one.name != "kernel capture") {
      EXPECT_EQ(one.missing, "") << one.name;
    }
  }
}

}  // namespace
}  // namespace phlox::cli
