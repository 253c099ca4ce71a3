#include "phlox/push/sender.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <protozero/pbf_writer.hpp>

#include "phlox/push/gzip.h"

namespace phlox::push {
namespace {

namespace fs = std::filesystem;

Answer status(int number) {
  Answer answer;
  answer.status = number;
  return answer;
}
Answer failure(Failure why) {
  Answer answer;
  answer.failure = why;
  return answer;
}

// Gives the prepared answers, then 200 for ever.
class FakeServer : public http::Client {
 public:
  Answer send(const http::Request& request) override {
    bodies.emplace_back(*request.body);
    if (answers.empty()) return status(200);
    const Answer answer = answers.front();
    answers.pop_front();
    return answer;
  }
  std::deque<Answer> answers;
  std::vector<std::string> bodies;
};

class SenderTest : public testing::Test {
 protected:
  SenderTest() {
    std::string name = (fs::temp_directory_path() / "phlox-sender-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    outbox = *Outbox::open(folder + "/box", 1'000'000);
    target = *target_of(Protocol::otlp, "http://localhost:4318");
    sender.emplace(target, *outbox, server,
                   Sender::Notes{[this](const std::string& text, const std::string& hint) {
                                   said.push_back(text + (hint.empty() ? "" : " | " + hint));
                                 },
                                 [this](const std::string& text) { said.push_back(text); }},
                   [] { return 1.0; });
  }
  ~SenderTest() override {
    sender.reset();
    outbox.reset();
    fs::remove_all(folder);
  }
  // Steps until nothing is due at `now`; returns for how long.
  std::optional<Nanoseconds> step_all(Nanoseconds now) {
    std::optional<Nanoseconds> wait = 0;
    for (int i = 0; i < 1000 && wait && *wait == 0; ++i) wait = sender->step(now);
    return wait;
  }

  std::string folder;
  Target target;
  FakeServer server;
  std::unique_ptr<Outbox> outbox;
  std::vector<std::string> said;
  std::optional<Sender> sender;
};

TEST_F(SenderTest, sends_everything_and_then_waits_for_more) {
  outbox->put("a");
  outbox->put("b");
  EXPECT_FALSE(step_all(0));
  EXPECT_EQ(server.bodies, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(sender->counts().sent, 2U);
  EXPECT_EQ(outbox->counts().items, 0U);
  EXPECT_TRUE(said.empty());
}

TEST_F(SenderTest, waits_longer_from_failure_to_failure_and_loses_nothing) {
  outbox->put("a");
  for (int i = 0; i < 9; ++i) server.answers.push_back(failure(Failure::no_connection));
  Nanoseconds now = 0;
  std::vector<Nanoseconds> waits;
  while (true) {
    const auto wait = step_all(now);
    if (!wait) break;
    waits.push_back(*wait / kSecond);
    // A moment before, nothing is sent.
    const size_t before = server.bodies.size();
    EXPECT_EQ(sender->step(now + *wait - 1), std::optional<Nanoseconds>(1));
    EXPECT_EQ(server.bodies.size(), before);
    now += *wait;
  }
  EXPECT_EQ(waits, (std::vector<Nanoseconds>{1, 2, 4, 8, 16, 32, 60, 60, 60}));
  EXPECT_EQ(server.bodies.size(), 10U);
  EXPECT_EQ(sender->counts().sent, 1U);
  EXPECT_EQ(sender->counts().failures, 9U);
  EXPECT_EQ(outbox->counts().lost(), 0U);
  // Said once, and that it is over.
  ASSERT_EQ(said.size(), 2U);
  EXPECT_NE(said[0].find("no server answers there"), std::string::npos) << said[0];
  EXPECT_NE(said[1].find("accepts profiles again"), std::string::npos) << said[1];
  // The next outage begins with a short wait.
  server.answers.push_back(status(503));
  outbox->put("b");
  EXPECT_EQ(step_all(now), std::optional<Nanoseconds>(kSecond));
}

TEST_F(SenderTest, half_of_each_wait_is_random) {
  Backoff backoff;
  EXPECT_EQ(backoff.next(0), kSecond / 2);
  EXPECT_EQ(backoff.next(0), kSecond);
  EXPECT_EQ(backoff.next(0.5), 3 * kSecond);
  EXPECT_EQ(backoff.next(7), 8 * kSecond);
}

TEST_F(SenderTest, a_server_says_when_it_wants_to_be_asked_again) {
  Answer busy = status(429);
  busy.retry_after = 90 * kSecond;
  Answer absurd = status(503);
  absurd.retry_after = 1'000'000 * kSecond;
  server.answers = {busy, absurd};
  outbox->put("a");
  EXPECT_EQ(step_all(0), std::optional<Nanoseconds>(90 * kSecond));
  EXPECT_EQ(step_all(90 * kSecond), std::optional<Nanoseconds>(3600 * kSecond));
  EXPECT_FALSE(step_all(3690 * kSecond));
  EXPECT_EQ(sender->counts().sent, 1U);
}

TEST_F(SenderTest, what_an_operator_can_mend_is_not_dropped) {
  for (const int number : {301, 401, 403, 404, 405, 408, 429, 500, 502, 503, 504, 777})
    server.answers.push_back(status(number));
  for (const Failure why : {Failure::no_name, Failure::certificate, Failure::tls, Failure::proxy,
                            Failure::too_slow, Failure::cut_off, Failure::other})
    server.answers.push_back(failure(why));
  const size_t problems = server.answers.size();
  outbox->put("a");
  Nanoseconds now = 0;
  while (const auto wait = step_all(now)) now += *wait;
  EXPECT_EQ(server.bodies.size(), problems + 1);
  EXPECT_EQ(sender->counts().sent, 1U);
  EXPECT_EQ(outbox->counts().lost(), 0U);
  // Each of them was said: each is another.
  EXPECT_EQ(said.size(), problems + 1);
}

TEST_F(SenderTest, a_problem_is_said_again_when_it_changed_and_not_before) {
  for (const int number : {503, 503, 503, 401, 401, 503}) server.answers.push_back(status(number));
  outbox->put("a");
  Nanoseconds now = 0;
  while (const auto wait = step_all(now)) now += *wait;
  ASSERT_EQ(said.size(), 4U);
  EXPECT_NE(said[1].find("credentials"), std::string::npos);
  EXPECT_NE(said[1].find("--header-file"), std::string::npos);
}

TEST_F(SenderTest, what_a_server_never_takes_is_dropped_and_counted) {
  server.answers = {status(400), status(415)};
  for (const char* body : {"a", "b", "c"}) outbox->put(body);
  EXPECT_FALSE(step_all(0));
  EXPECT_EQ(outbox->counts().refused, 2U);
  EXPECT_EQ(sender->counts().sent, 1U);
}

std::string message_of(const std::vector<std::string>& carried, bool compressed) {
  std::string bytes;
  protozero::pbf_writer out(bytes);
  for (const std::string& one : carried) out.add_bytes(1, one);
  out.add_bytes(2, "dictionary");
  return compressed ? gzip(bytes) : bytes;
}

TEST_F(SenderTest, what_is_too_large_is_divided_until_it_fits) {
  for (const bool compressed : {true, false}) {
    server.bodies.clear();
    // The whole, its first half, and of that the first half.
    server.answers = {status(413), status(413)};
    outbox->put(message_of({"a", "b", "c", "d"}, compressed));
    EXPECT_FALSE(step_all(0));
    const std::vector<std::string> got(server.bodies.begin() + 2, server.bodies.end());
    EXPECT_EQ(got, (std::vector<std::string>{message_of({"a"}, compressed), message_of({"b"}, compressed),
                                             message_of({"c", "d"}, compressed)}));
    EXPECT_EQ(outbox->counts().lost(), 0U);
  }
  EXPECT_EQ(said.size(), 1U) << "not of every interval";
}

TEST_F(SenderTest, what_is_too_large_and_cannot_be_divided_is_dropped) {
  for (const std::string& body : {message_of({"a"}, true), std::string("\x1f\x8b no gzip"),
                                  std::string("\x08"), std::string("\x0a\x7f")}) {
    server.answers = {status(413)};
    outbox->put(body);
    EXPECT_FALSE(step_all(0));
  }
  EXPECT_EQ(outbox->counts().refused, 4U);
  EXPECT_EQ(sender->counts().sent, 0U);
}

TEST_F(SenderTest, profiles_that_a_server_leaves_out_are_counted_and_said) {
  std::string part, body;
  protozero::pbf_writer(part).add_int64(1, 3);
  protozero::pbf_writer(part).add_string(2, "no \x1b[31mthanks");
  protozero::pbf_writer(body).add_message(1, part);
  Answer partly = status(200);
  partly.body = body;
  Answer nonsense = status(200);
  nonsense.body = "\xff\xff\xff";
  server.answers = {partly, nonsense};
  outbox->put("a");
  outbox->put("b");
  EXPECT_FALSE(step_all(0));
  EXPECT_EQ(sender->counts().sent, 2U);
  EXPECT_EQ(sender->counts().rejected, 3U);
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said[0].find("\"no  [31mthanks\""), std::string::npos) << said[0];
}

TEST_F(SenderTest, no_message_repeats_a_credential) {
  target.headers = {{"Authorization", "Bearer s3cr3t"}};
  Answer echo = status(401);
  echo.body = "no such token: Bearer s3cr3t";
  server.answers = {echo};
  outbox->put("a");
  step_all(0);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].find("s3cr3t"), std::string::npos) << said[0];
}

TEST_F(SenderTest, at_the_end_a_thread_sends_what_there_is) {
  server.answers = {status(503)};
  outbox->put("a");
  outbox->put("b");
  auto own = std::make_unique<Sender>(target, *outbox, server, Sender::Notes(), [] { return 1.0; });
  own->step(clock_now());  // now it would wait
  SenderThread thread(std::move(own));
  thread.finish(clock_now() + 60 * kSecond);
  thread.wait();
  EXPECT_EQ(outbox->counts().items, 0U);
  EXPECT_EQ(server.bodies.size(), 3U);
}

TEST_F(SenderTest, at_the_end_a_thread_does_not_wait_for_a_server_that_is_away) {
  for (int i = 0; i < 9; ++i) server.answers.push_back(failure(Failure::no_connection));
  outbox->put("a");
  outbox->put("b");
  {
    SenderThread thread(
        std::make_unique<Sender>(target, *outbox, server, Sender::Notes(), [] { return 1.0; }));
    thread.finish(clock_now() + 3600 * kSecond);
    thread.wait();
  }
  EXPECT_EQ(outbox->counts().items, 2U);
}

}  // namespace
}  // namespace phlox::push
