#include "phlox/recording/writer_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "phlox/profile/profile.h"

namespace phlox::recording {
namespace {

// Counts what comes, and says where it is out of order.
class Counting : public profile::Profile {
 public:
  void receive(const profile::AnyRow& row) override {
    if (const auto* sample = std::get_if<profile::Numbered<profile::SampleId>>(&row)) {
      EXPECT_EQ(sample->id.value, ++samples_);
      EXPECT_LE(sample->value.stack.value, stacks_);
      if (slow_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else if (const auto* stack = std::get_if<profile::Numbered<profile::StackId>>(&row)) {
      EXPECT_EQ(stack->id.value, ++stacks_);
      EXPECT_LE(stack->value.frame.value, frames_);
    } else if (const auto* frame = std::get_if<profile::Numbered<profile::FrameId>>(&row)) {
      EXPECT_EQ(frame->id.value, ++frames_);
      EXPECT_EQ(frame->value.function, std::to_string(frame->id.value));
    }
  }
  Result<void> commit() override {
    ++commits_;
    if (full_) return fail(ErrorKind::output, "the disk is full");
    return {};
  }

  uint32_t samples_ = 0, stacks_ = 0, frames_ = 0;
  int commits_ = 0;
  bool slow_ = false, full_ = false;
};

void put(profile::Sink& sink, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i <= to; ++i) {
    profile::Frame frame;
    frame.function = std::to_string(i);
    sink.emit(profile::FrameId(i), frame);
    profile::Stack stack;
    stack.frame = profile::FrameId(i);
    sink.emit(profile::StackId(i), stack);
    profile::Sample sample;
    sample.stack = profile::StackId(i);
    sink.emit(profile::SampleId(i), sample);
  }
}

TEST(WritersThread, passes_on_rows_in_order_and_all_of_them_by_the_commit) {
  Counting counting;
  WriterThread thread(counting);
  uint32_t before = 0;
  for (const uint32_t until : {0U, 1U, 700U, 20'000U}) {
    put(thread, before + 1, until);
    ASSERT_TRUE(thread.commit());
    EXPECT_EQ(counting.samples_, until);
    EXPECT_EQ(counting.frames_, until);
    before = until;
  }
  EXPECT_EQ(counting.commits_, 4);
}

TEST(WritersThread, passes_on_every_kind_of_row) {
  profile::Profile profile;
  WriterThread thread(profile);
  thread.emit_meta("key", "value");
  profile::Process process;
  process.pid = 7;
  thread.emit(profile::ProcessId(1), process);
  profile::Thread row;
  row.name = "worker";
  row.process = profile::ProcessId(1);
  thread.emit(profile::ThreadId(1), row);
  profile::Module module;
  module.path = "/lib/libfoo.so";
  thread.emit(profile::ModuleId(1), module);
  thread.emit(profile::WaitTargetId(1), {});
  thread.emit(profile::WakerId(1), {});
  profile::Event event;
  event.text = "began";
  thread.emit(event);
  thread.emit({{}, "looks", 3});
  ASSERT_TRUE(thread.commit());
  EXPECT_EQ(profile.meta().at("key"), "value");
  ASSERT_EQ(profile.processes().size(), 1U);
  EXPECT_EQ(profile.processes()[0].pid, 7);
  EXPECT_EQ(profile.threads()[0].name, "worker");
  EXPECT_EQ(profile.modules()[0].path, "/lib/libfoo.so");
  EXPECT_EQ(profile.wait_targets().size(), 1U);
  EXPECT_EQ(profile.wakers().size(), 1U);
  EXPECT_EQ(profile.events()[0].text, "began");
  EXPECT_EQ(profile.counters().size(), 1U);
}

TEST(WritersThread, waits_for_a_slow_sink_and_says_what_it_says) {
  Counting counting;
  counting.slow_ = counting.full_ = true;
  WriterThread thread(counting);
  put(thread, 1, 20);
  const auto done = thread.commit();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "the disk is full");
  EXPECT_EQ(counting.samples_, 20U);
}

TEST(WritersThread, ends_without_writing_what_was_not_committed) {
  Counting counting;
  counting.slow_ = true;
  {
    WriterThread thread(counting);
    put(thread, 1, 2'000);
  }
  EXPECT_LT(counting.samples_, 2'000U);
}

}  // namespace
}  // namespace phlox::recording
