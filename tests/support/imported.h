// The result of importing bytes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/importers/importer.h"
#include "phlox/profile/profile.h"

namespace phlox::test {

struct Imported {
  profile::Profile profile;
  importers::ImportOutcome outcome;

  // A sample's stack, leaf first: names, or addresses of frames without one.
  std::vector<std::string> stack(size_t sample) const {
    std::vector<std::string> out;
    for (auto id = profile.samples()[sample].stack; id; id = profile.stack(id).parent) {
      const profile::Frame& frame = profile.frame(profile.stack(id).frame);
      out.push_back(frame.qualified_name.empty() ? fmt::format("{:#x}", frame.address)
                                                 : frame.qualified_name);
    }
    return out;
  }
};

inline Imported import_bytes(importers::ImportFunction import, std::span<const std::byte> bytes,
                             const std::string& sysroot = "/nonexistent") {
  Imported out;
  importers::MemoryInput input(bytes);
  importers::ImportOptions options;
  options.files.sysroot = sysroot;
  auto outcome = import(input, options, out.profile);
  EXPECT_TRUE(outcome.has_value());
  if (outcome) out.outcome = *std::move(outcome);
  return out;
}

inline Imported import_text(importers::ImportFunction import, std::string_view text) {
  return import_bytes(import, std::as_bytes(std::span(text)));
}

}  // namespace phlox::test
