// Debug files from debuginfod servers, for module_names. They are kept where other clients of debuginfod keep
// theirs, by the same rules: elfutils, debuginfod_find_debuginfo(3). Asks only for a build-id; a server
// learns nothing else.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/http/http.h"

namespace phlox::symbols {

class Debuginfod {
 public:
  struct Settings {
    std::vector<std::string> servers;  // URLs, asked one after the other
    std::string cache;                 // a folder of ours, or one that can be made; empty: nothing is fetched
    Nanoseconds slow = 90 * kSecond;   // http::ClientOptions
    Nanoseconds patience = 0;          // for one file; 0: no limit
    uint64_t largest = uint64_t{4} << 30;
  };
  // As $DEBUGINFOD_URLS, _TIMEOUT, _MAXTIME and _MAXSIZE have them. `variable` is std::getenv().
  static Settings settings_of(const std::function<const char*(const char*)>& variable, std::string cache);

  // `client`: called when a server is asked first; nullptr: there is no HTTP.
  Debuginfod(Settings settings, std::function<std::unique_ptr<http::Client>()> make_client)
      : settings_(std::move(settings)), make_client_(std::move(make_client)) {}

  // The path of a file, in the cache; empty: no server has it, or none answers. May take long.
  std::string find(std::string_view build_id);
  // It is the path of a file in the cache.
  bool owns(std::string_view path) const;

 private:
  enum class Fetched { yes, absent, failed };
  Fetched fetch(const std::string& server, const std::string& build_id, const std::string& path);
  std::optional<std::string> kept(const std::string& path) const;
  time_t setting(const char* name, time_t otherwise) const;
  void clean() const;

  const Settings settings_;
  const std::function<std::unique_ptr<http::Client>()> make_client_;
  std::mutex mutex_;
  std::unique_ptr<http::Client> client_;
  std::vector<std::string> silent_;  // servers that did not answer: not asked again
  bool begun_ = false;
};

}  // namespace phlox::symbols
