// locate() on processes that never were: every row of the table, and what must be refused.
#include <gtest/gtest.h>

#include "phlox/memory/recorded_memory.h"
#include "phlox/python/debug_offsets.h"
#include "phlox/python/locate.h"
#include "support/debug_offsets_of.h"
#include "support/elf_builder.h"
#include "support/fake_interpreter.h"
#include "support/layout_rows.h"

namespace phlox::python {
namespace {

process::LoadedModule loaded_as(const process::Module& module, test::ElfBuilder builder) {
  auto file = elf::FileBytes::own(builder.build());
  auto elf = elf::ElfFile::parse(file.bytes());
  return {module, std::move(file), std::move(*elf), 0};
}

process::Mapping mapping(uint64_t start, uint64_t end, const std::string& path, bool writable = true,
                         uint64_t offset = 0) {
  process::Mapping m;
  m.start = RemoteAddress(start);
  m.end = RemoteAddress(end);
  m.readable = true;
  m.writable = writable;
  m.offset = offset;
  m.inode = 1 + std::hash<std::string>{}(path) % 1000;
  m.path = path;
  return m;
}

class EveryRow : public testing::TestWithParam<const Layout*> {
 protected:
  EveryRow() : fake_(*GetParam()) {
    fake_.thread().calls("main").calls("work");
    fake_.new_thread().calls("other");
    const Layout& row = *GetParam();
    if (row.runtime.debug_offsets.present()) {
      fake_.memory().put(fake_.interpreter().runtime + *row.runtime.debug_offsets,
                         test::debug_offsets_of(row));
    }
    const uint64_t end = fake_.memory().allocate(1, 4096).value;
    path_ = "/usr/lib/libpython" + std::to_string(row.major) + "." + std::to_string(row.minor) +
            (row.traits.free_threaded ? "t" : "") + (row.traits.debug ? "d" : "") + ".so.1.0";
    maps_ = {mapping(0x400000, 0x401000, "/usr/bin/app", false), mapping(0x7f00'0000'1000, end, path_)};
  }

  Result<Interpreter> locate_in(const test::ElfBuilder& library) {
    attempts_.clear();
    ProcessView view{1, "/usr/bin/app", maps_,
                     [&](const process::Module& m) -> Result<process::LoadedModule> {
                       return loaded_as(m, m.path == path_ ? library : test::ElfBuilder());
                     },
                     fake_.memory()};
    return locate(view, &attempts_);
  }

  void expect_found(const Result<Interpreter>& found, const std::string& how) {
    std::string tried;
    for (const Attempt& a : attempts_) tried += a.strategy + ": " + a.reason + "; ";
    ASSERT_TRUE(found.has_value()) << found.error().message << " " << tried;
    EXPECT_EQ(found->layout.name, GetParam()->name);
    EXPECT_EQ(found->interpreters_head, fake_.interpreter().interpreters_head);
    EXPECT_EQ(found->runtime, fake_.interpreter().runtime);
    EXPECT_EQ(found->gil, fake_.interpreter().gil);
    EXPECT_TRUE(found->found_by.starts_with(how)) << found->found_by;
  }
  bool has_runtime() const { return GetParam()->runtime.interpreters_head.present(); }

  test::FakeInterpreter fake_;
  std::string path_;
  std::vector<process::Mapping> maps_;
  std::vector<Attempt> attempts_;
};

TEST_P(EveryRow, is_found_by_its_symbol) {
  const Interpreter truth = fake_.interpreter();
  const std::string symbol = has_runtime() ? "_PyRuntime" : "interp_head";
  const RemoteAddress place = has_runtime() ? truth.runtime : truth.interpreters_head;
  expect_found(locate_in(test::ElfBuilder().symbols({{symbol, place.value}})), "symbol " + symbol);
}

TEST_P(EveryRow, is_found_by_its_section_without_symbols) {
  if (!has_runtime()) return;  // 2.7 and 3.6 have no _PyRuntime to give a section
  test::ElfBuilder library;
  library.section(".PyRuntime", SHT_NOBITS, fake_.interpreter().runtime.value, {});
  expect_found(locate_in(library), "section .PyRuntime");
}

TEST_P(EveryRow, is_found_in_memory_alone) {
  expect_found(locate_in(test::ElfBuilder().without_sections()), GetParam()->runtime.debug_offsets.present()
                                                                     ? "debug-offsets cookie"
                                                                     : "scan of writable memory");
}

TEST_P(EveryRow, is_not_believed_when_a_thread_state_points_elsewhere) {
  fake_.set(fake_.thread().state(), GetParam()->thread.interp, fake_.state() + 64);
  const auto found = locate_in(test::ElfBuilder());
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, ErrorKind::target_state);
  EXPECT_FALSE(attempts_.empty());
}

// A CFrame says where its frames begin.
class RowWithCFrames : public EveryRow {};

TEST_P(RowWithCFrames, is_found_while_its_threads_enter_evaluations) {
  const Layout& row = *GetParam();
  auto& memory = fake_.memory();
  RemoteAddress state(memory.get<uint64_t>(fake_.state() + *row.interpreter.threads_head));
  for (; state; state = RemoteAddress(memory.get<uint64_t>(state + *row.thread.next))) {
    const auto before = memory.get<uint64_t>(state + *row.thread.cframe);
    const RemoteAddress cframe = memory.allocate(64);
    fake_.set(cframe, row.cframe.previous, before);
    fake_.set(cframe, row.cframe.current_frame, cframe.value + 24);  // what lay on the C stack
    fake_.set(state, row.thread.cframe, cframe);
  }
  const auto found = locate_in(test::ElfBuilder());
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->interpreters_head, fake_.interpreter().interpreters_head);
}

