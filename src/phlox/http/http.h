// One request to a server and its answer. libcurl makes it (curl_http.h); tests make their own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"

namespace phlox::http {

struct Header {
  std::string name, value;
  friend bool operator==(const Header&, const Header&) = default;
};

struct Request {
  std::string url;
  std::vector<Header> headers;
  std::optional<std::string_view> body;  // none: GET, otherwise POST
  // Gets the body of an answer with status 200, piece by piece. False ends the request. Without it, the
  // beginning of any answer's body is in Answer.
  std::function<bool(std::string_view)> take;
  // HTTP/2 and nothing else: without TLS it begins with it, and a proxy only passes it on.
  bool http2 = false;
  // Headers and trailers whose names begin so are in the answer, in any spelling; empty: none. When one came,
  // there is an answer, however the connection ends.
  std::string keep_headers = {};
};

enum class Failure : uint8_t {
  none,
  no_name,        // unknown host name
  no_connection,  // no server listens there
  too_slow,
  certificate,  // not trusted
  tls,
  proxy,
  cut_off,  // the server closed the connection early
  stopped,  // aborted by `give_up_at`
  other,
};

struct Answer {
  int status = 0;  // 0: no answer; `failure` says why
  Failure failure = Failure::none;
  std::string words;  // what the library says about the failure
  std::optional<Nanoseconds> retry_after;
  std::string body;  // its beginning
  std::vector<Header> headers;
};

class Client {
 public:
  // The most bytes of an answer's body that are read.
  static constexpr size_t kMostOfAnswer = 4096;

  virtual ~Client() = default;
  // Blocks until there is an answer or a time limit has passed. One thread calls it.
  virtual Answer send(const Request& request) = 0;
};

}  // namespace phlox::http
