// This very test program is the module: its functions, its inlined ones, its debug information moved into
// files of their own.
#include "phlox/symbols/module_names.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "phlox/base/descriptor.h"
#include "support/load_bias.h"

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

[[gnu::noinline]] Places of_this_file() {
  Places p;
  innermost(p);
  return p;
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
  expect_inlined(names.name(ImageAddress(places.inlined - test::load_bias())), places);
  EXPECT_TRUE(names.missing().empty());
}

// Of a function that is not exported debug information of -g1 has the name alone, and no namespace.
TEST(ModuleNames, the_symbol_says_what_a_function_of_few_debug_information_is_a_member_of) {
  const Places places = of_this_file();
  ModuleNames names = ModuleNames::open(self(), self(), {});
  EXPECT_EQ(names.name(ImageAddress(places.inlined - test::load_bias())).levels.back().function,
            "phlox::symbols::(anonymous namespace)::of_this_file()");
}

TEST(ModuleNames, debug_file_next_to_the_module_and_by_build_id) {
  Folder folder;
  const std::string module = folder.path + "/module", debug = folder.path + "/module.debug";
  ASSERT_TRUE(run("objcopy --only-keep-debug " + self() + " " + debug));
  ASSERT_TRUE(run("objcopy --strip-all --add-gnu-debuglink=" + debug + " " + self() + " " + module));
  const Places places = outermost();
  const ImageAddress at(places.inlined - test::load_bias());
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
  // The function's start, whichever of its addresses was asked for: from the unwind information.
  const std::string start =
      fmt::format("libfoo.so+{:#x}", reinterpret_cast<uint64_t>(&outermost) - test::load_bias());
  EXPECT_EQ(bare.name(at).levels[0].function, start);
  EXPECT_EQ(bare.name(at + 1).levels[0].function, start);
  EXPECT_EQ(bare.name(ImageAddress(8)).levels[0].function, "libfoo.so+0x8");  // no code
  const auto missing = bare.missing();
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_TRUE(missing[0].no_symbols);
  EXPECT_NE(missing[0].advice.find("debug symbols of its package"), std::string::npos);
  EXPECT_NE(missing[0].advice.find("debuginfod-find debuginfo " + bare.build_id()), std::string::npos);
}

TEST(ModuleNames, names_are_kept_until_the_file_is_another) {
  Folder folder;
  const std::string module = folder.path + "/module";
  ASSERT_TRUE(run("cp " + self() + " " + module));
  DebugSearch search;
  search.folders = {};
  search.name_cache = folder.path + "/names";
  const Places places = outermost();
  const ImageAddress at(places.inlined - test::load_bias());
  {
    ModuleNames names = ModuleNames::open(module, module, search);
    expect_inlined(names.name(at), places);
    names.keep();
  }
  // What was kept is what comes back.
  ASSERT_TRUE(run("sed -i s/innermost/INNERMOST/g " + folder.path + "/names/*"));
  {
    ModuleNames names = ModuleNames::open(module, module, search);
    EXPECT_EQ(names.name(at).levels[0].short_name, "symbols::INNERMOST");
  }
  // Another file, although its owner gave it the size and the time of the one before.
  ASSERT_TRUE(run("cd " + folder.path +
                  " && touch -r module time && size=$(stat -c %s module) && head -c 65536 module > head && "
                  ": > module && cat head >> module && truncate -s $size module && touch -r time module"));
  {
    ModuleNames names = ModuleNames::open(module, module, search);
    EXPECT_EQ(names.name(at).source, NameSource::none);
  }
  ASSERT_TRUE(run("cp " + self() + " " + module + " && objcopy --strip-all " + module));
  ModuleNames names = ModuleNames::open(module, module, search);
  EXPECT_EQ(names.name(at).source, NameSource::none);
}

TEST(NameCache, damaged_or_of_another_identity_is_none) {
  Naming naming;
  naming.source = NameSource::debug_info;
  naming.levels = {{"a::b(int)", "a::b", "a.cpp", 7, true}, {"main", "main", "", 0, false}};
  const std::string bytes = NameCache::bytes_of("this", {{0x1000, naming}});
  const auto back = NameCache::parse(bytes, "this");
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back.at(0x1000).levels[0].function, "a::b(int)");
  EXPECT_EQ(back.at(0x1000).levels[0].line, 7);
  EXPECT_TRUE(back.at(0x1000).levels[0].inlined);
  EXPECT_EQ(back.at(0x1000).levels.size(), 2u);
  EXPECT_TRUE(NameCache::parse(bytes, "that").empty());
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_TRUE(NameCache::parse(std::string_view(bytes).substr(0, n), "this").empty());
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x81);
    NameCache::parse(damaged, "this");  // anything but a crash
  }
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
  const Naming& naming = names.name(ImageAddress(outermost().inlined - test::load_bias()));
  EXPECT_EQ(naming.source, NameSource::symbol);
  EXPECT_EQ(naming.levels[0].function, "phlox::symbols::outermost()");
}

