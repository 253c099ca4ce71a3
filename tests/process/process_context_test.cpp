#include "phlox/process/process_context.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/fake_interpreter.h"

namespace phlox::process {
namespace {

class PublishedContextOf : public testing::Test {
 protected:
  void publish(std::string_view message, uint64_t published_at, uint32_t version = 2,
               std::string_view signature = "OTEL_CTX") {
    const RemoteAddress text = memory_.allocate(message.size() + 1);
    memory_.put(text, std::as_bytes(std::span(message)));
    memory_.put(header_, std::as_bytes(std::span(signature)));
    memory_.put_value(at(8), version);
    memory_.put_value(at(12), static_cast<uint32_t>(message.size()));
    memory_.put_value(at(16), published_at);
    memory_.put_value(at(24), text);
  }
  RemoteAddress at(uint64_t offset) const { return RemoteAddress(header_.value + offset); }
  std::optional<PublishedContext> read() { return read_context(memory_, header_); }

  test::FakeMemory memory_;
  RemoteAddress header_ = memory_.allocate(32);
};

TEST_F(PublishedContextOf, a_program_is_its_message) {
  publish("message", 77);
  ASSERT_TRUE(read());
  EXPECT_EQ(read()->message, "message");
  EXPECT_EQ(read()->published_at, 77u);
  publish("", 78);
  ASSERT_TRUE(read());
  EXPECT_EQ(read()->message, "");
}

TEST_F(PublishedContextOf, a_program_is_nothing_if_it_is_another_version_or_too_long_or_cannot_be_read) {
  publish("message", 77, 1);
  EXPECT_FALSE(read());
  publish("message", 77, 2, "OTEL_CTY");
  EXPECT_FALSE(read());
  publish("message", 0);
  EXPECT_FALSE(read()) << "it is being changed";
  publish(std::string((64 << 10) + 1, 'x'), 77);
  EXPECT_FALSE(read());
  publish("message", 77);
  memory_.put_value(at(24), uint64_t{8});
  EXPECT_FALSE(read());
  memory_.make_unreadable(header_, 32);
  EXPECT_FALSE(read());
}

// Something changes in the memory after each read.
class ChangingMemory : public memory::RemoteMemory {
 public:
  ChangingMemory(memory::RemoteMemory& source, std::function<void(int)> change)
      : source_(source), change_(std::move(change)) {}
  size_t read(std::span<const memory::Range> ranges) override {
    const size_t whole = source_.read(ranges);
    change_(++reads_);
    return whole;
  }

 private:
  memory::RemoteMemory& source_;
  std::function<void(int)> change_;
  int reads_ = 0;
};

TEST_F(PublishedContextOf, a_program_that_changes_it_is_never_a_mixture) {
  publish("old", 77);
  ChangingMemory once(memory_, [&](int reads) {
    if (reads == 1) publish("another", 78);
  });
  const auto found = read_context(once, header_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->message, "another");
  EXPECT_EQ(found->published_at, 78u);
  ChangingMemory always(memory_, [&](int reads) { publish("more", 100 + static_cast<uint64_t>(reads)); });
  EXPECT_FALSE(read_context(always, header_));
}

TEST(ContextMappings, have_one_of_three_names) {
  const auto maps = parse_maps(
      "1000-2000 rw-p 00000000 00:01 643125 /memfd:OTEL_CTX (deleted)\n"
      "3000-4000 rw-s 00000000 00:01 643126 [anon_shmem:OTEL_CTX]\n"
      "5000-6000 rw-p 00000000 00:00 0 [anon:OTEL_CTX]\n"
      "7000-8000 rw-p 00000000 00:00 0 [heap]\n"
      "9000-a000 rw-p 00000000 00:01 643127 /tmp/memfd:OTEL_CTX\n"
      "b000-c000 ---p 00000000 00:00 0 [anon:OTEL_CTX]\n");
  EXPECT_EQ(context_mappings(maps),
            (std::vector{RemoteAddress(0x1000), RemoteAddress(0x3000), RemoteAddress(0x5000)}));
}

}  // namespace
}  // namespace phlox::process
