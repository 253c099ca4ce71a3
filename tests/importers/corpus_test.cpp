// What fuzzing came upon, and small files of the real programs (tests/fuzz/corpus): each through each
// importer, whole, cut, and with bytes changed. Ends the program where something does not hold.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "phlox/importers/registry.h"
#include "support/import_check.h"

namespace phlox::importers {
namespace {

struct Seed {
  std::string name, bytes;
};

std::vector<Seed> corpus() {
  std::vector<Seed> seeds;
  const char* tree = std::getenv("PHLOX_TREE");
  const auto folder = std::filesystem::path(tree == nullptr ? "." : tree) / "tests/fuzz/corpus";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    seeds.push_back({entry.path().string(), {std::istreambuf_iterator<char>(in), {}}});
  }
  return seeds;
}

TEST(Corpus, every_importer_ends_well_with_every_file) {
  const auto seeds = corpus();
  ASSERT_GE(seeds.size(), formats().size());
  std::set<std::string_view> recognised;
  for (const Seed& seed : seeds) {
    SCOPED_TRACE(seed.name);
    const auto bytes = std::as_bytes(std::span(seed.bytes));
    MemoryInput input(bytes);
    if (const Format* format = recognise(input)) recognised.insert(format->name);
    for (const Format& format : formats()) test::check_import(format.import, bytes);
  }
  for (const Format& format : formats()) EXPECT_TRUE(recognised.contains(format.name)) << format.name;
}

// The same changes each time: what fails here fails everywhere.
TEST(Corpus, files_with_changed_bytes_do_no_harm) {
  std::mt19937 random(1);
  for (const Seed& seed : corpus()) {
    if (seed.bytes.empty()) continue;
    SCOPED_TRACE(seed.name);
    MemoryInput input(std::as_bytes(std::span(seed.bytes)));
    const Format* format = recognise(input);
    if (format == nullptr) continue;
    for (int round = 0; round < 40; ++round) {
      std::string bytes = seed.bytes;
      for (unsigned change = 0; change < 1 + random() % 4; ++change)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      if (round % 4 == 0) bytes.resize(random() % bytes.size());
      test::check_import(format->import, std::as_bytes(std::span(bytes)));
    }
  }
}

}  // namespace
}  // namespace phlox::importers
