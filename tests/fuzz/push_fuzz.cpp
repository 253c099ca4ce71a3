// What phlox agent reads that others wrote: answers of servers, requests to its port, a header file, a body
// that it divides. No crash; no message has a header's value; no value has a line break; halves carry what
// the whole did.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "phlox/push/divide.h"
#include "phlox/push/gzip.h"
#include "phlox/push/metrics_port.h"
#include "phlox/push/target.h"
#include "phlox/push/verdict.h"

namespace {

using namespace phlox::push;

void check(bool holds) {
  if (!holds) std::abort();
}

void check_answer(std::string_view bytes) {
  static const Target target = [] {
    Target made = *target_of(Protocol::otlp, "http://localhost:4318");
    made.headers = {{"Authorization", "s3cr3t"}};
    return made;
  }();
  Answer answer;
  answer.body = bytes;
  for (const int status : {200, 401, 413, 503}) {
    answer.status = status;
    const Verdict verdict = verdict_on(answer, target);
    check(verdict.message.find("s3cr3t") == std::string::npos);
    for (const char c : verdict.message) check(static_cast<unsigned char>(c) >= ' ');
  }
}

void check_grpc(std::string_view bytes) {
  static const Target target = [] {
    Target made = *target_of(Protocol::otlp_grpc, "http://localhost:4317");
    made.headers = {{"Authorization", "s3cr3t"}};
    return made;
  }();
  const std::string text(bytes);
  Answer answer;
  answer.status = 200;
  answer.body = text;
  answer.headers = {{"grpc-status", bytes.starts_with('0') ? "0" : "8"},
                    {"grpc-message", text},
                    {"grpc-status-details-bin", text}};
  const Verdict verdict = verdict_on(answer, target);
  check(verdict.message.find("s3cr3t") == std::string::npos);
  for (const char c : verdict.message) check(static_cast<unsigned char>(c) >= ' ');
  check(verdict.retry_after.value_or(0) >= 0);
}

void check_headers(std::string_view bytes) {
  const auto is_one_line = [](const Header& header) {
    return (header.name + header.value).find_first_of("\r\n") == std::string::npos;
  };
  if (const auto lines = parse_header_file(bytes)) {
    for (const HeaderLine& line : *lines) check(is_one_line(line.header));
  }
  if (const auto list = parse_header_list(bytes)) {
    for (const Header& header : *list) check(is_one_line(header));
  }
  if (const auto target = target_of(Protocol::pyroscope, bytes)) {
    check(target->shown.find_first_of("@? \r\n") == std::string::npos ||
          target->shown.find('@') > target->shown.find('/', 8));
  }
}

void check_division(std::string_view bytes) {
  if (const auto halves = divided(bytes, 1); halves && !bytes.starts_with("\x1f\x8b"))
    check(halves->first.size() + halves->second.size() >= bytes.size() / 2);
  constexpr size_t kMost = 1 << 20;
  if (const auto plain = gunzip(bytes, kMost)) check(gunzip(gzip(*plain), kMost) == plain);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_answer(bytes);
  check_grpc(bytes);
  check_headers(bytes);
  check_division(bytes);
  const std::string response = response_to(bytes, [](std::string_view path) -> std::optional<Page> {
    if (path.empty() || path.front() != '/') std::abort();
    return Page{};
  });
  check(response.starts_with("HTTP/1.1 "));
  return 0;
}
