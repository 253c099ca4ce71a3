#include "phlox/base/system_call_numbers.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace phlox {
namespace {

// The number as text, or "SYS_name" if the C library's headers do not have it.
#define TEXT_OF(name) #name
#define NUMBER_TEXT(name) TEXT_OF(name)

// As the C library's headers have them: so each machine proves its own column.
TEST(SystemCallNumbers, are_those_of_this_machine) {
  constexpr int kNewest = 449;  // since Linux 5.16; headers may be of 5.15
  const std::pair<std::string, std::string> in_headers[] = {
#define PHLOX_SYSTEM_CALL(name, on_x86_64, on_aarch64) {#name, NUMBER_TEXT(SYS_##name)},
#include "phlox/base/system_calls.inc"
#undef PHLOX_SYSTEM_CALL
  };
  size_t compared = 0;
  for (size_t i = 0; i < std::size(kSystemCalls); ++i) {
    const int number = kSystemCalls[i].number(kOnAarch64);
    const auto& [name, text] = in_headers[i];
    if (text.starts_with("SYS_")) {
      EXPECT_TRUE(number == -1 || number >= kNewest) << name << " is not in the headers";
      continue;
    }
    EXPECT_EQ(std::to_string(number), text) << name;
    ++compared;
  }
  EXPECT_GT(compared, std::size(kSystemCalls) / 2);
}

#undef TEXT_OF
#undef NUMBER_TEXT

TEST(SystemCallNumbers, that_aarch64_lacks_are_those_that_have_a_younger_form) {
  EXPECT_EQ(system_call("poll").number(true), -1);
  EXPECT_EQ(system_call("epoll_wait").number(true), -1);
}

TEST(SystemCallNumbers, each_number_is_in_the_table_once) {
  for (const bool on_aarch64 : {false, true}) {
    std::map<int, std::string> seen;
    for (const SystemCall& call : kSystemCalls) {
      const int number = call.number(on_aarch64);
      if (number < 0) continue;
      EXPECT_TRUE(seen.emplace(number, call.name).second) << call.name << " is " << seen[number] << " too";
    }
  }
}

}  // namespace
}  // namespace phlox
