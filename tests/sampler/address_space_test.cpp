// Of this very process.
#include "phlox/sampler/address_space.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "phlox/memory/process_memory.h"

namespace phlox::sampler {
namespace {

class AddressSpaceOf : public testing::Test {
 protected:
  memory::ProcessMemory memory_{::getpid()};
  AddressSpace space_{::getpid(), memory_, {}};
};

uint32_t module_at(const AddressSpace& space, const void* code) {
  const auto* entry = space.map().find(RemoteAddress(reinterpret_cast<uint64_t>(code)));
  return entry != nullptr ? entry->module : unwind::kNoModule;
}

TEST_F(AddressSpaceOf, a_module_is_opened_when_it_is_asked_for) {
  ASSERT_TRUE(space_.refresh(clock_now()));
  ASSERT_GT(space_.size(), 5u);
  const size_t before = space_.opened_modules();
  EXPECT_LE(before, 1u);  // the vdso
  const void* code = reinterpret_cast<const void*>(&::getpid);
  const uint32_t libc = module_at(space_, code);
  ASSERT_NE(libc, unwind::kNoModule);
  const unwind::UnwindTable* table = space_.table_of(libc);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(space_.opened_modules(), before + 1);
  // Its bias is right in the map from now on, and after the maps have changed.
  const auto rule = [&] {
    const auto* entry = space_.map().find(RemoteAddress(reinterpret_cast<uint64_t>(code)));
    return table->find(ImageAddress(reinterpret_cast<uint64_t>(code) - entry->bias)).kind;
  };
  EXPECT_EQ(rule(), unwind::RuleKind::plain);
  void* more = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const uint64_t generation = space_.map().generation();
  ASSERT_TRUE(space_.refresh(clock_now()));
  EXPECT_NE(space_.map().generation(), generation);
  EXPECT_EQ(module_at(space_, code), libc);
  EXPECT_EQ(rule(), unwind::RuleKind::plain);
  ::munmap(more, 4096);
}

TEST_F(AddressSpaceOf, jitdumps_are_found_by_their_mapping_and_kept_open) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("phlox-jit-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  void* mapped[2];
  const std::string names[] = {(folder / "jit-4711.dump").string(), (folder / "jit-x.dump").string()};
  for (size_t i = 0; i < 2; ++i) {
    std::ofstream(names[i]) << "what it compiled";
    const Descriptor file(::open(names[i].c_str(), O_RDONLY));
    mapped[i] = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
    ASSERT_NE(mapped[i], MAP_FAILED);
  }
  space_.refresh(clock_now());
  std::filesystem::remove_all(folder);
  for (void* one : mapped) ::munmap(one, 4096);
  space_.refresh(clock_now());
  auto dumps = space_.take_jitdumps();
  ASSERT_EQ(dumps.size(), 1u);
  EXPECT_EQ(dumps[0].file.path, names[0]);
  char text[16];
  EXPECT_EQ(::pread(dumps[0].descriptor.get(), text, sizeof text, 0), 16);
}

#if defined(__x86_64__)
TEST_F(AddressSpaceOf, cpython_s_trampolines_are_known_by_their_code) {
  const uint8_t code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3};
  void* mapped = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(mapped, code, sizeof code);
  ::mprotect(mapped, 8192, PROT_READ | PROT_EXEC);
  space_.refresh(clock_now());
  const auto* entry = space_.map().find(RemoteAddress(reinterpret_cast<uint64_t>(mapped) + 4096));
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->module, unwind::kNoModule);
  EXPECT_EQ(entry->returned_to.kind, unwind::RuleKind::plain);
  EXPECT_EQ(entry->returned_to.cfa_offset, 16);
  ::munmap(mapped, 8192);
}
#endif

}  // namespace
}  // namespace phlox::sampler
