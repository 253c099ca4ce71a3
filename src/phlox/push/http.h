// One request to a server and its answer, as the sender needs it: libcurl makes it (curl_http.h), tests make
// their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "phlox/base/clock.h"
#include "phlox/push/target.h"

namespace phlox::push {

enum class Failure : uint8_t {
  none,
  no_name,        // the host's name is not known
  no_connection,  // nobody listens there
  too_slow,
  certificate,  // it does not prove who it is
  tls,
  proxy,
  cut_off,  // the connection ended within the answer
  stopped,  // we ended it
  other,
};

struct Answer {
  int status = 0;  // 0: none, then `failure` says why
  Failure failure = Failure::none;
  std::string words;  // of the library, about the failure
  std::optional<Nanoseconds> retry_after;
  std::string body;  // its beginning
};

class Http {
 public:
  // Of an answer's body; the rest is not read.
  static constexpr size_t kMostOfAnswer = 4096;

  virtual ~Http() = default;
  // Blocks until there is an answer, or one of the limits of time is over. One thread calls it.
  virtual Answer post(const Target& target, std::string_view body) = 0;
};

}  // namespace phlox::push
