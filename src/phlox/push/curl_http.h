// Http by libcurl: TLS, proxies (http_proxy, https_proxy, no_proxy), the host's certificates. libcurl is
// loaded when it is first needed, so that no other command pays for it. Follows no redirection, keeps no
// cookie, reads no configuration file.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "phlox/base/result.h"
#include "phlox/push/http.h"

namespace phlox::push {

struct HttpOptions {
  std::string certificates;  // a file with the authorities to trust in place of the host's; empty: those
  Nanoseconds patience = 30 * kSecond;  // for a whole request
};

// Why this phlox cannot send; empty: it can.
std::string sending_missing();

// Once, before there are other threads. ErrorKind::system: libcurl is not installed.
Result<void> load_curl();

// After load_curl(). `give_up_at`: a request that runs then is ended (on the monotonic clock); 0: never. It
// must outlive this.
std::unique_ptr<Http> make_http(const HttpOptions& options, const std::atomic<Nanoseconds>& give_up_at);

}  // namespace phlox::push
