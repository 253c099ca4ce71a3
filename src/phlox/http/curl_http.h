// A client by libcurl: TLS, proxies (http_proxy, https_proxy, no_proxy), the host's certificates or those of
// $SSL_CERT_FILE. Keeps no cookie, reads no configuration file.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "phlox/base/result.h"
#include "phlox/http/http.h"

namespace phlox::http {

struct ClientOptions {
  std::string certificates;  // a file with the authorities to trust in place of the host's; empty: those
  Nanoseconds patience = 30 * kSecond;  // for a whole request; 0: no limit
  // A request that transfers less than 100 KiB in that time is ended; 0: no limit.
  Nanoseconds slow = 0;
  bool follow = false;  // redirections, a few
};

// Why this phlox cannot send; empty: it can.
std::string missing();

// Loads libcurl, once. ErrorKind::system: it is not installed.
Result<void> load_curl();

// After load_curl(): whether Request::http2 is possible.
bool has_http2();

// After load_curl(). `give_up_at`: a request that runs then is ended (on the monotonic clock); 0: never. It
// must outlive this; nullptr: never.
std::unique_ptr<Client> make_client(const ClientOptions& options,
                                    const std::atomic<Nanoseconds>* give_up_at = nullptr);

}  // namespace phlox::http
