#include "phlox/mcp/session.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace phlox::mcp {
namespace {

// A host that runs nothing: what was called and cancelled, and what was sent.
struct Host : Session::Host {
  void send(const std::string& message) override { sent.push_back(message); }
  void call(uint64_t number, const Tool& tool, const Json& arguments) override {
    called.emplace_back(number, tool.name + write_json(arguments));
  }
  void cancel(uint64_t number) override { cancelled.push_back(number); }

  std::vector<std::string> sent;
  std::vector<std::pair<uint64_t, std::string>> called;
  std::vector<uint64_t> cancelled;
};

std::vector<Tool> tools() {
  Tool sample;
  sample.name = "look";
  sample.title = "Look";
  sample.parameters = {
      {.name = "pid", .kind = Parameter::Kind::integer, .description = "which", .required = true},
      {.name = "how", .description = "how", .choices = {"near", "far"}},
      {.name = "files", .kind = Parameter::Kind::texts, .description = "files"},
      {.name = "deep", .kind = Parameter::Kind::flag, .description = "deep"}};
  sample.parameters[0].least = 1;
  sample.parameters[0].most = 100;
  return {sample};
}

class SessionTest : public testing::Test {
 protected:
  // The one message that this is answered with.
  std::string answer(std::string_view message) {
    host.sent.clear();
    session.take(message);
    EXPECT_EQ(host.sent.size(), 1U) << message;
    return host.sent.empty() ? "" : host.sent.back();
  }
  size_t answers(std::string_view message) {
    host.sent.clear();
    session.take(message);
    return host.sent.size();
  }
  int code(std::string_view message) {
    const auto read = parse_json(answer(message));
    const Json* error = read ? read->find("error") : nullptr;
    return error == nullptr ? 0 : static_cast<int>(error->find("code")->as_integer().value_or(0));
  }
  void agree(std::string_view version) {
    answer(R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":")" +
           std::string(version) + R"(","capabilities":{}}})");
  }
  std::string call(std::string_view id, std::string_view arguments, std::string_view meta = "{}") {
    return R"({"jsonrpc":"2.0","id":)" + std::string(id) +
           R"(,"method":"tools/call","params":{"name":"look","arguments":)" + std::string(arguments) +
           R"(,"_meta":)" + std::string(meta) + "}}";
  }

  Host host;
  Session session{"1.2.3", "look first", tools(), host};
};

constexpr std::string_view kModern =
    R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})";

TEST_F(SessionTest, the_version_that_the_client_wants_is_agreed_on_or_the_newest_one) {
  for (const char* version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    const std::string got =
        answer(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":")" +
               std::string(version) + R"("}})");
    EXPECT_NE(got.find(R"("protocolVersion":")" + std::string(version)), std::string::npos) << got;
  }
  for (const char* version : {"1999-01-01", "2026-07-28", "x"}) {
    const std::string got =
        answer(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":")" +
               std::string(version) + R"("}})");
    EXPECT_NE(got.find(R"("protocolVersion":"2025-11-25")"), std::string::npos) << got;
  }
}

TEST_F(SessionTest, ids_come_back_as_they_were_written) {
  for (const char* id : {"1", "0", "-7", "1.0", "1e2", "123456789012345678901234567890", R"("a")", R"("")",
                         R"("\"\\\u0007")"}) {
    const std::string got = answer(R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":"ping"})");
    EXPECT_EQ(got, R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"result":{}})");
  }
}

TEST_F(SessionTest, what_is_no_request_is_an_error_of_json_rpc) {
  EXPECT_EQ(code("{bad"), -32700);
  EXPECT_EQ(code(std::string(100, '[')), -32700);
  EXPECT_EQ(code("1"), -32600);
  EXPECT_EQ(code("null"), -32600);
  EXPECT_EQ(code("{}"), -32600);
  EXPECT_EQ(code(R"({"id":1,"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"1.0","id":1,"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":7})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":null,"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":{},"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})"), -32602);
  EXPECT_EQ(answer("{bad").find(R"({"jsonrpc":"2.0","id":null,"error")"), 0U);
  session.take_too_long(7);
  EXPECT_NE(host.sent.back().find("-32700"), std::string::npos);
}

