#include "phlox/view/wait_class.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "phlox/view/ended_waits.h"
#include "phlox/view/system_calls.h"
#include "support/cases.h"
#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

using test::ProfileMaker;

constexpr Nanoseconds kMs = 1'000'000;
constexpr int16_t kRead = 0, kPoll = 7, kFutex = 202, kNanosleep = 230, kRecv = 45, kWait4 = 61, kFsync = 74,
                  kIoctl = 16, kEpollWait = 232;
constexpr const char* kLib = "/usr/lib/python3.12";

class Waits : public testing::Test {
 protected:
  Sample blocked(ThreadId thread, const std::string& frames, int16_t call, Nanoseconds wall = 10 * kMs) {
    Sample sample = maker.sample(thread, frames, wall);
    sample.cpu = 0;
    sample.cpu_state = CpuState::blocked;
    sample.gil_state = GilState::none;
    sample.system_call = call;
    return sample;
  }
  // Of a wait in these functions, "threading.py/wait", beneath main().
  std::string_view of(int16_t call, std::initializer_list<const char*> functions) {
    std::string frames = "main:5";
    for (const char* function : functions) frames += std::string(";") + kLib + "/" + function;
    const Sample sample = blocked(waiter, frames, call);
    return wait_class_key(WaitClasses(profile).of(sample));
  }
  WakerId waker(const Waker& waker) {
    const WakerId id(static_cast<uint32_t>(profile.wakers().size()) + 1);
    profile.emit(id, waker);
    return id;
  }
  std::vector<EndedWaits> ended(const Choices& choices = {}) {
    const auto filter = SampleFilter::make(profile, choices);
    return filter ? ended_waits(profile, *filter, WaitTargetGroups(profile)) : std::vector<EndedWaits>();
  }
  std::string name(FrameId frame) { return frame ? profile.frame(frame).function : ""; }

  Profile profile;
  ProfileMaker maker{profile};
  ThreadId waiter = maker.thread("MainThread");
};

TEST_F(Waits, are_called_by_what_the_library_waits_for) {
  EXPECT_EQ(of(kFutex, {}), "lock");
  EXPECT_EQ(of(kFutex, {"threading.py/wait"}), "condition");
  EXPECT_EQ(of(kFutex, {"threading.py/wait", "threading.py/wait"}), "event");
  EXPECT_EQ(of(kFutex, {"queue.py/get", "threading.py/wait"}), "queue");
  EXPECT_EQ(of(kFutex, {"threading.py/acquire", "threading.py/wait"}), "semaphore");
  EXPECT_EQ(of(kFutex, {"threading.py/join", "threading.py/_wait_for_tstate_lock"}), "thread");
  EXPECT_EQ(of(kFutex, {"threading.py/run", "concurrent/futures/thread.py/_worker"}), "queue");
  EXPECT_EQ(of(kFutex, {"concurrent/futures/_base.py/result", "threading.py/wait"}), "future");
  EXPECT_EQ(of(kPoll, {"selectors.py/select"}), "poll");
  EXPECT_EQ(of(kPoll, {"socket.py/readinto"}), "socket");
  EXPECT_EQ(of(kRecv, {}), "socket");
  EXPECT_EQ(of(kRead, {}), "stream");
  EXPECT_EQ(of(kRead, {"ssl.py/read"}), "socket");
  EXPECT_EQ(of(kRead, {"subprocess.py/_execute_child"}), "child");
  EXPECT_EQ(of(kRead, {"multiprocessing/connection.py/_recv"}), "pipe");
  EXPECT_EQ(of(kWait4, {"subprocess.py/wait"}), "child");
  EXPECT_EQ(of(kNanosleep, {}), "sleep");
  EXPECT_EQ(of(kNanosleep, {"subprocess.py/_wait"}), "child");
  EXPECT_EQ(of(kFsync, {}), "file");
  EXPECT_EQ(of(kIoctl, {}), "other");
  EXPECT_EQ(of(-1, {}), "memory");
}

