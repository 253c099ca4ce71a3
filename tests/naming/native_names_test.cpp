#include "phlox/naming/native_names.h"

#include <gtest/gtest.h>

#include "phlox/base/memory_file.h"
#include "phlox/profile/profile.h"

namespace phlox::naming {
namespace {

using profile::Frame;
using profile::FrameId;
using profile::FrameKind;

Frame native(uint64_t address, std::optional<profile::ModuleId> module = {}) {
  Frame frame;
  frame.kind = FrameKind::native;
  frame.address = address;
  frame.module = module;
  return frame;
}

// Of a missing module, of an unknown one, of none, and a function that has its name.
void put_some(NativeRows& rows) {
  rows.emit(profile::ModuleId(1), {"/nowhere/lib.so", "", 0});
  Frame python;
  python.function = "main";
  rows.emit(FrameId(1), python);
  rows.emit(FrameId(2), native(0x10, profile::ModuleId(1)));
  rows.emit(FrameId(3), native(0x20, profile::ModuleId(2)));
  rows.emit(FrameId(4), native(0x30));
  Frame named = native(0);
  named.function = "known_already";
  rows.emit(FrameId(5), named);
}

std::vector<profile::NativeModule> modules() {
  profile::NativeModule module;
  module.id = profile::ModuleId(1);
  module.path = module.open_path = "/nowhere/lib.so";
  return {module};
}

TEST(NativeRows, rows_put_when_named_are_those_put_at_once) {
  profile::Profile at_once, when_named;
  NativeRows first(at_once, NativeRows::Kernel::named_already);
  NativeRows second(when_named, NativeRows::Kernel::named_already, NativeRows::Put::when_named);
  for (NativeRows* rows : {&first, &second}) put_some(*rows);
  EXPECT_EQ(at_once.frames().size(), 5u);
  EXPECT_EQ(when_named.frames().size(), 1u);
  for (NativeRows* rows : {&first, &second}) rows->name(modules(), {});
  ASSERT_EQ(when_named.frames().size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const Frame &a = at_once.frames()[i], &b = when_named.frames()[i];
    EXPECT_EQ(std::tie(a.kind, a.function, a.address, a.module),
              std::tie(b.kind, b.function, b.address, b.module))
        << i;
  }
}

std::shared_ptr<Descriptor> file_with(std::string_view text) {
  return std::make_shared<Descriptor>(memory_file(std::as_bytes(std::span(text))));
}

// Both processes have code at one address; one of them writes a map of all that it can think of.
TEST(NativeRows, a_perf_map_names_the_code_of_its_own_process_alone) {
  profile::Profile profile;
  NativeRows rows(profile, NativeRows::Kernel::named_already);
  for (const uint32_t id : {1, 2, 3}) rows.emit(FrameId(id), native(id == 3 ? 0x5000 : 0x1010));
  std::vector<profile::NativeModule> modules(2);
  for (auto& module : modules) module.kind = profile::NativeFile::perf_map;
  modules[0].descriptor = file_with("1000 100 mine\n");
  modules[0].code = std::make_shared<std::set<FrameId>>(std::set<FrameId>{FrameId(1)});
  modules[1].descriptor = file_with("0 ffffff evil\n");
  modules[1].code = std::make_shared<std::set<FrameId>>(std::set<FrameId>{FrameId(3)});
  rows.name(modules, {});
  EXPECT_EQ(profile.frames()[0].function, "mine");
  EXPECT_EQ(profile.frames()[1].function, "+0x1010") << "of a process that wrote no map";
  EXPECT_EQ(profile.frames()[2].function, "evil");
}

TEST(NativeRows, names_that_take_too_long_are_left_out_and_that_is_said) {
  for (const NativeRows::Patience& patience :
       {NativeRows::Patience{.of_process = 0}, NativeRows::Patience{.of_all = 0}}) {
    profile::Profile profile;
    NativeRows rows(profile, NativeRows::Kernel::named_already, NativeRows::Put::when_named);
    put_some(rows);
    const auto missing = rows.name(modules(), {}, patience);
    EXPECT_EQ(profile.frames().size(), 5U) << "with their addresses";
    ASSERT_EQ(missing.size(), 1U);
    EXPECT_NE(describe(missing[0]).find("took too long"), std::string::npos);
    EXPECT_FALSE(missing[0].names.complete) << "said without --verbose, and in the recording";
  }
}

}  // namespace
}  // namespace phlox::naming
