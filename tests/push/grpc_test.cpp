#include "phlox/push/grpc.h"

#include <gtest/gtest.h>

#include "phlox/push/gzip.h"
#include "phlox/push/verdict.h"

namespace phlox::push {
namespace {

using namespace std::string_literals;

Answer answer_with(std::vector<http::Header> headers, std::string body = {}) {
  Answer answer;
  answer.status = 200;
  answer.headers = std::move(headers);
  answer.body = std::move(body);
  return answer;
}
Answer refusal(int code, const std::string& words = {}) {
  return answer_with({{"grpc-status", std::to_string(code)}, {"grpc-message", words}});
}
Target target() {
  return *target_of(Protocol::otlp_grpc, "http://localhost:4317");
}

TEST(Grpc, a_frame_says_whether_it_is_compressed_and_how_long_the_message_is) {
  EXPECT_EQ(grpc_frame("abc", false), "\0\0\0\0\3abc"s);
  EXPECT_EQ(grpc_frame(std::string(0x010203, 'x'), true).substr(0, 5), "\1\0\1\2\3"s);
  EXPECT_EQ(grpc_message(grpc_frame("abc", false) + "more"), "abc");
  EXPECT_EQ(grpc_message(grpc_frame(gzip("abc"), true)), "abc");
  EXPECT_EQ(grpc_message(grpc_frame("", false)), "");
  EXPECT_FALSE(grpc_message("\0\0\0\0\3ab"s));
  EXPECT_FALSE(grpc_message("\0\0\0"s));
  EXPECT_FALSE(grpc_message(grpc_frame("no gzip", true)));
}

TEST(Grpc, a_status_comes_with_its_message_decoded) {
  const auto status =
      grpc_status(answer_with({{"Grpc-Status", "14"}, {"grpc-message", "caf%C3%A9 100% %zz"}}));
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 14);
  EXPECT_EQ(status->words, "caf\xc3\xa9 100% %zz");
  EXPECT_FALSE(grpc_status(answer_with({})));
  EXPECT_EQ(grpc_status(answer_with({{"grpc-status", "x"}}))->code, 2) << "UNKNOWN";
}

TEST(Grpc, the_pause_that_a_server_asks_for_is_in_the_details) {
  // {code: 8, message: "slow", details: [{type_url: "type.googleapis.com/google.rpc.RetryInfo",
  //  value: {retry_delay: {seconds: 3, nanos: 500000000}}}]}, without padding.
  const std::string details =
      "CAgSBHNsb3caNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIAxCAyrXuAQ";
  const auto delay = [](const std::string& text) {
    return grpc_status(answer_with({{"grpc-status", "8"}, {"grpc-status-details-bin", text}}))->retry_after;
  };
  EXPECT_EQ(delay(details), 3 * kSecond + kSecond / 2);
  EXPECT_EQ(delay(details + "="), 3 * kSecond + kSecond / 2);
  for (size_t size = 0; size + 1 < details.size(); ++size)
    EXPECT_FALSE(delay(details.substr(0, size)) > kSecond * 4);
  EXPECT_FALSE(delay("CAgSBHNsb3c"));
  EXPECT_FALSE(delay("!"));
}

TEST(GrpcVerdict, each_status_means_what_a_client_of_otlp_does_then) {
  const auto action = [](int code, const std::string& words = {}) {
    return verdict_on(refusal(code, words), target()).action;
  };
  EXPECT_EQ(action(0), Action::done);
  for (const int code : {1, 2, 4, 5, 7, 8, 10, 11, 12, 13, 14, 15, 16, 99, -1})
    EXPECT_EQ(action(code), Action::again) << code;
  for (const int code : {3, 6, 9}) EXPECT_EQ(action(code), Action::drop) << code;
  for (const char* words : {"grpc: received message larger than max (5 vs. 4)",
                            "CLIENT: Received message larger than max (1 vs. 0)",
                            "gRPC message exceeds maximum size 4194304: 4194305"})
    EXPECT_EQ(action(8, words), Action::divide) << words;
  EXPECT_EQ(action(11, "Error, decoded message length too large: found 5 bytes"), Action::divide);
  EXPECT_EQ(action(3, "too large"), Action::drop);
}

TEST(GrpcVerdict, says_what_the_status_is_and_what_to_do) {
  const auto said = [](int code, const std::string& words = {}) {
    const Verdict verdict = verdict_on(refusal(code, words), target());
    return verdict.message + " | " + verdict.hint;
  };
  const std::string to = "cannot send profiles to http://localhost:4317 (otlp-grpc): ";
  EXPECT_EQ(said(16, "no%20token"),
            to + "it needs credentials, or rejects these (UNAUTHENTICATED, gRPC status 16): \"no token\" | "
                 "write the header "
                 "into a file (Authorization: Bearer …) and name the file with --header-file");
  EXPECT_NE(said(12).find("UNIMPLEMENTED"), std::string::npos);
  EXPECT_NE(said(12).find("--feature-gates=service.profilesSupport"), std::string::npos);
  EXPECT_NE(said(77).find("(UNKNOWN, gRPC status 77)"), std::string::npos);
}

TEST(GrpcVerdict, an_answer_without_a_status_is_not_of_grpc_and_drops_nothing) {
  for (const int status : {200, 400, 404, 405, 415, 502}) {
    Answer answer;
    answer.status = status;
    const Verdict verdict = verdict_on(answer, target());
    EXPECT_EQ(verdict.action, Action::again) << status;
    EXPECT_FALSE(verdict.message.empty());
  }
  Answer cut_off;
  cut_off.failure = Failure::cut_off;
  EXPECT_NE(verdict_on(cut_off, target()).hint.find("4317"), std::string::npos);
}

TEST(GrpcVerdict, profiles_that_a_server_rejected_are_counted) {
  // {partial_success: {rejected_profiles: 2, error_message: "old"}}
  const std::string message = "\x0a\x07\x08\x02\x12\x03old";
  const Verdict verdict =
      verdict_on(answer_with({{"grpc-status", "0"}}, grpc_frame(message, false)), target());
  EXPECT_EQ(verdict.action, Action::done);
  EXPECT_EQ(verdict.rejected, 2U);
  EXPECT_NE(verdict.message.find("\"old\""), std::string::npos);
}

}  // namespace
}  // namespace phlox::push
