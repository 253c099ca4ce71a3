#include "phlox/python/pool_queues.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "phlox/python/layout_table.h"
#include "phlox/python/locate.h"
#include "support/fake_interpreter.h"
#include "support/live_python.h"
#include "support/pythons.h"
#include "support/source_path.h"

namespace phlox::python {
namespace {

class EveryPoolQueue : public testing::TestWithParam<test::Python> {};
INSTANTIATE_TEST_SUITE_P(PoolQueues, EveryPoolQueue, testing::ValuesIn(test::pythons()),
                         [](const auto& test) { return test.param.label; });

TEST_P(EveryPoolQueue, has_the_calls_that_wait) {
  test::LivePython live(GetParam(), test::source_path("tests/python/pool_queue_target.py"));
  ASSERT_TRUE(live.ready());
  const auto interpreter = locate(live.pid());
  ASSERT_TRUE(interpreter) << interpreter.error().message;
  PoolQueues queues(interpreter->layout, live);
  const auto found = queues.read(RemoteAddress(std::stoull(live.lines()[0])));
  // A SimpleQueue came with 3.7.
  const auto& layout = interpreter->layout;
  if (layout.major == 2 || layout.minor < 7) {
    EXPECT_TRUE(found.empty());
    return;
  }
  ASSERT_EQ(found.size(), 3U);
  for (size_t i = 1; i < live.lines().size(); ++i) {
    std::istringstream words(live.lines()[i]);
    std::string threads;
    int64_t calls = -1;
    words >> threads >> calls;
    if (calls < 0) continue;
    size_t pools = 0;
    for (const PoolQueue& queue : found) {
      if (("," + threads + ",").find("," + std::to_string(queue.thread) + ",") == std::string::npos) continue;
      ++pools;
      EXPECT_EQ(queue.kind, "ThreadPoolExecutor");
      EXPECT_EQ(queue.calls, calls);
    }
    EXPECT_EQ(pools, 1U) << threads;
  }
}

TEST(PoolQueues, are_none_where_nothing_can_be_read) {
  for (const Layout& layout : layouts()) {
    test::FakeInterpreter fake(layout);
    for (const uint64_t modules : {uint64_t{0}, uint64_t{0xdeadbeefdeadbeef}, uint64_t{0x7000'0000}}) {
      fake.set(fake.state(), layout.interpreter.modules, modules);
      EXPECT_TRUE(PoolQueues(layout, fake.memory()).read(fake.state()).empty());
    }
  }
}

}  // namespace
}  // namespace phlox::python
