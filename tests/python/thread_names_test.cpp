#include "phlox/python/thread_names.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "phlox/python/layout_table.h"
#include "phlox/python/locate.h"
#include "phlox/python/objects.h"
#include "support/fake_interpreter.h"
#include "support/live_python.h"
#include "support/pythons.h"
#include "support/source_path.h"

namespace phlox::python {
namespace {

std::string unhex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; hex != "-" && i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

class EveryThreadNames : public testing::TestWithParam<test::Python> {};
INSTANTIATE_TEST_SUITE_P(ThreadNames, EveryThreadNames, testing::ValuesIn(test::pythons()),
                         [](const auto& test) { return test.param.label; });

TEST_P(EveryThreadNames, are_those_that_the_program_gave) {
  test::LivePython live(GetParam(), test::source_path("tests/python/thread_target.py"));
  ASSERT_TRUE(live.ready());
  std::map<uint64_t, std::string> expected, got;
  for (size_t i = 1; i < live.lines().size(); ++i) {
    std::istringstream words(live.lines()[i]);
    uint64_t ident = 0;
    std::string name;
    words >> ident >> name;
    expected[ident] = unhex(name);
  }
  ASSERT_GT(expected.size(), 15U);
  const auto interpreter = locate(live.pid());
  ASSERT_TRUE(interpreter) << interpreter.error().message;
  const RemoteAddress state(std::stoull(live.lines()[0]));
  const auto names = read_thread_names(interpreter->layout, live, state);
  ASSERT_TRUE(names) << "fault " << static_cast<int>(names.error().kind) << " at " << std::hex
                     << names.error().address.value;
  EXPECT_TRUE(names->threading);
  EXPECT_EQ(names->failed, 0U);
  for (const ThreadName& name : names->names) got[name.python_id] = name.name;
  EXPECT_EQ(got, expected);

  const uint64_t one = names->names.back().python_id;
  const auto only = [one](uint64_t id) { return id == one ? Naming::read : Naming::skip; };
  const auto of_one = read_thread_names(interpreter->layout, live, state, only);
  ASSERT_TRUE(of_one);
  ASSERT_EQ(of_one->names.size(), 1U);
  EXPECT_EQ(of_one->names[0].name, expected[one]);
  const auto none =
      read_thread_names(interpreter->layout, live, state, [](uint64_t) { return Naming::stop; });
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->names.empty());
}

TEST(ThreadNames, an_interpreter_without_modules_yet_has_no_names) {
  for (const Layout& layout : layouts()) {
    test::FakeInterpreter fake(layout);
    const auto names = read_thread_names(layout, fake.memory(), fake.state());
    ASSERT_TRUE(names);
    EXPECT_FALSE(names->threading);
    EXPECT_TRUE(names->names.empty());
  }
}

TEST(ThreadNames, a_torn_pointer_is_a_fault) {
  for (const Layout& layout : layouts()) {
    test::FakeInterpreter fake(layout);
    fake.set(fake.state(), layout.interpreter.modules, uint64_t{0xdeadbeefdeadbeef});
    EXPECT_EQ(read_thread_names(layout, fake.memory(), fake.state()).error().kind, FaultKind::implausible);
    fake.set(fake.state(), layout.interpreter.modules, uint64_t{0x7000'0000});
    EXPECT_EQ(read_thread_names(layout, fake.memory(), fake.state()).error().kind, FaultKind::unreadable);
  }
}

TEST(ThreadNames, a_dict_that_claims_to_be_endless_is_refused) {
  for (const Layout& layout : layouts()) {
    test::FakeInterpreter fake(layout);
    const RemoteAddress dict = fake.memory().allocate(256), keys = fake.memory().allocate(4096);
    fake.set(fake.state(), layout.interpreter.modules, dict);
    fake.set(dict, layout.dict.ma_keys, keys);
    fake.set(dict, layout.dict.ma_table, keys);
    fake.set(dict, layout.dict.ma_mask, (uint64_t{1} << 40) - 1);
    fake.set(keys, layout.dictkeys.dk_nentries, uint64_t{1} << 39);
    fake.set(keys, layout.dictkeys.dk_size, uint64_t{1} << 40);
    fake.set(keys, layout.dictkeys.dk_log2_size, uint8_t{40});
    fake.set(keys, layout.dictkeys.dk_log2_index_bytes, uint8_t{43});
    EXPECT_EQ(read_thread_names(layout, fake.memory(), fake.state()).error().kind, FaultKind::too_large);
  }
}

TEST(ObjectReader, reads_integers_of_every_size_up_to_64_bits) {
  for (const Layout& layout : layouts()) {
    test::FakeInterpreter fake(layout);
    ObjectReader objects(layout, fake.memory());
    for (int64_t value :
         {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{1} << 30, int64_t{-1} << 30, INT64_MAX, INT64_MIN}) {
      const auto got = objects.integer(fake.integer(value));
      ASSERT_TRUE(got) << layout.name << " " << value;
      EXPECT_EQ(*got, value) << layout.name;
    }
    EXPECT_EQ(objects.integer(fake.string("1")).error().kind, FaultKind::implausible);
  }
}

}  // namespace
}  // namespace phlox::python