TEST_F(Waits, in_a_call_that_was_not_recorded_are_what_the_library_says_or_nothing) {
  EXPECT_EQ(of(kCallNotRecorded, {}), "other");
  EXPECT_EQ(of(kCallNotRecorded, {"queue.py/get", "threading.py/wait"}), "queue");
  EXPECT_EQ(wait_words(WaitClass::other, system_call_name(kCallNotRecorded, "x86_64"), ""),
            "call not recorded");
}

TEST_F(Waits, whose_file_is_known_are_called_by_it) {
  const auto of_file = [&](int16_t call, std::initializer_list<const char*> functions, WaitTargetKind kind) {
    const WaitTargetId id(static_cast<uint32_t>(profile.wait_targets().size()) + 1);
    profile.emit(id, {kind, "name", ""});
    std::string frames = "main:5";
    for (const char* function : functions) frames += std::string(";") + kLib + "/" + function;
    Sample sample = blocked(waiter, frames, call);
    sample.wait_target = id;
    return wait_class_key(WaitClasses(profile).of(sample));
  };
  EXPECT_EQ(of_file(kRead, {}, WaitTargetKind::file), "file");
  EXPECT_EQ(of_file(kRead, {}, WaitTargetKind::pipe), "pipe");
  EXPECT_EQ(of_file(kRead, {}, WaitTargetKind::device), "device");
  EXPECT_EQ(of_file(kRead, {"subprocess.py/communicate"}, WaitTargetKind::pipe), "child") << "that says more";
  EXPECT_EQ(of_file(kPoll, {}, WaitTargetKind::socket), "socket");
  EXPECT_EQ(of_file(kPoll, {"selectors.py/select"}, WaitTargetKind::listener), "socket");
  EXPECT_EQ(of_file(kPoll, {}, WaitTargetKind::poll), "poll");
  EXPECT_EQ(of_file(kPoll, {}, WaitTargetKind::time), "sleep");
  EXPECT_EQ(of_file(kEpollWait, {}, WaitTargetKind::time), "poll") << "others might have been first";
  EXPECT_EQ(of_file(kFutex, {}, WaitTargetKind::other), "lock");
}

TEST_F(Waits, for_the_gil_and_for_a_cpu_are_known_by_the_state) {
  Sample sample = blocked(waiter, "main", kFutex);
  sample.gil_state = GilState::waits;
  EXPECT_EQ(WaitClasses(profile).of(sample), WaitClass::gil);
  sample.gil_state = GilState::none;
  sample.cpu_state = CpuState::runnable;
  EXPECT_EQ(WaitClasses(profile).of(sample), WaitClass::cpu);
  sample.cpu_state = CpuState::running;
  EXPECT_EQ(WaitClasses(profile).of(sample), WaitClass::none);
}

// What called into the library is neither the line of threading.py nor that of queue.py.
TEST_F(Waits, whose_stack_was_not_read_are_no_lock) {
  const Sample sample = blocked(waiter, "(a wait whose stack was not read)", kFutex);
  EXPECT_EQ(WaitClasses(profile).of(sample), WaitClass::other);
}

