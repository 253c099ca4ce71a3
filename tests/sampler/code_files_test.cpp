#include "phlox/sampler/kernel/code_files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phlox::sampler {
namespace {

constexpr const char* kMaps =
    "00400000-00500000 r-xp 00000000 08:01 11 /srv/app/bin/server\n"
    "7f0000000000-7f0000100000 r-xp 00000000 08:01 12 /usr/lib/libpython3.11.so.1.0\n"
    "7f0000100000-7f0000200000 rw-p 00100000 08:01 12 /usr/lib/libpython3.11.so.1.0\n"
    "7f0001000000-7f0001100000 r-xp 00000000 08:01 13 /opt/odd/interp.so\n"
    "7f0001100000-7f0001200000 rw-p 00100000 08:01 13 /opt/odd/interp.so\n"
    "7f0002000000-7f0002100000 r-xp 00000000 08:01 14 /venv/numpy/_multiarray_umath.so\n"
    "7f0003000000-7f0003100000 r-xp 00000000 00:00 0 \n"
    "7f0004000000-7f0004100000 r-xp 00000000 00:05 15 /memfd:jit (deleted)\n"
    "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]\n";
constexpr uint64_t kNumpy = 0x7f0002000010;

class CodeFilesTest : public testing::Test {
 protected:
  CodeFiles files(RemoteAddress interpreter = RemoteAddress(0x7f0000100040)) {
    return {[this]() -> Result<std::vector<process::Mapping>> {
              ++reads_;
              if (maps_.empty()) return fail(ErrorKind::system, "gone");
              return process::parse_maps(maps_);
            },
            "/srv/app/bin/server", interpreter};
  }
  std::string maps_ = kMaps;
  int reads_ = 0;
};

TEST_F(CodeFilesTest, code_of_an_extension_has_its_file) {
  CodeFiles known = files();
  const uint32_t numpy = known.of(kNumpy, kSecond);
  ASSERT_NE(numpy, 0U);
  EXPECT_EQ(known.path(numpy), "/venv/numpy/_multiarray_umath.so");
  EXPECT_EQ(known.of(kNumpy + 8, kSecond), numpy);
  EXPECT_EQ(reads_, 1);
}

TEST_F(CodeFilesTest, the_interpreter_the_program_and_code_without_a_file_have_none) {
  CodeFiles known = files();
  for (const uint64_t at :
       {0x400010ULL, 0x7f0000000010ULL, 0x7f0003000010ULL, 0x7f0004000010ULL, 0x7ffd00000010ULL, 0ULL})
    EXPECT_EQ(known.of(at, kSecond), 0U) << std::hex << at;
}

TEST_F(CodeFilesTest, code_that_was_moved_to_memory_without_a_file_has_its_file) {
  maps_ =
      "7f0002000000-7f0002001000 r--p 00000000 08:01 14 /venv/numpy/_multiarray_umath.so\n"
      "7f0002001000-7f0002100000 r-xp 00000000 00:00 0 \n"
      "7f0002100000-7f0002200000 r--p 00100000 08:01 14 /venv/numpy/_multiarray_umath.so\n"
      "7f0002200000-7f0002300000 r-xp 00000000 00:00 0 \n";
  CodeFiles known = files();
  const uint32_t numpy = known.of(0x7f0002001010, kSecond);
  ASSERT_NE(numpy, 0U);
  EXPECT_EQ(known.path(numpy), "/venv/numpy/_multiarray_umath.so");
  EXPECT_EQ(known.of(0x7f0002200010, kSecond), 0U) << "behind it";
}

TEST_F(CodeFilesTest, an_interpreter_of_any_name_is_known_by_where_its_state_lies) {
  CodeFiles by_place = files(RemoteAddress(0x7f0001100040)), elsewhere = files();
  EXPECT_EQ(by_place.of(0x7f0001000010, kSecond), 0U);
  EXPECT_NE(elsewhere.of(0x7f0001000010, kSecond), 0U);
}

TEST_F(CodeFilesTest, a_library_that_is_loaded_later_is_found_and_a_gap_is_not_asked_for_each_time) {
  maps_ = "00400000-00500000 r-xp 00000000 08:01 11 /srv/app/bin/server\n";
  CodeFiles known = files();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(known.of(kNumpy, kSecond + i * kSecond / 1000), 0U);
  EXPECT_LE(reads_, 6);
  maps_ = kMaps;
  EXPECT_NE(known.of(kNumpy, 20 * kSecond), 0U);
}

TEST_F(CodeFilesTest, what_was_known_stays_when_the_process_is_gone) {
  CodeFiles known = files();
  const uint32_t numpy = known.of(kNumpy, kSecond);
  maps_.clear();
  EXPECT_EQ(known.of(kNumpy, 60 * kSecond), numpy);
}

}  // namespace
}  // namespace phlox::sampler
