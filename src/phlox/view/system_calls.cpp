#include "phlox/view/system_calls.h"

#include <fmt/format.h>

#include "phlox/base/system_call_numbers.h"

namespace phlox::view {

using namespace profile;

std::string_view machine_of(const Profile& profile) {
  const auto found = profile.meta().find("machine");
  return found == profile.meta().end() ? "x86_64" : std::string_view(found->second);
}

std::string system_call_name(int16_t number, std::string_view machine) {
  const bool arm = machine == "aarch64" || machine == "arm64";
  for (const SystemCall& call : kSystemCalls) {
    if (number >= 0 && call.number(arm) == number) return std::string(call.name);
  }
  if (number == kCallNotRecorded) return std::string(kSystemCallNotRecorded);
  return number < 0 ? std::string(kNoSystemCall) : fmt::format("system call {}", number);
}

}  // namespace phlox::view
