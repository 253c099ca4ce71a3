#include "phlox/sampler/session/task_requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "phlox/profile/task_time.h"

namespace phlox::sampler {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
constexpr Nanoseconds kTook = 2 * kMs;

struct Found {
  uint64_t address = 0, number = 0;
  uint32_t row = 1;  // of task_time
  std::vector<uint32_t> awaits = {};
};

class TaskRequestsOf : public testing::Test {
 protected:
  // A task of the server itself is always there, last.
  python::AsyncTasks tasks_of(const std::vector<Found>& found) {
    python::AsyncTasks out;
    out.loops.emplace_back();
    times_.clear();
    for (const Found& one : found) {
      python::AsyncTask& task = out.tasks.emplace_back();
      task.address = RemoteAddress(one.address);
      task.request = one.number;
      task.awaits = one.awaits;
      times_.emplace_back(one.row);
    }
    out.tasks.emplace_back().address = RemoteAddress(9999);
    times_.emplace_back(99);
    return out;
  }
  void census(const python::AsyncTasks& tasks) {
    const Nanoseconds weight = now_ == 0 ? 0 : 100 * kMs;
    now_ += 100 * kMs;
    requests_.add(tasks, {profile::EventLoopId(1)}, times_, {now_, kTook, weight});
  }
  void census(const std::vector<Found>& found) { census(tasks_of(found)); }
  // By their length, the longest first.
  std::vector<profile::Request> rows() {
    requests_.put();
    std::vector<profile::Request> rows = seen_.requests;
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.least() > b.least(); });
    return rows;
  }
  std::vector<profile::RequestPart> parts(profile::RequestId request = profile::RequestId(1)) {
    requests_.put();
    std::vector<profile::RequestPart> parts;
    for (const profile::RequestPart& part : seen_.request_parts) {
      if (part.request == request && part.time) parts.push_back(part);
    }
    return parts;
  }

  profile::TaskRows seen_;
  RequestIds ids_;
  TaskRequests requests_{seen_, ids_};
  std::vector<profile::TaskTimeId> times_;
  Nanoseconds now_ = 0;
};

TEST_F(TaskRequestsOf, a_request_begins_and_ends_between_two_censuses) {
  census(std::vector<Found>());
  for (int i = 0; i < 3; ++i) census({{1, 7}});
  for (int i = 0; i < 2; ++i) census(std::vector<Found>());
  const auto found = rows();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], (profile::Request{profile::EventLoopId(1), 100 * kMs, 200 * kMs + kTook, 400 * kMs,
                                        500 * kMs + kTook, 3}));
  EXPECT_EQ(found[0].least(), 200 * kMs - kTook);
  EXPECT_EQ(found[0].most(), 400 * kMs + kTook);
}

TEST_F(TaskRequestsOf, the_next_task_at_an_address_is_another_request) {
  census(std::vector<Found>());
  for (const uint64_t number : {7, 7, 8, 8, 8}) census({{1, number}});
  const auto found = rows();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].seen, 3u);
  EXPECT_EQ(found[0].earliest_begin, 300 * kMs);
  EXPECT_FALSE(found[0].latest_end);
  EXPECT_EQ(found[1].seen, 2u);
  EXPECT_EQ(found[1].latest_end, 400 * kMs + kTook);
}

TEST_F(TaskRequestsOf, one_after_the_other_at_one_address_are_no_slow_request) {
  for (uint64_t number = 1; number < 50; ++number) census({{1, number}});
  EXPECT_TRUE(rows().empty());
}

TEST_F(TaskRequestsOf, other_tasks_are_not_listed) {
  for (int i = 0; i < 5; ++i) census({{1, 0}});
  EXPECT_TRUE(rows().empty());
}

TEST_F(TaskRequestsOf, a_census_that_misses_it_once_does_not_end_it) {
  census(std::vector<Found>());
  census({{1, 7}});
  census(std::vector<Found>());
  census({{1, 7}});
  census(std::vector<Found>());
  census(std::vector<Found>());
  const auto found = rows();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].earliest_end, 400 * kMs);
  EXPECT_EQ(found[0].latest_end, 500 * kMs + kTook);
}

TEST_F(TaskRequestsOf, an_incomplete_census_proves_no_begin_and_no_end) {
  const auto incomplete = [&](const std::vector<Found>& found) {
    auto tasks = tasks_of(found);
    tasks.unproved = 1;
    census(tasks);
  };
  incomplete({});
  census({{1, 7}, {2, 8}});
  census({{1, 7}});
  incomplete({});
  incomplete({});
  auto none = tasks_of({});
  none.tasks.clear();
  census(none);
  const auto open = rows();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_FALSE(open[0].earliest_begin) << "the first census may have missed it";
  EXPECT_FALSE(open[0].latest_end);
  census(std::vector<Found>());
  EXPECT_EQ(rows()[0].latest_end, 700 * kMs + kTook);
}