TEST_F(SessionTest, notifications_and_answers_are_not_answered) {
  for (const char* message :
       {R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
        R"({"jsonrpc":"2.0","method":"nonsense","params":[]})",
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}})",
        R"({"jsonrpc":"2.0","id":1,"result":{}})", R"({"jsonrpc":"2.0","id":1,"error":{}})"})
    EXPECT_EQ(answers(message), 0U) << message;
}

TEST_F(SessionTest, before_a_version_is_agreed_on_only_ping_is_answered) {
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"), -32602);
  EXPECT_EQ(code(call("1", R"({"pid":1})")), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"server/discover"})"), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"ping"})"), 0);
  EXPECT_TRUE(host.called.empty());
}

TEST_F(SessionTest, requests_that_say_their_version_need_no_agreement) {
  const std::string found =
      answer(R"({"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":)" +
             std::string(kModern) + "}}");
  EXPECT_NE(found.find(R"("supportedVersions":["2026-07-28"])"), std::string::npos);
  EXPECT_NE(found.find(R"("resultType":"complete")"), std::string::npos);
  EXPECT_EQ(answers(call("2", R"({"pid":1})", kModern)), 0U);
  ASSERT_EQ(host.called.size(), 1U);
  session.answer(host.called[0].first, {"seen", Json::object(), false});
  EXPECT_NE(host.sent.back().find(R"("io.modelcontextprotocol/serverInfo":{"name":"phlox")"),
            std::string::npos);
  EXPECT_EQ(code(call("3", R"({"pid":1})", R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28"})")),
            -32602);
  EXPECT_EQ(code(call("4", R"({"pid":1})", R"({"io.modelcontextprotocol/protocolVersion":"1900-01-01"})")),
            -32022);
  EXPECT_NE(host.sent.back().find(R"("requested":"1900-01-01")"), std::string::npos);
}

TEST_F(SessionTest, a_call_is_handed_on_and_answered_once) {
  agree("2025-06-18");
  EXPECT_EQ(answers(call("5", R"({"pid":10.0,"how":"far","files":["a"],"deep":true})")), 0U);
  ASSERT_EQ(host.called.size(), 1U);
  EXPECT_EQ(host.called[0].second, R"(look{"pid":10.0,"how":"far","files":["a"],"deep":true})");
  session.answer(host.called[0].first, {"seen", Json::object({{"a", "b"}}), false});
  session.answer(host.called[0].first, {"again", Json::object(), false});
  ASSERT_EQ(host.sent.size(), 1U);
  EXPECT_EQ(
      host.sent[0],
      R"({"jsonrpc":"2.0","id":5,"result":{"structuredContent":{"a":"b"},"content":[{"type":"text","text":"seen"}],"isError":false}})");
}

TEST_F(SessionTest, before_structured_answers_they_are_a_second_text) {
  agree("2025-03-26");
  answers(call("5", R"({"pid":1})"));
  session.answer(host.called.back().first, {"seen", Json::object({{"a", "b"}}), false});
  EXPECT_EQ(host.sent.back().find("structuredContent"), std::string::npos);
  EXPECT_NE(host.sent.back().find(R"({"type":"text","text":"{\"a\":\"b\"}"})"), std::string::npos);
  EXPECT_EQ(answer(R"({"jsonrpc":"2.0","id":6,"method":"tools/list"})").find("outputSchema"),
            std::string::npos);
}

TEST_F(SessionTest, wrong_arguments_are_an_answer_that_says_what_is_wrong) {
  agree("2025-06-18");
  for (const auto& [arguments, words] : std::vector<std::pair<const char*, const char*>>{
           {"{}", "pid is missing"},
           {R"({"pid":"1"})", "pid: must be an integer"},
           {R"({"pid":1.5})", "pid: must be an integer"},
           {R"({"pid":0})", "pid: must be from 1 to 100"},
           {R"({"pid":1,"how":"up"})", "how: must be one of near, far"},
           {R"({"pid":1,"how":"fa\u0000r"})", "how: has a zero byte in it"},
           {R"({"pid":1,"files":[]})", "files: must be an array of strings"},
           {R"({"pid":1,"files":["a",1]})", "files: must be a string"},
           {R"({"pid":1,"deep":1})", "deep: must be true or false"},
           {R"({"pid":1,"depe":true})", "look has no parameter 'depe'\\nhint: did you mean deep?"}}) {
    const std::string got = answer(call("1", arguments));
    EXPECT_NE(got.find(words), std::string::npos) << got;
    EXPECT_NE(got.find(R"("isError":true)"), std::string::npos) << got;
  }
  EXPECT_TRUE(host.called.empty());
  EXPECT_EQ(code(call("1", "[]")), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}})"), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})"), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"resources/list"})"), -32601);
}