// malloc() of the C library, whose own file is stripped: the package libc6-dbg has the rest, by its build-id
// in /usr/lib/debug, where it is called __libc_malloc.
TEST(ModuleNames, debug_file_of_the_system_and_the_name_that_people_know) {
  Dl_info info{};
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "malloc"), &info), 0);
  const std::string libc = std::filesystem::canonical(info.dli_fname).string();
  if (libc.find("libc.so") == std::string::npos) GTEST_SKIP() << "malloc() is not the C library's: " << libc;
  const ImageAddress at(reinterpret_cast<uint64_t>(info.dli_saddr) -
                        reinterpret_cast<uint64_t>(info.dli_fbase));
  ModuleNames names = ModuleNames::open(libc, libc, {});
  EXPECT_EQ(names.debug_path().substr(0, 24), "/usr/lib/debug/.build-id") << "libc6-dbg is not installed";
  const Naming& naming = names.name(at);
  EXPECT_EQ(naming.source, NameSource::debug_info);
  EXPECT_EQ(naming.levels.back().function, "malloc");
  EXPECT_NE(naming.levels.back().file.find("malloc.c"), std::string::npos);
  EXPECT_GT(naming.levels.back().line, 0);
  DebugSearch nowhere;
  nowhere.folders = {};
  EXPECT_EQ(ModuleNames::open(libc, libc, nowhere).name(at).source, NameSource::symbol);
}

// read() of the C library, a part of which GCC took out and put back: it is one function, not one in itself.
TEST(ModuleNames, a_part_of_a_function_is_no_function_of_its_own) {
  Dl_info info{};
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "read"), &info), 0);
  const std::string libc = std::filesystem::canonical(info.dli_fname).string();
  if (libc.find("libc.so") == std::string::npos) GTEST_SKIP() << "read() is not the C library's: " << libc;
  const uint64_t start =
      reinterpret_cast<uint64_t>(info.dli_saddr) - reinterpret_cast<uint64_t>(info.dli_fbase);
  ModuleNames names = ModuleNames::open(libc, libc, {});
  for (uint64_t at = start; at < start + 0x80; ++at) {
    const Naming& naming = names.name(ImageAddress(at));
    ASSERT_EQ(naming.source, NameSource::debug_info);
    if (naming.levels.back().function != "read") break;
    EXPECT_EQ(naming.levels.size(), 1u) << naming.levels[0].function << " at " << at - start;
  }
}

TEST(ModuleNames, a_function_that_calls_itself_is_inlined_in_itself) {
  Folder folder;
  const std::string f = folder.path;
  std::ofstream(f + "/fib.c") << "int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n";
  ASSERT_TRUE(
      run("cd " + f + " && gcc -g -O3 -shared -fPIC -fvisibility=hidden -Wl,-Bsymbolic fib.c -o fib.so"));
  ASSERT_TRUE(run("cd " + f + " && nm fib.so | awk '$3==\"fib\" {print $1}' > start"));
  std::string line;
  std::getline(std::ifstream(f + "/start") >> std::ws, line);
  const uint64_t start = std::stoull(line, nullptr, 16);
  ModuleNames names = ModuleNames::open(f + "/fib.so", f + "/fib.so", {});
  size_t deepest = 0;
  for (uint64_t at = start; at < start + 512; ++at)
    deepest = std::max(deepest, names.name(ImageAddress(at)).levels.size());
  EXPECT_GT(deepest, 2u);
}

