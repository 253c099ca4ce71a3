#include "phlox/importers/thread_name.h"

#include <charconv>

namespace phlox::importers {
namespace {

// Addresses have more digits than kernel ids.
constexpr size_t kShortestPthread = 8;

bool is_number(std::string_view text, int32_t& number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && at == end && !text.empty()) return true;
  number = 0;
  return false;
}

bool is_hexadecimal(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool is_pthread(std::string_view text) {
  return text.starts_with("0x") && is_hexadecimal(text.substr(2));
}

std::optional<ThreadName> tachyon_thread(std::string_view frame) {
  constexpr std::string_view kPrefix = "tid:";
  ThreadName thread;
  thread.tachyon = true;
  if (!frame.starts_with(kPrefix)) return std::nullopt;
  const char* const end = frame.data() + frame.size();
  const auto [at, error] = std::from_chars(frame.data() + kPrefix.size(), end, thread.tid);
  if (error == std::errc::result_out_of_range) {
    thread.name = frame.substr(kPrefix.size());
  } else if (error != std::errc() || at != end) {
    return std::nullopt;
  }
  return thread;
}
// "thread (4711)", "thread (4711): worker-1"; "thread (0x7F0011223344): worker-1" if py-spy does not know the
// kernel's id: the pthread_t then distinguishes two threads without names.
std::optional<ThreadName> py_spy_thread(std::string_view frame) {
  constexpr std::string_view kPrefix = "thread (";
  if (!frame.starts_with(kPrefix)) return std::nullopt;
  ThreadName thread;
  const size_t close = frame.find(')');
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view id = frame.substr(kPrefix.size(), close - kPrefix.size());
  const std::string_view rest = frame.substr(close + 1);
  if (!rest.empty() && !rest.starts_with(": ")) return std::nullopt;
  if (!is_number(id, thread.tid) && !is_pthread(id)) return std::nullopt;
  thread.name = rest.empty() ? (thread.tid == 0 ? id : rest) : rest.substr(2);
  return thread;
}
// austin 1: "Thread 55d2a2e1be40", a pthread_t; others write it with "0x".
std::optional<ThreadName> austin_thread(std::string_view frame) {
  constexpr std::string_view kPrefix = "Thread ";
  if (!frame.starts_with(kPrefix)) return std::nullopt;
  const std::string_view id = frame.substr(kPrefix.size());
  if (!is_pthread(id) && (id.size() < kShortestPthread || !is_hexadecimal(id))) return std::nullopt;
  ThreadName thread;
  if (!is_number(id, thread.tid)) thread.name = id;
  return thread;
}
// "Thread 4711 "worker-1"".
std::optional<ThreadName> quoted_thread(std::string_view frame) {
  constexpr std::string_view kPrefix = "Thread ";
  if (!frame.starts_with(kPrefix) || !frame.ends_with('"')) return std::nullopt;
  ThreadName thread;
  const auto [at, error] =
      std::from_chars(frame.data() + kPrefix.size(), frame.data() + frame.size(), thread.tid);
  std::string_view rest(at, static_cast<size_t>(frame.data() + frame.size() - at));
  if (error != std::errc() || rest.size() < 3 || !rest.starts_with(" \"")) return std::nullopt;
  thread.name = rest.substr(2, rest.size() - 3);
  return thread;
}

}  // namespace

std::optional<ThreadName> thread_name(std::string_view frame) {
  if (auto thread = tachyon_thread(frame)) return thread;
  if (auto thread = py_spy_thread(frame)) return thread;
  if (auto thread = quoted_thread(frame)) return thread;
  if (auto thread = austin_thread(frame)) return thread;
  for (const std::string_view prefix : {std::string_view("Thread "), std::string_view("thread ")}) {
    if (!frame.starts_with(prefix)) continue;
    ThreadName thread;
    thread.name = frame.substr(prefix.size());
    const size_t open = thread.name.rfind('(');
    const std::string_view digits =
        open == std::string_view::npos ? thread.name : thread.name.substr(open + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), thread.tid);
    const std::string_view rest(end, static_cast<size_t>(digits.data() + digits.size() - end));
    if (error != std::errc() || (rest != ")" && !rest.empty())) return std::nullopt;
    thread.name = open == std::string_view::npos ? std::string_view() : thread.name.substr(0, open);
    while (thread.name.ends_with(' ')) thread.name.remove_suffix(1);
    return thread;
  }
  return std::nullopt;
}

}  // namespace phlox::importers