TEST_F(SessionTest, a_cancelled_call_gets_no_answer_and_its_id_is_free_again) {
  agree("2025-06-18");
  answers(call(R"("x")", R"({"pid":1})"));
  EXPECT_EQ(code(call(R"("x")", R"({"pid":1})")), -32600);
  EXPECT_EQ(answers(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"y"}})"),
            0U);
  EXPECT_TRUE(host.cancelled.empty());
  EXPECT_EQ(answers(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}})"),
            0U);
  EXPECT_EQ(host.cancelled, std::vector<uint64_t>{host.called[0].first});
  session.answer(host.called[0].first, {"late", Json::object(), false});
  EXPECT_TRUE(host.sent.empty());
  EXPECT_EQ(answers(call(R"("x")", R"({"pid":1})")), 0U);
  EXPECT_EQ(host.called.size(), 2U);
}

TEST_F(SessionTest, progress_is_reported_to_the_caller_until_the_answer) {
  agree("2025-06-18");
  answers(call("1", R"({"pid":1})"));
  answers(call("2", R"({"pid":1})", R"({"progressToken":"t"})"));
  session.report_progress(host.called[0].first, 1, 2, "half");
  EXPECT_TRUE(host.sent.empty());
  session.report_progress(host.called[1].first, 1.5, 2, "more");
  ASSERT_EQ(host.sent.size(), 1U);
  EXPECT_EQ(
      host.sent[0],
      R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.5,"total":2,"message":"more"}})");
  session.answer(host.called[1].first, {"seen", Json::object(), false});
  session.report_progress(host.called[1].first, 2, 2, "done");
  EXPECT_EQ(host.sent.size(), 2U);
}

TEST_F(SessionTest, a_batch_is_answered_in_one_line_when_all_of_it_is_done) {
  agree("2025-03-26");
  const std::string batch =
      "[" + call("1", R"({"pid":1})") + "," + call("2", R"({"pid":2})") +
      R"(,{"jsonrpc":"2.0","method":"notifications/initialized"},7,{"jsonrpc":"2.0","id":3,"method":"ping"}])";
  EXPECT_EQ(answers(batch), 0U);
  session.answer(host.called[1].first, {"second", Json::object(), false});
  EXPECT_TRUE(host.sent.empty());
  EXPECT_EQ(answers(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})"), 1U);
  const auto all = parse_json(host.sent[0]);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->items().size(), 3U);  // of 7, of ping, of the second call
  EXPECT_EQ(answers(R"([{"jsonrpc":"2.0","method":"notifications/initialized"}])"), 0U);
  EXPECT_EQ(code("[]"), -32600);
  agree("2025-06-18");
  EXPECT_EQ(code(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])"), -32600);
}

TEST_F(SessionTest, tools_are_listed_with_their_schemas) {
  agree("2025-11-25");
  const auto got = parse_json(answer(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"));
  ASSERT_TRUE(got);
  const Json& tool = got->find("result")->find("tools")->items().at(0);
  EXPECT_EQ(
      write_json(*tool.find("inputSchema")),
      R"({"type":"object","properties":{"pid":{"type":"integer","minimum":1,"maximum":100,"description":"which"},"how":{"type":"string","enum":["near","far"],"description":"how"},"files":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":200,"description":"files"},"deep":{"type":"boolean","description":"deep"}},"required":["pid"],"additionalProperties":false})");
  EXPECT_TRUE(tool.find("annotations")->find("readOnlyHint")->is_true());
  EXPECT_NE(tool.find("outputSchema"), nullptr);
}

}  // namespace
}  // namespace phlox::mcp