TEST_P(EveryRow, that_is_not_up_yet_is_said_to_be_so) {
  fake_.memory().put_value(fake_.interpreter().interpreters_head, uint64_t{0});
  const Interpreter truth = fake_.interpreter();
  const auto found = locate_in(
      test::ElfBuilder().symbols({{has_runtime() ? "_PyRuntime" : "interp_head",
                                   (has_runtime() ? truth.runtime : truth.interpreters_head).value}}));
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, ErrorKind::target_state);
}

TEST_P(EveryRow, with_its_interpreters_in_a_ring_is_not_believed_and_ends) {
  fake_.set(fake_.state(), GetParam()->interpreter.next, fake_.state());
  const auto found = locate_in(test::ElfBuilder());
  EXPECT_FALSE(found.has_value());
}

INSTANTIATE_TEST_SUITE_P(Locate, EveryRow, testing::ValuesIn(test::layout_rows()), test::row_name);
INSTANTIATE_TEST_SUITE_P(Locate, RowWithCFrames, testing::ValuesIn(test::layout_rows([](const Layout& row) {
                           return row.traits.anchor == FrameAnchor::cframe;
                         })),
                         test::row_name);

// One program, made of nothing but names.
Result<Interpreter> locate_program(const std::string& executable, const std::string& library,
                                   test::ElfBuilder builder = {}) {
  memory::RecordedMemory memory;
  std::vector<process::Mapping> maps = {mapping(0x400000, 0x401000, executable)};
  if (!library.empty()) maps.push_back(mapping(0x7f0000000000, 0x7f0000001000, library));
  ProcessView view{7, executable, maps,
                   [&](const process::Module& m) -> Result<process::LoadedModule> {
                     auto bytes = builder.build();
                     if (auto parsed = elf::ElfFile::parse(bytes); !parsed) return fail(parsed);
                     return loaded_as(m, builder);
                   },
                   memory};
  return locate(view);
}

TEST(LocateFakeTest, other_implementations_are_refused_by_name) {
  const auto name_in = [](const Result<Interpreter>& r, const char* name) {
    return !r && r.error().kind == ErrorKind::unsupported_python &&
           r.error().message.find(name) != std::string::npos;
  };
  EXPECT_TRUE(name_in(locate_program("/opt/pypy/bin/pypy3.10", "/opt/pypy/bin/libpypy3.10-c.so"), "PyPy"));
  EXPECT_TRUE(name_in(locate_program("/usr/bin/pypy3", ""), "PyPy"));
  EXPECT_TRUE(
      name_in(locate_program("/opt/graalpy/bin/graalpy", "/opt/graalpy/lib/libpythonvm.so"), "GraalPy"));
  EXPECT_TRUE(name_in(locate_program("/usr/bin/micropython", ""), "MicroPython"));
}

TEST(LocateFakeTest, a_32_bit_program_is_refused_by_name) {
  test::ElfBuilder narrow;
  narrow.header.e_ident[EI_CLASS] = ELFCLASS32;
  const auto found = locate_program("/usr/bin/python3.11", "", narrow);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, ErrorKind::unsupported_python);
  EXPECT_NE(found.error().message.find("32-bit"), std::string::npos) << found.error().message;
}

TEST(LocateFakeTest, a_python_before_the_table_is_refused_by_name) {
  test::ElfBuilder library;
  library.symbols({{"_PyRuntime", 0x400800}});
  const auto found = locate_program("/usr/bin/python3.4", "", library);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, ErrorKind::unsupported_python);
  EXPECT_NE(found.error().message.find("3.4"), std::string::npos) << found.error().message;
}

TEST(LocateFakeTest, objects_with_reference_tracing_are_refused_by_name) {
  test::ElfBuilder library;
  library.symbols({{"_PyRuntime", 0x400800}, {"_Py_PrintReferences", 0x400100}});
  const auto found = locate_program("/usr/bin/python3.7", "", library);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, ErrorKind::unsupported_python);
  EXPECT_NE(found.error().message.find("Py_TRACE_REFS"), std::string::npos) << found.error().message;
}

TEST(LocateFakeTest, a_program_without_python_is_named) {
  const auto found = locate_program("/usr/bin/sleep", "/usr/lib/libc.so.6");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, ErrorKind::not_python);
  EXPECT_NE(found.error().message.find("/usr/bin/sleep"), std::string::npos);
}

// A version newer than the table: read through what it states, and said so.
TEST(LocateFakeTest, a_newer_python_is_read_through_its_own_words_with_a_warning) {
  Layout row = *newest_layout();
  test::FakeInterpreter fake(row);
  fake.thread().calls("main");
  auto words = test::debug_offsets_of(row);
  const int minor = row.minor + 1;
  const uint64_t version = 0x030000A1U | static_cast<uint64_t>(minor) << 16;
  const std::string text = "3." + std::to_string(minor) + ".0a1",
                    path = "/usr/bin/python3." + std::to_string(minor);
  std::memcpy(words.data() + 8, &version, sizeof version);
  const RemoteAddress runtime = fake.interpreter().runtime;
  fake.memory().put(runtime, words);
  const uint64_t end = fake.memory().allocate(1, 4096).value;
  ProcessView view{1,
                   path,
                   {mapping(0x7f00'0000'1000, end, path)},
                   [&](const process::Module& m) -> Result<process::LoadedModule> {
                     return loaded_as(m, test::ElfBuilder().symbols({{"_PyRuntime", runtime.value}}));
                   },
                   fake.memory()};
  const auto found = locate(view);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->version, text);
  EXPECT_NE(found->warning.find(text), std::string::npos);
}

}  // namespace
}  // namespace phlox::python
