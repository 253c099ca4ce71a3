// What an answer of a server means for the body that was sent, and how it is said to a person. Pure.
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
  done,    // it took it
  again,   // later: the server, the network or the credentials may change
  divide,  // it is too large for this server
  drop,    // it will never take it
};

struct Verdict {
  Action action = Action::done;
  // Equal for answers that need to be said once: "503", "certificate".
  std::string key;
  std::string message, hint;  // message empty: all is well
  std::optional<Nanoseconds> retry_after;
  uint64_t rejected = 0;  // profiles that the server took the body without
};

Verdict verdict_on(const Answer& answer, const Target& target);

}  // namespace phlox::push