// Debian's debug packages: dwz moves what two files share into a third.
TEST(ModuleNames, shared_debug_information_in_a_file_of_its_own) {
  Folder folder;
  const std::string f = folder.path;
  std::ofstream(f + "/shared.h")
      << "struct pair { long first, second; struct pair* next; const char* name; };\n"
         "static inline __attribute__((always_inline)) long\n"
         "shared(volatile struct pair* p) {\n"
         "  return p->first * p->second + p->next->first;\n"
         "}\n";
  for (const std::string name : {"one", "two"}) {
    std::ofstream(f + "/" + name + ".c")
        << "#include \"shared.h\"\nlong " + name + "(volatile struct pair* p) { return shared(p) + 1; }\n";
    ASSERT_TRUE(
        run("cd " + f + " && gcc -g -O2 -shared -fPIC -Wl,--build-id " + name + ".c -o " + name + ".so"));
  }
  ASSERT_TRUE(run("cd " + f + " && dwz -m shared.debug -M " + f + "/shared.debug one.so two.so"));
  ASSERT_TRUE(std::filesystem::exists(f + "/shared.debug"));
  const Descriptor fd(::open((f + "/one.so").c_str(), O_RDONLY));
  const auto bytes = elf::FileBytes::read(fd.get(), "one.so");
  ASSERT_TRUE(bytes);
  const auto file = elf::ElfFile::parse(bytes->bytes());
  ASSERT_TRUE(file && debug_alt_link(*file));
  const auto symbol = file->find_symbol("one");
  ASSERT_TRUE(symbol);
  // Some address of the function is in what was inlined.
  const auto inlined = [&](ModuleNames& names) {
    for (uint64_t at = 0; at < symbol->size; ++at) {
      const Naming& naming = names.name(symbol->address + at);
      if (naming.levels.size() == 2) return naming.levels[0].function;
    }
    return std::string();
  };
  DebugSearch nowhere;
  nowhere.folders = {};
  {
    ModuleNames names = ModuleNames::open(f + "/one.so", f + "/one.so", nowhere);
    EXPECT_EQ(inlined(names), "shared");
    EXPECT_TRUE(names.missing().empty());
  }
  // Another file of that name is not taken for it.
  const std::string by_id = f + "/debug/.build-id/" + debug_alt_link(*file)->build_id.substr(0, 2);
  std::filesystem::create_directories(by_id);
  std::filesystem::rename(f + "/shared.debug",
                          by_id + "/" + debug_alt_link(*file)->build_id.substr(2) + ".debug");
  std::filesystem::copy(f + "/two.so", f + "/shared.debug");
  {
    ModuleNames names = ModuleNames::open(f + "/one.so", f + "/one.so", nowhere);
    EXPECT_EQ(inlined(names), "");
    ASSERT_EQ(names.missing().size(), 1u);
    EXPECT_NE(names.missing()[0].why.find("shared part"), std::string::npos);
  }
  nowhere.folders = {f + "/debug"};
  ModuleNames names = ModuleNames::open(f + "/one.so", f + "/one.so", nowhere);
  EXPECT_EQ(inlined(names), "shared");
}

// The compiler writes the function of a lambda below the function that contains it.
TEST(ModuleNames, functions_within_functions_are_named) {
  Folder folder;
  const std::string f = folder.path;
  std::ofstream(f + "/one.cpp")
      << "static inline __attribute__((always_inline)) long twice(volatile long* p) {\n"
         "  return *p + *p;\n"
         "}\n"
         "extern \"C\" long (*outer(long n))(volatile long*) {\n"
         "  auto inner = [](volatile long* p) { return twice(p) * *p; };\n"
         "  return n > 0 ? static_cast<long (*)(volatile long*)>(inner) : nullptr;\n"
         "}\n";
  ASSERT_TRUE(run("cd " + f + " && g++ -g -O2 -shared -fPIC -fcf-protection=none one.cpp -o one.so"));
  const Descriptor fd(::open((f + "/one.so").c_str(), O_RDONLY));
  const auto bytes = elf::FileBytes::read(fd.get(), "one.so");
  ASSERT_TRUE(bytes);
  const auto file = elf::ElfFile::parse(bytes->bytes());
  std::optional<uint64_t> lambda;
  file->for_each_symbol([&](const elf::Symbol& s) {
    if (s.type == STT_FUNC && s.name.find("UlPVlE_4_FUN") != std::string_view::npos) lambda = s.address.value;
    return !lambda;
  });
  ASSERT_TRUE(lambda);
  ModuleNames names = ModuleNames::open(f + "/one.so", f + "/one.so", {});
  const Naming& naming = names.name(ImageAddress(*lambda));
  EXPECT_EQ(naming.source, NameSource::debug_info);
  ASSERT_GE(naming.levels.size(), 2u);
  EXPECT_EQ(naming.levels[0].function, "twice");
}

