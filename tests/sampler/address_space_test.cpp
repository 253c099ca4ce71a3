#include "phlox/sampler/assemble/address_space.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "phlox/memory/process_memory.h"

namespace phlox::sampler {
namespace {

class AddressSpaceOf : public testing::Test {
 protected:
  memory::ProcessMemory memory_{::getpid()};
  AddressSpace space_{::getpid(), memory_, {}};
};

// A child of this process: what we map ourselves of a file that we read would be among our own modules.
class Child {
 public:
  Child() {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid = ::fork();
    if (pid == 0) {
      char byte = 0;
      ::close(ends[1]);
      while (::read(ends[0], &byte, 1) == 1) {
      }
      ::_exit(0);
    }
    ::close(ends[0]);
    held_ = Descriptor(ends[1]);
  }
  ~Child() {
    held_.close();
    ::waitpid(pid, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid = -1;

 private:
  Descriptor held_;
};

TEST(AddressSpace, a_module_is_opened_when_it_is_asked_for) {
  const Child child;
  ASSERT_GT(child.pid, 0);
  memory::ProcessMemory memory(child.pid);
  AddressSpace space(child.pid, memory, {});
  ASSERT_TRUE(space.refresh(clock_now()));
  ASSERT_GT(space.size(), 5u);
  const size_t before = space.opened_modules();
  EXPECT_LE(before, 1u);  // the vdso
  const RemoteAddress code(reinterpret_cast<uint64_t>(&::getpid));
  const auto* entry = space.map().find(code);
  ASSERT_NE(entry, nullptr);
  const unwind::UnwindTable* table = space.table_of(entry->module);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(space.opened_modules(), before + 1);
  EXPECT_EQ(table->find(ImageAddress(code.value - space.map().find(code)->bias)).kind,
            unwind::RuleKind::plain);
}

TEST(AddressSpace, processes_share_what_was_read_of_a_file) {
  const Child first, second;
  ASSERT_GT(second.pid, 0);
  memory::ProcessMemory memory_of_first(first.pid), memory_of_second(second.pid);
  SharedFiles files;
  std::optional<AddressSpace> one(std::in_place, first.pid, memory_of_first, "", &files);
  AddressSpace other(second.pid, memory_of_second, {}, &files), alone(second.pid, memory_of_second, {});
  ASSERT_TRUE(one->refresh(clock_now()) && other.refresh(clock_now()) && alone.refresh(clock_now()));
  const RemoteAddress code(reinterpret_cast<uint64_t>(&::getpid));
  const uint32_t module = one->map().find(code)->module;
  ASSERT_EQ(other.map().find(code)->module, module);
  const unwind::UnwindTable* const table = one->table_of(module);
  ASSERT_NE(table, nullptr);
  EXPECT_FALSE(one->identity_of(module).empty());
  EXPECT_EQ(other.table_of(module), table);
  EXPECT_EQ(other.mapped(module).bias, one->mapped(module).bias);
  EXPECT_EQ(other.identity_of(module), one->identity_of(module));
  EXPECT_NE(alone.table_of(module), table);
  // It stays after the process that read it.
  one.reset();
  EXPECT_NE(table->find(ImageAddress(code.value - other.mapped(module).bias)).kind, unwind::RuleKind::none);
}

TEST(AddressSpace, a_module_of_a_process_that_ended_is_opened_beneath_its_root) {
  std::optional<Child> child(std::in_place);
  memory::ProcessMemory memory(child->pid);
  AddressSpace space(child->pid, memory, {});
  ASSERT_TRUE(space.refresh(clock_now()));
  child.reset();
  const auto* entry = space.map().find(RemoteAddress(reinterpret_cast<uint64_t>(&::getpid)));
  ASSERT_NE(entry, nullptr);
  EXPECT_NE(space.table_of(entry->module), nullptr);
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

TEST_F(AddressSpaceOf, cpython_s_trampolines_are_known_by_their_code) {
  const std::vector<uint8_t> codes[] = {
#if defined(__x86_64__)
    {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3},
    {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3},
#else
    {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x60, 0x00, 0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8},
    {0x3f, 0x23, 0x03, 0xd5, 0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03,
     0x00, 0x91, 0x60, 0x00, 0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8},
#endif
  };
  for (const auto& code : codes) {
    void* mapped = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(mapped, code.data(), code.size());
    ::mprotect(mapped, 8192, PROT_READ | PROT_EXEC);
    space_.refresh(clock_now());
    const auto* entry = space_.map().find(RemoteAddress(reinterpret_cast<uint64_t>(mapped) + 4096));
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->module, unwind::kNoModule);
    EXPECT_EQ(entry->returned_to.kind, unwind::RuleKind::plain);
    EXPECT_EQ(entry->returned_to.cfa_offset, 16);
    ::munmap(mapped, 8192);
  }
}

}  // namespace
}  // namespace phlox::sampler
