// A port on the loopback interface that serves this program's metrics: one page of text for each path. It
// answers GET and HEAD, and POST where that is wanted, one request at a time, each within a second, and
// nothing else. The body of a request is ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "phlox/base/descriptor.h"
#include "phlox/base/result.h"

namespace phlox::push {

struct Page {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string text;
};
// None if there is no such page. The port's own thread calls it.
using Pages = std::function<std::optional<Page>(std::string_view path)>;

// The whole answer to a request, by its head: "GET /metrics HTTP/1.1", then lines with headers. `posts`: of
// POST requests; may be empty. A POST that a page in a browser sends, which has the header Origin, is
// refused. Pure but for `pages` and `posts`.
std::string response_to(std::string_view head, const Pages& pages, const Pages& posts = {});

class MetricsPort {
 public:
  // "127.0.0.1:9464", "[::1]:9464". ErrorKind::usage: not such an address.
  static Result<void> check(std::string_view address, std::string_view option = "--listen");
  // ErrorKind::system: the port is not free.
  static Result<std::unique_ptr<MetricsPort>> open(std::string_view address, Pages pages, Pages posts = {});
  ~MetricsPort();
  MetricsPort(const MetricsPort&) = delete;
  MetricsPort& operator=(const MetricsPort&) = delete;

  uint16_t port() const { return port_; }

 private:
  MetricsPort(Descriptor listener, Descriptor end, uint16_t port, Pages pages, Pages posts);
  void run();
  void answer(int client) const;

  Descriptor listener_, end_;  // `end_`: readable when the thread must end
  uint16_t port_;
  Pages pages_, posts_;
  std::thread thread_;
};

}  // namespace phlox::push
