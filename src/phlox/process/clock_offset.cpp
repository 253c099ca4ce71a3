#include "phlox/process/clock_offset.h"

#include <sys/stat.h>

#include <algorithm>

#include "phlox/base/text.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

// The host's own: PROC_TIME_INIT_INO (include/linux/proc_ns.h).
constexpr ino_t kInitialTimeNamespace = 0xEFFFFFFA;

bool take_field(std::string_view& text, int64_t& number) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return take_number(text, number);
}

}  // namespace

std::optional<Nanoseconds> parse_monotonic_offset(std::string_view text) {
  // The kernel accepts no larger offset (KTIME_SEC_MAX / 2).
  constexpr int64_t kMostSeconds = INT64_MAX / kSecond / 2;
  constexpr std::string_view kKey = "monotonic";
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(kKey)) continue;
    line.remove_prefix(kKey.size());
    int64_t seconds = 0, rest = 0;
    if (!take_field(line, seconds) || !take_field(line, rest)) return {};
    if (seconds > kMostSeconds || seconds < -kMostSeconds || rest < 0 || rest >= kSecond) return {};
    return seconds * kSecond + rest;
  }
  return {};
}

Nanoseconds monotonic_offset() {
  // The file shows the namespace of our children, which is also ours: nothing here changes it.
  struct stat space {};
  if (::stat("/proc/self/ns/time", &space) != 0 || space.st_ino == kInitialTimeNamespace) return 0;
  const auto text = read_text("/proc/self/timens_offsets");
  return text ? parse_monotonic_offset(*text).value_or(0) : 0;
}

}  // namespace phlox::process
