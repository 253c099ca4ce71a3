#include "phlox/cli/native_names.h"

#include <gtest/gtest.h>

#include "phlox/profile/profile.h"

namespace phlox::cli {
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

// Of a module that is not there, of one that nobody tells of, of none, and a function that has its name.
void put_some(NativeRows& rows) {
  rows.put_module(profile::ModuleId(1), {"/nowhere/lib.so", "", 0});
  Frame python;
  python.function = "main";
  rows.put_frame(FrameId(1), python);
  rows.put_frame(FrameId(2), native(0x10, profile::ModuleId(1)));
  rows.put_frame(FrameId(3), native(0x20, profile::ModuleId(2)));
  rows.put_frame(FrameId(4), native(0x30));
  Frame named = native(0);
  named.function = "known_already";
  rows.put_frame(FrameId(5), named);
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

}  // namespace
}  // namespace phlox::cli
