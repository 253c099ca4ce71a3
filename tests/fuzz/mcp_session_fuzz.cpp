// Messages of a client, from anybody: in pieces, as a pipe delivers them. No crash; each line that is sent is
// one JSON value; a call is answered at most once.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "phlox/mcp/fitted.h"
#include "phlox/mcp/message_lines.h"
#include "phlox/mcp/session.h"

namespace {

using namespace phlox::mcp;

struct Host : Session::Host {
  void send(const std::string& message) override {
    if (!parse_json(message, {100, 1'000'000}) || message.find('\n') != std::string::npos) std::abort();
  }
  void call(uint64_t number, const Tool& tool, const Json& arguments) override {
    if (!check_arguments(tool, arguments)) std::abort();
    std::vector<std::string> cut;
    (void)fitted(arguments, 100, cut);
    called.push_back(number);
  }
  void cancel(uint64_t) override {}

  std::vector<uint64_t> called;
};

std::vector<Tool> tools() {
  Tool tool;
  tool.name = "dump";
  tool.parameters = {{.name = "pid", .kind = Parameter::Kind::integer, .description = "p"},
                     {.name = "by", .description = "b", .choices = {"line"}},
                     {.name = "files", .kind = Parameter::Kind::texts, .description = "f"},
                     {.name = "seconds", .kind = Parameter::Kind::number, .description = "s"},
                     {.name = "all", .kind = Parameter::Kind::flag, .description = "a"}};
  return {tool};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<Tool> all = tools();
  Host host;
  Session session("1", "i", all, host);
  MessageLines lines(500);
  const auto line = [&](std::string_view text) { session.take(text); };
  const auto too_long = [&] { session.take_too_long(500); };
  constexpr size_t kPiece = 61;
  for (size_t at = 0; at < size; at += kPiece) {
    lines.put({reinterpret_cast<const char*>(data) + at, std::min(kPiece, size - at)}, line, too_long);
    if (host.called.size() > 1 && at % 2 == 0) {
      session.report_progress(host.called.back(), 1, 2, "half");
      session.answer(host.called.back(), {"text", Json::object({{"a", "b"}}), false});
    }
  }
  lines.end(line, too_long);
  for (const uint64_t number : host.called) session.answer(number, {"text", Json::object(), false});
  return 0;
}
