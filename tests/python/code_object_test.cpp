#include "phlox/python/code_object.h"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

#include "phlox/python/layout_table.h"
#include "phlox/python/line_table.h"
#include "phlox/python/locate.h"
#include "support/fake_interpreter.h"
#include "support/live_python.h"
#include "support/pythons.h"
#include "support/source_path.h"

namespace phlox::python {
namespace {

using test::FakeCode;
using test::FakeInterpreter;

std::string label(const Layout& layout) {
  std::string name(layout.name);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

constexpr auto kLabel = [](const auto& test) { return label(test.param); };

std::vector<Layout> layouts_with(bool (*wanted)(const Layout&)) {
  std::vector<Layout> rows;
  for (const Layout& row : layouts()) {
    if (wanted(row)) rows.push_back(row);
  }
  return rows;
}

class EveryCodeRow : public testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(CodeObject, EveryCodeRow, testing::ValuesIn(layouts()), kLabel);

// 2.7 keeps the characters of every str in the object.
class RowWithStringsApart : public EveryCodeRow {};
INSTANTIATE_TEST_SUITE_P(
    CodeObject, RowWithStringsApart,
    testing::ValuesIn(layouts_with([](const Layout& row) { return !row.traits.python2; })), kLabel);

// Where co_version does not tell without the strings.
class RowProvedByStrings : public EveryCodeRow {};
INSTANTIATE_TEST_SUITE_P(CodeObject, RowProvedByStrings,
                         testing::ValuesIn(layouts_with([](const Layout& row) {
                           return row.traits.code_proof != CodeProof::co_version;
                         })),
                         kLabel);

TEST_P(EveryCodeRow, reads_names_file_and_lines) {
  FakeInterpreter fake(GetParam());
  FakeCode what;
  what.name = "grüße";
  what.qualname = "Ärger.grüße";
  what.file = "/路径/🐍.py";
  what.first_line = 40;
  what.flags = Code::kGenerator;
  const auto code = read_code(fake.layout(), fake.memory(), fake.make_code(what));
  ASSERT_TRUE(code);
  EXPECT_EQ(code->name, what.name);
  EXPECT_EQ(code->qualified_name, GetParam().code.qualname.present() ? what.qualname : what.name);
  EXPECT_EQ(code->file, what.file);
  EXPECT_EQ(code->first_line, 40);
  EXPECT_EQ(code->flags, Code::kGenerator);
  EXPECT_EQ(code->code_size, 200U);
  EXPECT_EQ(code->line(-1), 40);
  EXPECT_EQ(code->line(0), 40);
  EXPECT_EQ(code->line(24), 52);
  EXPECT_FALSE(code->cut);
  EXPECT_FALSE(code->shim);
}

TEST_P(EveryCodeRow, needs_two_calls_for_an_ordinary_function_and_three_for_a_long_one) {
  FakeInterpreter fake(GetParam());
  CodeCapture capture;
  const RemoteAddress ordinary = fake.code("work");
  size_t before = fake.memory().calls();
  ASSERT_TRUE(capture_code(fake.layout(), fake.memory(), ordinary, capture));
  EXPECT_LE(fake.memory().calls() - before, 3U) << "three when an object happens to end its page";
  FakeCode lengthy;
  lengthy.name = std::string(3000, 'n');
  lengthy.file = "/" + std::string(70'000, 'f');
  lengthy.instructions = 50'000;
  const RemoteAddress code = fake.make_code(lengthy);
  before = fake.memory().calls();
  ASSERT_TRUE(capture_code(fake.layout(), fake.memory(), code, capture));
  EXPECT_EQ(fake.memory().calls() - before, 3U);
  const auto decoded = decode_code(fake.layout(), capture);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->name, lengthy.name);
  EXPECT_EQ(decoded->file, lengthy.file);
  EXPECT_EQ(decoded->line(2 * 49'999), 50'000);
}

TEST_P(EveryCodeRow, a_string_longer_than_the_cap_is_cut_and_says_so) {
  FakeInterpreter fake(GetParam());
  FakeCode lengthy;
  lengthy.name = std::string(kMaxStringBytes + 1, 'n');
  const auto code = read_code(fake.layout(), fake.memory(), fake.make_code(lengthy));
  ASSERT_TRUE(code);
  EXPECT_TRUE(code->cut);
  EXPECT_EQ(code->name, std::string(kMaxStringBytes, 'n') + "…");
}

TEST_P(RowWithStringsApart, a_string_with_its_characters_elsewhere_is_read) {
  FakeInterpreter fake(GetParam());
  const RemoteAddress code = fake.code("f");
  fake.set(code, GetParam().code.name, fake.legacy_string("subclass"));
  fake.set(code, GetParam().code.filename, fake.legacy_string("/名.py"));
  const auto decoded = read_code(fake.layout(), fake.memory(), code);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->name, "subclass");
  EXPECT_EQ(decoded->file, "/名.py");
}

TEST_P(RowWithStringsApart, a_string_whose_characters_are_its_own_head_is_remembered) {
  for (uint32_t at : {0U, 4U, 8U, 16U, 24U, 40U}) {
    FakeInterpreter fake(GetParam());
    const RemoteAddress code = fake.code("f");
    const RemoteAddress name = fake.legacy_string("subclass");
    fake.set(name, GetParam().unicode.data, name + at);
    fake.set(code, GetParam().code.name, name);
    CodeCapture capture;
    ASSERT_TRUE(capture_code(fake.layout(), fake.memory(), code, capture));
    EXPECT_TRUE(CodeIdentity(fake.layout(), capture).holds(fake.memory())) << at;
  }
}

TEST_P(EveryCodeRow, every_unreadable_part_is_a_fault_with_its_address) {
  FakeInterpreter fake(GetParam());
  const RemoteAddress code = fake.code("f");
  const auto& fields = GetParam().code;
  for (Offset field : {fields.name, fields.filename, fields.linetable}) {
    fake.memory().allocate(8192, 4096);  // so that the object is alone in its page, as far as a hole reaches
    const RemoteAddress whole(fake.memory().get<uint64_t>(code + *field));
    const RemoteAddress object = field == fields.linetable ? fake.bytes({}) : fake.string("x");
    fake.set(code, field, object);
    fake.memory().make_unreadable(object, 8);
    const auto got = read_code(fake.layout(), fake.memory(), code);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().kind, FaultKind::unreadable);
    EXPECT_EQ(got.error().address, object);
    fake.memory().make_readable();
    fake.set(code, field, whole);
  }
  fake.memory().make_unreadable(code, 8);
  EXPECT_EQ(read_code(fake.layout(), fake.memory(), code).error().address, code);
}

TEST_P(EveryCodeRow, torn_pointers_and_lengths_are_faults) {
  FakeInterpreter fake(GetParam());
  const auto& fields = GetParam().code;
  EXPECT_EQ(read_code(fake.layout(), fake.memory(), RemoteAddress(3)).error().kind, FaultKind::implausible);
  const RemoteAddress code = fake.code("f");
  const RemoteAddress table(fake.memory().get<uint64_t>(code + *fields.linetable));
  fake.set(table, GetParam().bytes.ob_size, ~uint64_t{0});
  EXPECT_EQ(read_code(fake.layout(), fake.memory(), code).error().kind, FaultKind::implausible);
  fake.set(code, fields.name, uint64_t{0xdeadbeefdeadbeef});
  EXPECT_EQ(read_code(fake.layout(), fake.memory(), code).error().kind, FaultKind::implausible);
}

TEST_P(EveryCodeRow, an_identity_holds_while_nothing_changes) {
  FakeInterpreter fake(GetParam());
  CodeCapture capture;
  ASSERT_TRUE(capture_code(fake.layout(), fake.memory(), fake.code("f"), capture));
  const CodeIdentity identity(fake.layout(), capture);
  EXPECT_TRUE(identity.holds(fake.memory()));
  EXPECT_FALSE(CodeIdentity().holds(fake.memory())) << "nothing remembered proves nothing";
  EXPECT_EQ(identity.items().size() == 1, GetParam().traits.code_proof == CodeProof::co_version);
}

TEST_P(EveryCodeRow, an_identity_ends_with_its_code_object) {
  FakeInterpreter fake(GetParam());
  FakeCode what;
  what.name = "first";
  const RemoteAddress address = fake.make_code(what);
  CodeCapture capture;
  ASSERT_TRUE(capture_code(fake.layout(), fake.memory(), address, capture));
  const CodeIdentity identity(fake.layout(), capture);
  fake.replace_code(address, what);  // alike in every word but the addresses
  EXPECT_FALSE(identity.holds(fake.memory()));
}

// On 3.11 and before, 62 % of recycled code objects had equal pointers in every field: the strings are
// recycled too.
TEST_P(RowProvedByStrings, an_identity_ends_when_a_string_was_recycled_in_place) {
  FakeInterpreter fake(GetParam());
  const RemoteAddress code = fake.code("name_of_an_instant_0001");
  CodeCapture capture;
  ASSERT_TRUE(capture_code(fake.layout(), fake.memory(), code, capture));
  const CodeIdentity identity(fake.layout(), capture);
  const CapturedObject& name = capture.parts[CodeCapture::name];
  fake.memory().put_value(name.content_address + (name.content - 1), '2');
  EXPECT_FALSE(identity.holds(fake.memory()));
  fake.memory().put_value(name.content_address + (name.content - 1), '1');
  EXPECT_TRUE(identity.holds(fake.memory()));
  const CapturedObject& table = capture.parts[CodeCapture::linetable];
  fake.memory().put_value(table.content_address + 5, uint8_t{77});
  EXPECT_FALSE(identity.holds(fake.memory())) << "another body with the same name";
}

TEST_P(RowProvedByStrings, an_identity_ends_when_only_the_end_of_something_long_changes) {
  for (size_t length : {200UL, 3000UL, 50'000UL}) {
    FakeInterpreter fake(GetParam());
    FakeCode what;
    what.name = std::string(length, 'n');
    what.file = "/" + std::string(length, 'f');
    what.instructions = static_cast<uint32_t>(length);
    CodeCapture capture;
    ASSERT_TRUE(capture_code(fake.layout(), fake.memory(), fake.make_code(what), capture));
    const CodeIdentity identity(fake.layout(), capture);
    EXPECT_TRUE(identity.holds(fake.memory()));
    for (const auto part : {CodeCapture::name, CodeCapture::filename, CodeCapture::linetable}) {
      const CapturedObject& object = capture.parts[part];
      const RemoteAddress last = object.content_address + (object.content - 1);
      const auto was = fake.memory().get<uint8_t>(last);
      fake.memory().put_value(last, static_cast<uint8_t>(was + 1));
      EXPECT_FALSE(identity.holds(fake.memory())) << length << " part " << int{part};
      fake.memory().put_value(last, was);
    }
    EXPECT_TRUE(identity.holds(fake.memory()));
  }
}

// Free-threaded 3.14+: every thread runs a copy of the instructions of its own. Rows without copies give the
// same answer.
TEST_P(EveryCodeRow, a_frame_is_on_its_line_whichever_copy_of_the_instructions_it_runs) {
  FakeInterpreter fake(GetParam());
  const int32_t first = fake.code_at(fake.code("work")).first_line;
  auto& thread = fake.thread().calls("work", first + 3).with_bytecode_copy(5).calls("work", first + 7);
  const auto code = read_code(fake.layout(), fake.memory(), fake.code("work"));
  ASSERT_TRUE(code);
  for (const test::FakeFrame& frame : thread.stack()) {
    if (!frame.code) continue;
    const RemoteAddress bytecode =
        bytecode_of_frame(fake.layout(), frame.address, frame.code, code->first_instruction, fake.memory());
    EXPECT_EQ(code->line(instruction_offset(GetParam().traits, bytecode, frame.instruction)), frame.line);
  }
  if (!GetParam().frame.tlbc_index.present()) return;
  const RemoteAddress leaf = thread.stack().front().address;
  for (int32_t torn : {16, -1, 0x7fffffff}) {
    fake.set(leaf, GetParam().frame.tlbc_index, torn);
    EXPECT_FALSE(
        bytecode_of_frame(fake.layout(), leaf, fake.code("work"), code->first_instruction, fake.memory()));
  }
}

// Every interpreter at hand says itself what its code objects are called and which line each instruction is
// on.
class EveryCodeObject : public testing::TestWithParam<test::Python> {};
INSTANTIATE_TEST_SUITE_P(CodeObject, EveryCodeObject, testing::ValuesIn(test::pythons()),
                         [](const auto& test) { return test.param.label; });

std::string unhex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; hex != "-" && i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

TEST_P(EveryCodeObject, code_objects_are_what_the_program_says_they_are) {
  test::LivePython live(GetParam(), test::source_path("tests/python/code_target.py"));
  ASSERT_TRUE(live.ready());
  ASSERT_GT(live.lines().size(), 40U);
  const auto interpreter = locate(live.pid());
  ASSERT_TRUE(interpreter) << interpreter.error().message;
  const Layout& layout = interpreter->layout;
  CodeCapture capture;
  std::chrono::nanoseconds time{0};
  size_t calls = 0;
  for (const std::string& line : live.lines()) {
    std::istringstream words(line);
    uint64_t address = 0, flags = 0, size = 0;
    std::string name, qualname, file;
    int32_t first_line = 0;
    words >> address >> name >> qualname >> file >> first_line >> flags >> size;
    const size_t before = live.calls();
    const auto start = std::chrono::steady_clock::now();
    const auto captured = capture_code(layout, live, RemoteAddress(address), capture);
    time += std::chrono::steady_clock::now() - start;
    calls += live.calls() - before;
    ASSERT_TRUE(captured) << line.substr(0, 200);
    const auto code = decode_code(layout, capture);
    ASSERT_TRUE(code);
    EXPECT_EQ(code->name, unhex(name));
    EXPECT_EQ(code->qualified_name, unhex(qualname));
    EXPECT_EQ(code->file, unhex(file));
    EXPECT_EQ(code->first_line, first_line);
    EXPECT_EQ(code->flags, flags);
    EXPECT_EQ(code->code_size, size);
    EXPECT_FALSE(code->shim);
    int32_t offset = 0, expected = 0;
    for (char colon = 0; words >> offset >> colon >> expected;) {
      ASSERT_EQ(code->line(offset), std::max(expected, 0)) << code->qualified_name << " " << offset;
    }
  }
  RecordProperty("capture_ns", static_cast<int>(time.count() / static_cast<int64_t>(live.lines().size())));
  RecordProperty("calls_per_100", static_cast<int>(100 * calls / live.lines().size()));
}

}  // namespace
}  // namespace phlox::python
