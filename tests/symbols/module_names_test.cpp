// This very test program is the module: its functions, its inlined ones, its debug information moved into
// files of their own.
#include "phlox/symbols/module_names.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "phlox/base/descriptor.h"

namespace phlox::symbols {

// Outside the anonymous namespace, so that the names are the plain ones.
struct Places {
  uint64_t inlined = 0;
  int line = 0, call_line = 0;
};
[[gnu::always_inline]] inline void innermost(Places& p) {
#if defined(__x86_64__)
  asm volatile("1: lea 1b(%%rip), %0" : "=r"(p.inlined));
  p.line = __LINE__;
#else
  asm volatile("adr %0, ." : "=r"(p.inlined));
  p.line = __LINE__;
#endif
}
[[gnu::noinline]] Places outermost() {
  Places p;
  innermost(p);
  p.call_line = __LINE__ - 1;  // of the call
  return p;
}

namespace {

uint64_t bias() {
  uint64_t value = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<uint64_t*>(to) = info->dlpi_addr;
        return 1;
      },
      &value);
  return value;
}

std::string self() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

bool run(const std::string& command) {
  return std::system((command + " 2>/dev/null").c_str()) == 0;
}

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "phlox-symbols-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path;
};

void expect_inlined(const Naming& naming, const Places& places) {
  EXPECT_EQ(naming.source, NameSource::debug_info);
  ASSERT_EQ(naming.levels.size(), 2u);
  EXPECT_EQ(naming.levels[0].function, "phlox::symbols::innermost(phlox::symbols::Places&)");
  EXPECT_EQ(naming.levels[0].short_name, "symbols::innermost");
  EXPECT_TRUE(naming.levels[0].inlined);
  EXPECT_NEAR(naming.levels[0].line, places.line, 1);
  EXPECT_NE(naming.levels[0].file.find("module_names_test.cpp"), std::string::npos);
  EXPECT_EQ(naming.levels[1].function, "phlox::symbols::outermost()");
  EXPECT_FALSE(naming.levels[1].inlined);
  EXPECT_EQ(naming.levels[1].line, places.call_line);
}

TEST(ModuleNames, inlined_functions_and_their_lines) {
  const Places places = outermost();
  ModuleNames names = ModuleNames::open(self(), self(), {});
  expect_inlined(names.name(ImageAddress(places.inlined - bias())), places);
  EXPECT_TRUE(names.missing().empty());
}

TEST(ModuleNames, debug_file_beside_the_module_and_by_build_id) {
  Folder folder;
  const std::string module = folder.path + "/module", debug = folder.path + "/module.debug";
  ASSERT_TRUE(run("objcopy --only-keep-debug " + self() + " " + debug));
  ASSERT_TRUE(run("objcopy --strip-all --add-gnu-debuglink=" + debug + " " + self() + " " + module));
  const Places places = outermost();
  const ImageAddress at(places.inlined - bias());
  {
    DebugSearch search;
    search.folders = {folder.path + "/nowhere"};
    ModuleNames names = ModuleNames::open(module, module, search);
    expect_inlined(names.name(at), places);
    EXPECT_EQ(names.debug_path(), debug);
    const std::string id = names.build_id();
    ASSERT_GE(id.size(), 8u);
    const std::string by_id = folder.path + "/debug/.build-id/" + id.substr(0, 2);
    std::filesystem::create_directories(by_id);
    std::filesystem::rename(debug, by_id + "/" + id.substr(2) + ".debug");
    search.folders = {folder.path + "/debug"};
    ModuleNames again = ModuleNames::open(module, module, search);
    expect_inlined(again.name(at), places);
  }
  DebugSearch nowhere;
  nowhere.folders = {};
  ModuleNames bare = ModuleNames::open(module, "/usr/lib/libfoo.so", nowhere);
  EXPECT_EQ(bare.name(at).source, NameSource::none);
  EXPECT_EQ(bare.name(at).levels[0].function.substr(0, 12), "libfoo.so+0x");
  const auto missing = bare.missing();
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_TRUE(missing[0].no_symbols);
  EXPECT_NE(missing[0].advice.find("dbgsym"), std::string::npos);
}

TEST(ModuleNames, debug_file_of_another_module_is_refused) {
  Folder folder;
  const std::string module = folder.path + "/module", debug = folder.path + "/module.debug";
  ASSERT_TRUE(run("objcopy --only-keep-debug " + self() + " " + debug));
  ASSERT_TRUE(run("objcopy --strip-all --add-gnu-debuglink=" + debug + " " + self() + " " + module));
  ASSERT_TRUE(run("objcopy --remove-section=.note.gnu.build-id " + debug));
  DebugSearch nowhere;
  nowhere.folders = {};
  EXPECT_EQ(ModuleNames::open(module, module, nowhere).debug_path(), "");
}

TEST(ModuleNames, symbols_packed_in_gnu_debugdata) {
  Folder folder;
  const std::string module = folder.path + "/module", mini = folder.path + "/mini";
  ASSERT_TRUE(run("objcopy --strip-debug " + self() + " " + mini + " && xz --keep " + mini));
  ASSERT_TRUE(
      run("objcopy --strip-all --add-section .gnu_debugdata=" + mini + ".xz " + self() + " " + module));
  DebugSearch nowhere;
  nowhere.folders = {};
  ModuleNames names = ModuleNames::open(module, module, nowhere);
  const Naming& naming = names.name(ImageAddress(outermost().inlined - bias()));
  EXPECT_EQ(naming.source, NameSource::symbol);
  EXPECT_EQ(naming.levels[0].function, "phlox::symbols::outermost()");
}

