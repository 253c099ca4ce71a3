// What a server's answer means for the body that was sent, and the message about it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "phlox/http/http.h"
#include "phlox/push/target.h"

namespace phlox::push {

using http::Answer;
using http::Failure;

enum class Action : uint8_t {
  done,    // accepted
  again,   // later: the server, the network or the credentials may change
  divide,  // it is too large for this server
  drop,    // it will never accept it
};

struct Verdict {
  Action action = Action::done;
  // Equal for answers that need to be reported only once: "503", "certificate".
  std::string key;
  std::string message, hint;  // an empty message: no problem
  std::optional<Nanoseconds> retry_after;
  uint64_t rejected = 0;  // profiles that the server rejected in a body that it accepted
};

Verdict verdict_on(const Answer& answer, const Target& target);

}  // namespace phlox::push