TEST_F(Waits, are_added_up_by_function_and_waker) {
  const ThreadId producer = maker.thread("producer");
  const StackId puts =
      maker.stack(std::string("main;produce:30;") + kLib + "/queue.py/put;" + kLib + "/threading.py/notify");
  const std::string frames =
      std::string("main;consume:12;") + kLib + "/queue.py/get:3;" + kLib + "/threading.py/wait:5";
  const WakerId by = waker({producer, puts, ""}), other = waker({{}, {}, "nginx (99)"});
  for (int i = 0; i < 3; ++i) {
    // A long one in two samples.
    maker.put(blocked(waiter, frames, kFutex, 1000 * kMs));
    Sample last = blocked(waiter, frames, kFutex, 10 * kMs);
    last.waker = by;
    maker.put(last);
    maker.add(waiter, "main;consume:13", 1 * kMs);
  }
  // Another thread of the same pool, once.
  Sample once = blocked(waiter, frames, kFutex, 20 * kMs);
  once.waker = waker({maker.thread("producer-2"), puts, ""});
  maker.put(once);
  Sample socket = blocked(waiter, "main;fetch:7", kRecv, 50 * kMs);
  socket.waker = other;
  maker.put(socket);
  maker.put(blocked(waiter, "main;fetch:7", kRecv, 50 * kMs));  // its waker is not known
  const auto found = ended();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].waits, WaitClass::queue);
  EXPECT_EQ(found[0].count, 4U);
  EXPECT_EQ(found[0].threads, 1U);
  EXPECT_EQ(found[0].wall, 3050 * kMs);
  EXPECT_EQ(name(found[0].frame), "consume");
  EXPECT_EQ(found[0].by, producer) << "the one that ended them longest";
  EXPECT_EQ(found[0].by_threads, 2U);
  EXPECT_EQ(name(found[0].by_frame), "produce");
  EXPECT_EQ(found[1].waits, WaitClass::socket);
  EXPECT_EQ(found[1].wall, 50 * kMs);
  EXPECT_EQ(found[1].other, "nginx (99)");
  socket.waker = waker({{}, {}, "nginx (100)"});
  maker.put(socket);
  EXPECT_EQ(ended()[1].other, "nginx (2 processes)");
  Choices choices;
  choices.thread_regex = "producer";
  EXPECT_TRUE(ended(choices).empty()) << "the choices are about who waits";
}

TEST(WaitSumsTwin, is_that_of_the_common_cases) {
  const auto document = test::common_cases("wait_sums");
  ASSERT_TRUE(document.IsObject());
  for (const auto& row : document["cases"].GetArray()) {
    Profile profile;
    ProfileMaker maker(profile);
    std::vector<ThreadId> threads;
    for (const char* name : {"0", "1", "2", "3"}) threads.push_back(maker.thread(name));
    for (const auto& wait : row["waits"].GetArray()) {
      const int call = document["calls"][wait[4].GetString()].GetInt();
      Sample sample = maker.blocked(threads[wait[0].GetUint()], wait[1].GetString(), wait[3].GetInt() * kMs,
                                    static_cast<int16_t>(call));
      sample.start = ProfileMaker::kStart + wait[2].GetInt() * kMs;
      Waker waker;
      if (wait[5].IsString()) {
        waker.other = wait[5].GetString();
      } else {
        waker.thread = threads[wait[5].GetUint()];
        if (wait[6].GetStringLength() > 0) waker.stack = maker.stack(wait[6].GetString());
      }
      sample.waker = WakerId(static_cast<uint32_t>(profile.wakers().size()) + 1);
      profile.emit(sample.waker, waker);
      maker.put(sample);
    }
    const auto filter = SampleFilter::make(profile, {});
    ASSERT_TRUE(filter);
    const auto place_of = [&](FrameId id) {
      if (!id) return std::string();
      return profile.frame(id).function + ":" + std::to_string(profile.frame(id).line);
    };
    std::vector<std::string> sums, expected;
    for (const EndedWaits& sum : ended_waits(profile, *filter, WaitTargetGroups(profile))) {
      const int by = sum.by ? static_cast<int>(sum.by.value - threads[0].value) : -1;
      const uint32_t more = sum.by_threads == 0 ? 0 : sum.by_threads - 1;
      sums.push_back(fmt::format("{} {} {} {} {} {} {} {}", sum.system_call, place_of(sum.frame),
                                 sum.wall / kMs, sum.threads, by, more, place_of(sum.by_frame), sum.other));
    }
    for (const auto& r : row["rows"].GetArray()) {
      expected.push_back(fmt::format("{} {} {} {} {} {} {} {}", document["calls"][r[0].GetString()].GetInt(),
                                     r[1].GetString(), r[2].GetInt(), r[3].GetInt(), r[4].GetInt(),
                                     r[5].GetInt(), r[6].GetString(), r[7].GetString()));
    }
    EXPECT_EQ(sums, expected) << row["name"].GetString();
  }
}

}  // namespace
}  // namespace phlox::view
