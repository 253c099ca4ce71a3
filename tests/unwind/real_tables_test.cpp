// Tables of the libraries of this machine, row by row against what readelf makes of the same file.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/elf/elf_file.h"
#include "phlox/unwind/table_builder.h"

namespace phlox::unwind {
namespace {

// libc, libstdc++, the linker and whatever else this test has mapped; the Pythons that are there.
std::vector<std::string> libraries() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path != std::string::npos && line.find(".so") != std::string::npos) found.insert(line.substr(path));
  }
  for (const char* python : {"/usr/bin/python3", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"}) {
    if (std::filesystem::exists(python)) found.insert(std::filesystem::canonical(python).string());
  }
  return {found.begin(), found.end()};
}

struct Open {
  explicit Open(const std::string& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor fd;
};

// That of binutils 2.38 writes "u" in all rows of an entry in one of which the return address becomes
// undefined.
bool tells_where_it_ends() {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen("readelf --version", "r"), ::pclose);
  int major = 0, minor = 0;
  std::array<char, 256> line{};
  if (std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return false;
  const std::string text(line.data());
  std::sscanf(text.c_str() + text.find_last_of(' '), "%d.%d", &major, &minor);
  return major > 2 || minor > 38;
}

// What readelf's column says: "c-16" is 16 below the CFA, "u" not said or undefined, "s" the same.
void expect_row(const std::string& path, uint64_t pc, const std::string& cfa, const std::string& rbp,
                const std::string& rbx, const std::string& ra, const Rule& rule, size_t& compared) {
  for (const std::string& column : {cfa, rbp, rbx, ra}) {
    if (column == "exp" || column == "vexp") return;  // expressions: unwind_table_test
  }
  const bool sp = cfa.rfind("rsp", 0) == 0, fp = cfa.rfind("rbp", 0) == 0, bx = cfa.rfind("rbx", 0) == 0;
  ++compared;
  if (ra == "u") {
    static const bool tells = tells_where_it_ends();
    if (!tells && rule.kind != RuleKind::end) return;
    EXPECT_EQ(rule.kind, RuleKind::end) << path << std::hex << " " << pc;
    return;
  }
  if (!sp && !fp && !bx) {
    EXPECT_EQ(rule.kind, RuleKind::none) << path << std::hex << " " << pc << " " << cfa;
    return;
  }
  Rule expected;
  expected.kind = RuleKind::plain;
  expected.base = sp ? CfaBase::sp : fp ? CfaBase::fp : CfaBase::bx;
  expected.cfa_offset = std::atoi(cfa.c_str() + 3);
  expected.ra_offset = std::atoi(ra.c_str() + 1);
  if (rbp[0] == 'c') {
    expected.fp = FpRule::at_cfa;
    expected.fp_offset = std::atoi(rbp.c_str() + 1);
  }
  if (rbx[0] == 'c') {
    expected.bx = BxRule::at_cfa;
    expected.bx_offset = static_cast<int16_t>(std::atoi(rbx.c_str() + 1));
  }
  EXPECT_EQ(rule, expected) << path << std::hex << " " << pc << " " << cfa << " " << rbp << " " << rbx << " "
                            << ra;
}

size_t compare_with_readelf(const std::string& path, const UnwindTable& table) {
  const std::string command = "readelf --debug-dump=frames-interp '" + path + "' 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::array<char, 1024> line{};
  std::vector<std::string> columns;
  bool in_fde = false, signal = false;
  std::set<std::string> signal_cies;
  size_t compared = 0;
  while (std::fgets(line.data(), line.size(), pipe.get()) != nullptr && !testing::Test::HasFailure()) {
    std::istringstream words(line.data());
    std::vector<std::string> w;
    for (std::string word; words >> word;) w.push_back(word);
    if (w.size() > 3 && w[3] == "CIE") {
      in_fde = false;
      if (w.size() > 4 && w[4].find('S') != std::string::npos) signal_cies.insert(w[0]);
    } else if (w.size() > 4 && w[3] == "FDE") {
      in_fde = true;
      signal = signal_cies.count(w[4].substr(4)) != 0;
    } else if (!w.empty() && w[0] == "LOC") {
      columns = w;
    } else if (in_fde && w.size() == columns.size() && w.size() > 1 && w[0].size() == 16) {
      const uint64_t pc = std::strtoull(w[0].c_str(), nullptr, 16);
      std::string rbp = "u", rbx = "u", ra = "u";
      for (size_t i = 2; i < w.size(); ++i) {
        if (columns[i] == "rbp") rbp = w[i];
        if (columns[i] == "rbx") rbx = w[i];
        if (columns[i] == "ra") ra = w[i];
      }
      const Rule rule = table.find(ImageAddress(pc));
      if (signal) {
        EXPECT_EQ(rule.kind, RuleKind::signal);
        ++compared;
      } else {
        expect_row(path, pc, w[1], rbp, rbx, ra, rule, compared);
      }
    }
  }
  return compared;
}

TEST(RealTables, every_row_equals_readelf_s) {
  size_t total = 0, files = 0;
  for (const std::string& path : libraries()) {
    const Open file(path);
    const auto bytes = elf::FileBytes::read(file.fd.get(), path);
    ASSERT_TRUE(bytes) << path;
    const auto elf = elf::ElfFile::parse(bytes->bytes());
    ASSERT_TRUE(elf) << path;
    const auto start = std::chrono::steady_clock::now();
    const UnwindTable table = build_table(*elf);
    const auto took = std::chrono::steady_clock::now() - start;
    if (table.row_count() == 0) continue;
    EXPECT_EQ(table.leftovers().entries, 0u) << path;
    const size_t compared = compare_with_readelf(path, table);
    ASSERT_FALSE(HasFailure());
    std::printf("%s: %zu rows, %zu bytes, %zu not followed, %.1f ms, %zu rows compared\n", path.c_str(),
                table.row_count(), table.byte_size(), table.leftovers().rows,
                std::chrono::duration<double, std::milli>(took).count(), compared);
    total += compared;
    ++files;
  }
  EXPECT_GE(files, 4u);
  EXPECT_GE(total, 40'000u);
}

}  // namespace
}  // namespace phlox::unwind