// A constructor or destructor has several mangled names (Itanium C++ ABI, 5.1.4.3): C1, C2, D0, D2; GCC adds
// C4, D4.
std::string without_variant(std::string name) {
  for (size_t i = 0; i + 2 < name.size(); ++i) {
    if ((name[i] == 'C' || name[i] == 'D') && name[i + 1] >= '0' && name[i + 1] <= '5' && name[i + 2] == 'E')
      name[i + 1] = '0';
  }
  return name;
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
  // Called like the one before: maybe a function of which a part is inlined into the rest, no level of ours.
  std::vector<std::vector<bool>> may_be_part;
  std::string function, around;
  for (bool place = false; std::fgets(line.data(), line.size(), pipe.get()) != nullptr;) {
    const std::string text(line.data());
    if (text.substr(0, 2) == "0x") {
      theirs.emplace_back();
      may_be_part.emplace_back();
      function.clear();
      place = false;
      continue;
    }
    if (place) {
      theirs.back().push_back(std::atoi(text.c_str() + text.rfind(':') + 1));
      may_be_part.back().push_back(without_variant(function) == without_variant(around));
    }
    if (place)
      function = around;
    else
      around = text;
    place = !place;
  }
  ASSERT_EQ(theirs.size(), chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    std::vector<int> ours, expected;
    for (const auto& level : names.name(ImageAddress(chosen[i])).levels) ours.push_back(level.line);
    for (size_t k = 0; k < theirs[i].size(); ++k) {
      const size_t at = expected.size();
      if (!may_be_part[i][k] || (at < ours.size() && ours[at] == theirs[i][k]))
        expected.push_back(theirs[i][k]);
    }
    EXPECT_EQ(ours, expected) << std::hex << chosen[i];
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
    if (section.name != ".plt" && section.name != ".plt.sec") continue;  // with endbr64 the second is called
    for (uint64_t at = 16; at < section.size; at += 16) {
      const auto found = table.find(section.address + at + 4);
      named += found && found->name.find("@plt") != std::string_view::npos;
    }
  }
  EXPECT_GT(named, 5u);
}

std::map<std::string, uint64_t> addresses_in(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY));
  const auto bytes = elf::FileBytes::read(fd.get(), path);
  const auto file = bytes ? elf::ElfFile::parse(bytes->bytes()) : Result<elf::ElfFile>(fail(bytes));
  std::map<std::string, uint64_t> out;
  if (file) {
    file->for_each_symbol([&](const elf::Symbol& s) {
      out[std::string(s.name)] = s.address.value;
      return true;
    });
  }
  return out;
}

std::string name_at(ModuleNames& names, uint64_t address) {
  return names.name(ImageAddress(address)).levels.back().function;
}