TEST(ModuleNames, same_functions_and_lines_as_addr2line) {
  ModuleNames names = ModuleNames::open(self(), self(), {});
  const Descriptor fd(::open(self().c_str(), O_RDONLY));
  const auto bytes = elf::FileBytes::read(fd.get(), self());
  const auto file = elf::ElfFile::parse(bytes->bytes());
  std::vector<uint64_t> addresses;
  file->for_each_symbol([&](const elf::Symbol& s) {
    if (s.type == STT_FUNC && s.size > 40 && s.name.find("phlox") != std::string_view::npos)
      addresses.push_back(s.address.value + s.size / 2);
    return addresses.size() < 3000;
  });
  std::string command = "addr2line -afi -e " + self();
  std::vector<uint64_t> chosen;
  for (size_t i = 0; i < addresses.size(); i += std::max<size_t>(1, addresses.size() / 100))
    chosen.push_back(addresses[i]);
  ASSERT_GE(chosen.size(), 30u);
  for (const uint64_t address : chosen) {
    std::ostringstream hex;
    hex << " 0x" << std::hex << address;
    command += hex.str();
  }
  // An address, then for each level a name and a place.
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::array<char, 65536> line{};
  std::vector<std::vector<int>> theirs;
  for (bool place = false; std::fgets(line.data(), line.size(), pipe.get()) != nullptr;) {
    const std::string text(line.data());
    if (text.substr(0, 2) == "0x") {
      theirs.emplace_back();
      place = false;
      continue;
    }
    if (place) theirs.back().push_back(std::atoi(text.c_str() + text.rfind(':') + 1));
    place = !place;
  }
  ASSERT_EQ(theirs.size(), chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    std::vector<int> ours;
    for (const auto& level : names.name(ImageAddress(chosen[i])).levels) ours.push_back(level.line);
    EXPECT_EQ(ours, theirs[i]) << std::hex << chosen[i];
  }
}

TEST(ModuleNames, entries_of_the_linkage_table_are_named) {
  const std::string libm = [] {
    Dl_info info{};
    ::dladdr(reinterpret_cast<void*>(&::popen), &info);
    return std::string(info.dli_fname);
  }();
  const std::string python = "/usr/bin/python3";
  const std::string path =
      std::filesystem::exists(python) ? std::filesystem::canonical(python).string() : libm;
  const Descriptor fd(::open(path.c_str(), O_RDONLY));
  const auto bytes = elf::FileBytes::read(fd.get(), path);
  ASSERT_TRUE(bytes);
  const auto file = elf::ElfFile::parse(bytes->bytes());
  ASSERT_TRUE(file);
  SymbolTable table;
  table.add(*file);
  table.settle();
  size_t named = 0;
  for (const auto& section : file->sections()) {
    if (section.name != ".plt") continue;
    for (uint64_t at = 16; at < section.size; at += 16) {
      const auto found = table.find(section.address + at + 4);
      named += found && found->name.find("@plt") != std::string_view::npos;
    }
  }
  EXPECT_GT(named, 5u);
}

TEST(ModuleNames, file_that_is_not_there_gives_addresses) {
  ModuleNames names = ModuleNames::open("/nonexistent/lib.so", "/app/lib.so", {});
  EXPECT_EQ(names.name(ImageAddress(0x1234)).levels[0].function, "lib.so+0x1234");
  ASSERT_EQ(names.missing().size(), 1u);
  EXPECT_EQ(names.missing()[0].why, "the file cannot be opened");
}

TEST(CythonPlace, last_comment_at_or_before_the_line) {
  constexpr std::string_view source =
      "/* Generated by Cython */\n  /* \"fast.pyx\":12\n * def f():\n  x;\n  /* \"dir/fast.pyx\":13\n  y;\n";
  EXPECT_EQ(cython_place(source, 1).file, "");
  EXPECT_EQ(cython_place(source, 4).line, 12);
  EXPECT_EQ(cython_place(source, 6).file, "dir/fast.pyx");
  EXPECT_EQ(cython_place(source, 6).line, 13);
}

TEST(DebugFiles, candidates_in_order_and_none_that_leads_elsewhere) {
  DebugSearch search;
  search.folders = {"/mine", "/usr/lib/debug"};
  EXPECT_EQ(
      debug_file_candidates("abcdef", DebugLink{"x.debug", 1}, "/lib/x.so", search),
      (std::vector<std::string>{"/mine/.build-id/ab/cdef.debug", "/usr/lib/debug/.build-id/ab/cdef.debug",
                                "/lib/x.debug", "/lib/.debug/x.debug", "/mine/lib/x.debug", "/mine/x.debug",
                                "/usr/lib/debug/lib/x.debug", "/usr/lib/debug/x.debug"}));
  EXPECT_TRUE(debug_file_candidates("../../etc", std::nullopt, "/lib/x.so", search).empty());
}

}  // namespace
}  // namespace phlox::symbols
