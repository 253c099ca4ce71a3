#include "phlox/recording/bulk_insert.h"

#include <gtest/gtest.h>

#include <map>

namespace phlox::recording {
namespace {

class BulkInserts : public testing::Test {
 protected:
  void SetUp() override {
    database_ = open_database(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    ASSERT_TRUE(run(database_.get(), "CREATE TABLE t (id INTEGER PRIMARY KEY, value INTEGER)"));
    ASSERT_TRUE(rows_.prepare(database_.get(), "INSERT OR REPLACE INTO t", 2));
  }

  std::map<int64_t, int64_t> there() {
    std::map<int64_t, int64_t> rows;
    each_row(database_.get(), "SELECT id, ifnull(value, -1) FROM t",
             [&](sqlite3_stmt* row) { rows[sqlite3_column_int64(row, 0)] = sqlite3_column_int64(row, 1); });
    return rows;
  }

  Database database_;
  BulkInsert rows_;  // finalized before the database is closed
};

TEST_F(BulkInserts, any_number_of_rows_is_there_after_a_flush) {
  std::map<int64_t, int64_t> expected;
  int64_t id = 0;
  for (const int count : {0, 1, 3, 4, 15, 16, 17, 39}) {
    for (int i = 0; i < count; ++i) {
      ++id;
      ASSERT_TRUE(rows_.put({id, id % 5 == 0 ? std::nullopt : BulkInsert::Value(id * 7 % 3)}));
      expected[id] = id % 5 == 0 ? -1 : id * 7 % 3;
    }
    ASSERT_TRUE(rows_.flush());
    EXPECT_EQ(there(), expected) << count;
  }
}

TEST_F(BulkInserts, rows_have_the_numbers_that_were_given) {
  std::map<int64_t, int64_t> expected;
  int64_t value = 0;
  // A gap, one that is replaced and the one behind it, the greatest plus one, one before all of them.
  for (const int64_t id : {5, 6, 9, 6, 7, 10, 11, 1, 2, 12, 13}) {
    ASSERT_TRUE(rows_.put({id, ++value}));
    expected[id] = value;
  }
  ASSERT_TRUE(rows_.flush());
  EXPECT_EQ(there(), expected);
}

TEST_F(BulkInserts, the_greatest_may_be_gone_between_two_flushes) {
  ASSERT_TRUE(rows_.put({1, 1}) && rows_.put({2, 2}) && rows_.flush());
  ASSERT_TRUE(run(database_.get(), "DELETE FROM t"));
  ASSERT_TRUE(rows_.put({3, 3}) && rows_.put({4, 4}) && rows_.flush());
  EXPECT_EQ(there(), (std::map<int64_t, int64_t>{{3, 3}, {4, 4}}));
}

TEST_F(BulkInserts, a_failure_is_reported_and_none_of_it_comes_later) {
  ASSERT_TRUE(run(database_.get(), "DROP TABLE t"));
  ASSERT_TRUE(rows_.put({1, 1}));
  EXPECT_FALSE(rows_.flush());
  EXPECT_TRUE(rows_.flush());
}

}  // namespace
}  // namespace phlox::recording