TEST(ModuleNames, an_exported_name_reaches_no_further_than_its_function) {
  Folder folder;
  const std::string f = folder.path;
  // As assembler is written by hand: names without a size, with and without unwind information.
  std::ofstream(f + "/one.s") << "  .text\n"
                                 "  .globl sized, label, bare, with_cfi, entry\n"
                                 "  .type sized, @function\n"
                                 "sized: nop\n"
                                 "label: nop\n"
                                 "  .skip 14\n"
                                 "  .size sized, . - sized\n"
                                 "hidden: .skip 64\n"  // behind it, of a function that was stripped
                                 "  .type with_cfi, @function\n"
                                 "with_cfi: .cfi_startproc\n"
                                 "  .skip 32\n"
                                 "  .cfi_endproc\n"
                                 "  .skip 32\n"
                                 "  .type bare, @function\n"
                                 "bare: .skip 100000\n"
                                 "  .section .text.other, \"ax\"\n"
                                 "  .skip 256\n";
  ASSERT_TRUE(run("cd " + f + " && gcc -shared -nostdlib -nostartfiles one.s -o one.so && strip one.so"));
  auto at = addresses_in(f + "/one.so");
  ASSERT_TRUE(at["sized"] != 0 && at["bare"] != 0 && at["with_cfi"] != 0);
  ModuleNames names = ModuleNames::open(f + "/one.so", f + "/one.so", {});
  EXPECT_EQ(name_at(names, at["sized"] + 3), "sized");  // not by the label within
  EXPECT_EQ(name_at(names, at["sized"] + 20), fmt::format("one.so+{:#x}", at["sized"] + 20));
  EXPECT_EQ(name_at(names, at["with_cfi"] + 31), "with_cfi");
  EXPECT_EQ(name_at(names, at["with_cfi"] + 40), fmt::format("one.so+{:#x}", at["with_cfi"] + 40));
  EXPECT_EQ(name_at(names, at["bare"] + 20'000), "bare");
  EXPECT_EQ(name_at(names, at["bare"] + 90'000), fmt::format("one.so+{:#x}", at["bare"] + 90'000));
}

TEST(ModuleNames, a_name_without_a_size_ends_with_its_section) {
  Folder folder;
  const std::string f = folder.path;
  std::ofstream(f + "/two.s") << "  .section .init, \"ax\"\n"
                                 "  .globl _init\n"
                                 "  .type _init, @function\n"
                                 "_init: nop\n"
                                 "  ret\n"
                                 "  .text\n"
                                 "  .globl last\n"
                                 "  .skip 256\n"
                                 "last: nop\n";
  ASSERT_TRUE(run("cd " + f + " && gcc -shared -nostdlib -nostartfiles two.s -o two.so && strip two.so"));
  auto at = addresses_in(f + "/two.so");
  ASSERT_TRUE(at["_init"] != 0 && at["last"] != 0);
  ModuleNames names = ModuleNames::open(f + "/two.so", f + "/two.so", {});
  EXPECT_EQ(name_at(names, at["_init"] + 1), "_init");
  EXPECT_EQ(name_at(names, at["last"] - 16), fmt::format("two.so+{:#x}", at["last"] - 16));
}

TEST(ModuleNames, a_function_is_where_it_is_declared_whatever_file_its_lines_are_in) {
  Folder folder;
  const std::string f = folder.path;
  std::ofstream(f + "/cases.c.h") << "case 1: x += p[1]; break;\n";
  std::ofstream(f + "/switch.c") << "int x;\n"
                                    "void run(volatile int* p, int n) {\n"
                                    "  switch (n) {\n"
                                    "#include \"cases.c.h\"\n"
                                    "    default: x -= p[2];\n"
                                    "  }\n"
                                    "#line 77 \"elsewhere.y\"\n"
                                    "  x *= p[0];\n"
                                    "}\n";
  ASSERT_TRUE(run("cd " + f + " && gcc -g -O0 -shared -fPIC switch.c -o switch.so"));
  const uint64_t start = addresses_in(f + "/switch.so")["run"];
  ASSERT_NE(start, 0u);
  ModuleNames names = ModuleNames::open(f + "/switch.so", f + "/switch.so", {});
  std::set<std::string> files, declared;
  for (uint64_t at = start; at < start + 256; ++at) {
    const NativeName& name = names.name(ImageAddress(at)).levels.back();
    if (name.function != "run") break;
    files.insert(name.file.substr(name.file.rfind('/') + 1));
    declared.insert(fmt::format("{}:{}", name.declared_file.substr(name.declared_file.rfind('/') + 1),
                                name.declared_line));
  }
  EXPECT_EQ(files, (std::set<std::string>{"switch.c", "cases.c.h", "elsewhere.y"}));
  EXPECT_EQ(declared, std::set<std::string>{"switch.c:2"});
}

TEST(ModuleNames, file_that_is_not_there_gives_addresses) {
  ModuleNames names = ModuleNames::open("/nonexistent/lib.so", "/app/lib.so", {});
  EXPECT_EQ(names.name(ImageAddress(0x1234)).levels[0].function, "lib.so+0x1234");
  ASSERT_EQ(names.missing().size(), 1u);
  EXPECT_EQ(names.missing()[0].why, "the file cannot be opened");
}

TEST(Advice, by_where_the_module_comes_from) {
  MissingNames m;
  m.module = "/usr/lib/x86_64-linux-gnu/libfoo.so.1";
  EXPECT_EQ(advise(m, "libfoo1"), "apt install libfoo1-dbgsym (from the archive's debug part)");
  EXPECT_EQ(advise(m, "libc6"), "apt install libc6-dbg");
  EXPECT_EQ(advise(m, "libpython3.11-minimal"), "apt install python3.11-dbg");
  EXPECT_EQ(advise(m, "python3.13"), "apt install python3.13-dbg");
  EXPECT_EQ(advise(m, "python3-numpy"), "apt install python3-numpy-dbgsym (from the archive's debug part)");
  EXPECT_EQ(advise(m, ""), "install the debug symbols of its package");
  m.build_id = "abcdef";
  EXPECT_EQ(advise(m, "libc6"),
            "apt install libc6-dbg, or ask with --debuginfod (debuginfod-find debuginfo abcdef)");
  m.tried_debuginfod = true;
  EXPECT_EQ(advise(m, "libc6"), "apt install libc6-dbg");
  m.module = "/home/me/venv/lib/python3.11/site-packages/fast.so";
  EXPECT_NE(advise(m, "").find("--no-binary"), std::string::npos);
  m.module = "/home/me/libmine.so";
  EXPECT_EQ(advise(m, ""), "build it with -g and without stripping");
  m.rust = true;
  EXPECT_NE(advise(m, "").find("-C debuginfo=1"), std::string::npos);
  m.complete = true;
  EXPECT_NE(advise(m, "").find("nothing to do"), std::string::npos);
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