TEST_F(TaskRequestsOf, the_first_census_does_not_know_when_it_began) {
  for (int i = 0; i < 2; ++i) census({{1, 7}});
  const auto found = rows();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].earliest_begin);
  EXPECT_FALSE(found[0].most());
  EXPECT_EQ(parts()[0].duration, 100 * kMs);
}

TEST_F(TaskRequestsOf, a_program_that_did_not_run_has_it_still) {
  census({{1, 7, 3}});
  now_ += 500 * kMs;
  requests_.add_again(now_, 500 * kMs);
  const auto found = rows();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].earliest_end, now_ - 10 * kMs) << "its CPU time is known up to the last tick";
  EXPECT_EQ(parts()[0].duration, 500 * kMs);
  requests_.end(now_ + 30 * kMs);
  EXPECT_EQ(rows()[0].latest_end, now_ + 30 * kMs);
}

TEST_F(TaskRequestsOf, its_parts_are_of_its_task_and_of_all_that_it_waits_for) {
  census(std::vector<Found>());
  // The request waits for two tasks, one of these for a third. They wait for each other, too.
  const std::vector<Found> first = {
      {1, 7, 1, {1, 2, 77}}, {2, 0, 2, {3}}, {3, 0, 2, {0}}, {4, 0, 3}, {5, 0, 4}};
  census(first);
  census(first);
  census({{1, 7, 5}});
  for (int i = 0; i < 2; ++i) census(std::vector<Found>());
  const profile::RequestId id(1);
  using Id = profile::TaskTimeId;
  EXPECT_EQ(parts(), (std::vector<profile::RequestPart>{{id, Id(1), false, 200 * kMs},
                                                        {id, Id(5), false, 100 * kMs},
                                                        {id, Id(2), true, 400 * kMs},
                                                        {id, Id(3), true, 200 * kMs}}));
}

TEST_F(TaskRequestsOf, only_the_longest_are_kept) {
  constexpr size_t kRequests = 1000;
  for (size_t i = 1; i < kRequests; ++i) {
    std::vector<Found> found;
    for (size_t one = i; one < kRequests; ++one) found.push_back({one, one, 1});
    census(found);
    if (i % 7 == 0) requests_.put();
  }
  for (int i = 0; i < 3; ++i) census(std::vector<Found>());
  const auto found = rows();
  ASSERT_EQ(found.size(), TaskRequests::kMostRequests);
  EXPECT_EQ(ids_.requests, TaskRequests::kMostRequests);
  EXPECT_EQ(found.front().seen, kRequests - 1);
  EXPECT_EQ(found.back().seen, kRequests - TaskRequests::kMostRequests);
  for (size_t i = 1; i < found.size(); ++i) EXPECT_EQ(found[i].seen, found[i - 1].seen - 1);
}

TEST_F(TaskRequestsOf, a_row_of_another_request_has_no_parts_of_the_one_before) {
  for (int i = 0; i < 3; ++i) census({{1, 7, static_cast<uint32_t>(i + 1)}});
  EXPECT_EQ(parts().size(), 3u);
  std::vector<Found> found;
  for (uint64_t one = 2; one < TaskRequests::kMostRequests + 2; ++one) found.push_back({one, one, 50});
  for (int i = 0; i < 6; ++i) census(found);
  ASSERT_EQ(rows().size(), TaskRequests::kMostRequests);
  for (uint32_t id = 1; id <= TaskRequests::kMostRequests; ++id) {
    const auto of = parts(profile::RequestId(id));
    ASSERT_EQ(of.size(), 1u) << id;
    EXPECT_EQ(of[0].time, profile::TaskTimeId(50));
  }
}

TEST_F(TaskRequestsOf, more_than_are_followed_at_a_time_are_left_out) {
  constexpr uint64_t kEach = 9'000;
  const auto endless = [&](const std::vector<Found>& found) {
    auto tasks = tasks_of(found);
    tasks.beyond = 1;  // so that none is known to have ended
    census(tasks);
  };
  for (uint64_t round = 0; round < 3; ++round) {
    std::vector<Found> found;
    for (uint64_t i = 1; i <= kEach; ++i) found.push_back({round * kEach + i, i});
    endless(found);
    endless(found);
  }
  for (int i = 0; i < 5; ++i) endless({{3 * kEach, kEach}});
  const auto found = rows();
  ASSERT_EQ(found.size(), TaskRequests::kMostRequests);
  for (const profile::Request& row : found) EXPECT_EQ(row.seen, 2u);
}

TEST_F(TaskRequestsOf, many_parts_and_many_tasks_are_bounded) {
  std::vector<Found> found = {{1, 7, 1}};
  for (uint32_t i = 1; i <= 5'000; ++i) {
    found[0].awaits.push_back(i);
    found.push_back({i + 10, 0, i % 1000 + 2});
  }
  for (int i = 0; i < 3; ++i) census(found);
  EXPECT_EQ(parts().size(), 1 + TaskRequests::kMostParts);
}

}  // namespace
}  // namespace phlox::sampler
