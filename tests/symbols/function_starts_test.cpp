#include "phlox/symbols/function_starts.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "support/elf_builder.h"

namespace phlox::symbols {
namespace {

// An .eh_frame_hdr at 0x3000, and behind it an FDE for each function.
class Header {
 public:
  struct Function {
    uint64_t start;
    uint32_t length;
  };
  explicit Header(const std::vector<Function>& functions) {
    bytes = {std::byte{1}, std::byte{0x1b}, std::byte{0x03}, std::byte{0x3b}};
    put<int32_t>(0);
    put(static_cast<uint32_t>(functions.size()));
    const size_t fdes = bytes.size() + 8 * functions.size();
    for (size_t i = 0; i < functions.size(); ++i) {
      put(static_cast<int32_t>(functions[i].start - kAt));
      put(static_cast<int32_t>(fdes + 16 * i));
    }
    for (const Function& f : functions) {
      put<uint32_t>(12), put<uint32_t>(0);
      put(static_cast<int32_t>(f.start - kAt - bytes.size()));
      put(f.length);
    }
  }
  template <class T>
  void put(T value) {
    bytes.resize(bytes.size() + sizeof value);
    std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
  }
  std::vector<std::byte> file() const {
    return test::ElfBuilder().load(kAt, bytes).segment(PT_GNU_EH_FRAME, kAt, bytes).build();
  }
  static constexpr uint64_t kAt = 0x3000;
  std::vector<std::byte> bytes;
};

// 0: none.
uint64_t start_at(const std::vector<std::byte>& file, uint64_t address) {
  const auto elf = elf::ElfFile::parse(file);
  if (!elf) return 0;
  return FunctionStarts(*elf).find(ImageAddress(address)).value_or(ImageAddress()).value;
}

TEST(FunctionStarts, address_belongs_to_the_function_that_holds_it) {
  const auto file = Header({{0x1000, 0x20}, {0x1020, 0x10}, {0x1100, 0x10}}).file();
  EXPECT_EQ(start_at(file, 0xfff), 0u);
  EXPECT_EQ(start_at(file, 0x1000), 0x1000u);
  EXPECT_EQ(start_at(file, 0x101f), 0x1000u);
  EXPECT_EQ(start_at(file, 0x1020), 0x1020u);
  EXPECT_EQ(start_at(file, 0x1030), 0u);  // between two
  EXPECT_EQ(start_at(file, 0x110f), 0x1100u);
  EXPECT_EQ(start_at(file, 0x1110), 0u);
  EXPECT_EQ(start_at(file, ~uint64_t{0}), 0u);
}

TEST(FunctionStarts, table_that_is_cut_damaged_or_of_another_form_gives_no_more_than_it_holds) {
  const Header whole({{0x1000, 0x20}, {0x1020, 0x10}});
  for (size_t n = 0; n < whole.bytes.size(); ++n) {
    Header cut({});
    cut.bytes.assign(whole.bytes.begin(), whole.bytes.begin() + static_cast<ptrdiff_t>(n));
    const uint64_t found = start_at(cut.file(), 0x1004);
    EXPECT_TRUE(found == 0 || found == 0x1000) << n;
  }
  for (size_t at = 0; at < whole.bytes.size(); ++at) {
    for (const std::byte value : {std::byte{0}, std::byte{0x7f}, std::byte{0xff}}) {
      Header damaged = whole;
      damaged.bytes[at] = value;
      EXPECT_LE(start_at(damaged.file(), 0x1004), 0x1004u);
    }
  }
  Header other = whole;
  other.bytes[3] = std::byte{0x1b};
  EXPECT_EQ(start_at(other.file(), 0x1004), 0u);
}

TEST(FunctionStarts, file_without_unwind_information_has_none) {
  EXPECT_EQ(start_at(test::ElfBuilder().load(0x1000, std::vector<std::byte>(64)).build(), 0x1004), 0u);
}

}  // namespace
}  // namespace phlox::symbols
