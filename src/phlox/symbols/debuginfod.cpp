#include "phlox/symbols/debuginfod.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>

#include "phlox/base/folder.h"
#include "phlox/base/new_file.h"
#include "phlox/base/private_folder.h"
#include "phlox/base/text.h"
#include "phlox/base/write_all.h"

namespace phlox::symbols {
namespace {

constexpr std::string_view kKeptName = "/debuginfo";
constexpr size_t kLongestBuildId = 128;

bool is_build_id(std::string_view text) {
  return text.size() >= 4 && text.size() <= kLongestBuildId &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Without the servers that other clients reach by file://.
std::vector<std::string> web_servers(std::string_view urls) {
  std::vector<std::string> servers;
  while (!urls.empty()) {
    const size_t end = std::min(urls.find_first_of(" \t\n"), urls.size());
    std::string_view one = urls.substr(0, end);
    while (one.ends_with('/')) one.remove_suffix(1);
    if (one.starts_with("http://") || one.starts_with("https://")) servers.emplace_back(one);
    urls.remove_prefix(std::min(end + 1, urls.size()));
  }
  return servers;
}

// Removes files that no client has used for so long, and the folders that become empty.
void remove_unused(const std::string& folder, time_t oldest) {
  const Folder ids = list_folder(Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  if (!ids) return;
  while (const dirent* id = ::readdir(ids.get())) {
    if (!is_build_id(id->d_name)) continue;
    const Folder files = list_folder(Descriptor(
        ::openat(::dirfd(ids.get()), id->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
    if (!files) continue;
    while (const dirent* file = ::readdir(files.get())) {
      struct stat status {};
      if (::fstatat(::dirfd(files.get()), file->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
          S_ISREG(status.st_mode) && status.st_atime < oldest)
        ::unlinkat(::dirfd(files.get()), file->d_name, 0);
    }
    ::unlinkat(::dirfd(ids.get()), id->d_name, AT_REMOVEDIR);
  }
}

}  // namespace

Debuginfod::Settings Debuginfod::settings_of(const std::function<const char*(const char*)>& variable,
                                             std::string cache) {
  const auto text = [&](const char* name) {
    const char* const value = variable(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  constexpr int64_t kMostSeconds = 1'000'000;
  Settings settings;
  settings.servers = web_servers(text("DEBUGINFOD_URLS"));
  settings.cache = std::move(cache);
  if (const auto seconds = parse_number<int64_t>(text("DEBUGINFOD_TIMEOUT")))
    settings.slow = std::clamp<int64_t>(*seconds, 0, kMostSeconds) * kSecond;
  if (const auto seconds = parse_number<int64_t>(text("DEBUGINFOD_MAXTIME")))
    settings.patience = std::clamp<int64_t>(*seconds, 0, kMostSeconds) * kSecond;
  if (const auto bytes = parse_number<uint64_t>(text("DEBUGINFOD_MAXSIZE")); bytes && *bytes > 0)
    settings.largest = std::min(*bytes, settings.largest);
  return settings;
}

bool Debuginfod::owns(std::string_view path) const {
  const std::string& cache = settings_.cache;
  if (cache.empty() || !path.starts_with(cache) || !path.ends_with(kKeptName)) return false;
  path.remove_prefix(cache.size());
  return path.size() > kKeptName.size() && path.front() == '/' &&
         is_build_id(path.substr(1, path.size() - 1 - kKeptName.size()));
}

std::string Debuginfod::find(std::string_view id) {
  const std::lock_guard lock(mutex_);
  const std::string build_id(id), folder = settings_.cache + "/" + build_id,
                                  path = folder + std::string(kKeptName);
  if (settings_.servers.empty() || !is_build_id(id) || !make_private_folder(settings_.cache)) return {};
  if (!begun_) clean();
  begun_ = true;
  if (const auto found = kept(path)) return *found;
  bool absent = true;
  for (const std::string& server : settings_.servers) {
    if (std::find(silent_.begin(), silent_.end(), server) != silent_.end()) {
      absent = false;
      continue;
    }
    switch (make_private_folder(folder) ? fetch(server, build_id, path) : Fetched::failed) {
      case Fetched::yes:
        return path;
      case Fetched::failed:
        absent = false;
        break;
      case Fetched::absent:
        break;
    }
  }
  // An empty file says that nobody has it.
  if (absent) Descriptor(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0));
  return {};
}

// Empty: no server had it, a short while ago. None: it is not known.
std::optional<std::string> Debuginfod::kept(const std::string& path) const {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid())
    return std::nullopt;
  if (status.st_size > 0) {
    const timespec times[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
    ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);  // its last use
    return path;
  }
  if (::time(nullptr) - status.st_mtime < setting("cache_miss_s", 600)) return std::string();
  ::unlink(path.c_str());
  return std::nullopt;
}

Debuginfod::Fetched Debuginfod::fetch(const std::string& server, const std::string& build_id,
                                      const std::string& path) {
  if (!client_) client_ = make_client_();
  if (!client_) return Fetched::failed;
  NewFile file = NewFile::make(path);
  if (!file) return Fetched::failed;
  uint64_t size = 0;
  http::Request request{fmt::format("{}/buildid/{}/debuginfo", server, build_id), {}, std::nullopt, {}};
  request.take = [&](std::string_view part) {
    size += part.size();
    return size <= settings_.largest && write_all(file.descriptor(), std::as_bytes(std::span(part)));
  };
  const http::Answer answer = client_->send(request);
  if (answer.status == 200 && size > 0) return file.put_in_place(0400) ? Fetched::yes : Fetched::failed;
  if (answer.status == 404) return Fetched::absent;
  // The name, the network, the certificate: the next file would fail too, after as long.
  if (answer.status == 0 && answer.failure != http::Failure::other) silent_.push_back(server);
  return Fetched::failed;
}

// A number in a file of the cache, by which its user sets the rules for all clients.
time_t Debuginfod::setting(const char* name, time_t otherwise) const {
  const std::string path = fmt::format("{}/{}", settings_.cache, name);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  char text[32];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text) : 0;
  int64_t number = 0;
  const auto parsed = std::from_chars(text, text + std::max<ssize_t>(size, 0), number);
  return parsed.ec == std::errc() && number >= 0 ? static_cast<time_t>(number) : otherwise;
}

void Debuginfod::clean() const {
  constexpr time_t kDay = 24 * 60 * 60;
  const std::string mark = settings_.cache + "/cache_clean_interval_s";
  const time_t now = ::time(nullptr);
  struct stat status {};
  if (::lstat(mark.c_str(), &status) != 0) {
    const std::string_view text = "86400\n";
    const Descriptor made(::open(mark.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644));
    if (made) write_all(made.get(), std::as_bytes(std::span(text)));
    return;
  }
  if (now - status.st_mtime < setting("cache_clean_interval_s", kDay)) return;
  remove_unused(settings_.cache, now - setting("max_unused_age_s", 7 * kDay));
  ::utimensat(AT_FDCWD, mark.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

}  // namespace phlox::symbols
