#include "phlox/sampler/assemble/wait_target_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "phlox/base/paced.h"
#include "phlox/base/text.h"
#include "phlox/memory/living_thread.h"
#include "phlox/process/process_state.h"
#include "phlox/process/text_file.h"
#include "phlox/profile/wait_target.h"

namespace phlox::sampler {
namespace {

using process::OpenFile;
using profile::WaitTarget;
using profile::WaitTargetKind;
using End = process::FileHolders::End;

// 3 us each.
constexpr size_t kMostAtOnce = 256;
constexpr int kMostReads = 500;  // per second
constexpr size_t kMostFilesKept = 10'000;
// For an epoll instance: descriptors that are checked, and names that are shown.
constexpr size_t kMostPolled = 64, kMostNamed = 3;
constexpr std::string_view kPoll = "eventpoll";
// A sample is taken within a turn, and has the time of the turn's beginning.
constexpr Nanoseconds kLongestTurn = kSecond / 100;

std::string read_link(pid_t process, int descriptor) {
  std::array<char, 4096> link;
  ssize_t size =
      ::readlink(fmt::format("/proc/{}/fd/{}", process, descriptor).c_str(), link.data(), link.size());
  // Its first thread may have ended.
  if (size < 0) {
    const std::string path = fmt::format("{}/fd/{}", memory::proc_folder(process), descriptor);
    size = ::readlink(path.c_str(), link.data(), link.size());
  }
  return {link.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

// The opposite end of the pipe.
End other_end(bool reads, bool writes) {
  return reads == writes ? End::any : reads ? End::writing : End::reading;
}

std::string_view family_name(uint16_t family) {
  switch (family) {
    case AF_NETLINK:
      return "netlink";
    case AF_PACKET:
      return "packets";
    case AF_VSOCK:
      return "vsock";
    default:
      return "";
  }
}

// What a path does not show: a device, the end of a pipe. Asks no file system of another host.
void read_closer(pid_t process, int descriptor, OpenFile& file) {
  const std::string path = fmt::format("{}/fd/{}", memory::proc_folder(process), descriptor);
  struct statx there {};
  struct stat link {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &there) != 0 ||
      ::lstat(path.c_str(), &link) != 0)
    return;
  file.kind = S_ISFIFO(there.stx_mode)                             ? OpenFile::Kind::pipe
              : S_ISCHR(there.stx_mode) || S_ISBLK(there.stx_mode) ? OpenFile::Kind::device
                                                                   : file.kind;
  file.reads = (link.st_mode & S_IRUSR) != 0;
  file.writes = (link.st_mode & S_IWUSR) != 0;
}

WaitTarget with_others(WaitTarget wait_target, int32_t others) {
  if (others <= 0) return wait_target;
  const std::string words = profile::wait_target_words(wait_target);
  return {WaitTargetKind::poll,
          words.empty() ? fmt::format("{} descriptors", others + 1)
                        : fmt::format("{} and {} more", words, others),
          {}};
}

// The descriptors that an epoll instance watches, from /proc/PID/fdinfo/N (fs/eventpoll.c: ep_show_fdinfo).
std::vector<int> parse_polled(std::string_view text) {
  std::vector<int> descriptors;
  constexpr std::string_view kBefore = "tfd:";
  for (size_t at = text.find(kBefore); at != std::string_view::npos; at = text.find(kBefore, at + 1)) {
    std::string_view rest = text.substr(at + kBefore.size());
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    int descriptor = -1;
    if (take_number(rest, descriptor)) descriptors.push_back(descriptor);
  }
  return descriptors;
}

// Without the port, which differs each time.
std::string host_words(uint16_t family, const process::SocketEnd& end) {
  std::string words = process::address_words(family, end);
  words.resize(words.rfind(':'));
  return words;
}

}  // namespace

WaitTargetFiles::WaitTargetFiles(pid_t process, Host& host)
    : WaitTargetFiles(process, host, [process](int descriptor) { return read_link(process, descriptor); }) {}

WaitTargetFiles::WaitTargetFiles(pid_t process, Host& host, ReadLink link)
    : process_(process), host_(host), read_link_(std::move(link)) {
  std::error_code gone;
  root_ = std::filesystem::read_symlink(memory::proc_folder(process) + "/root", gone).string();
  if (root_ == "/") root_.clear();
}

// The kernel reports paths from the root of a mount namespace.
std::string WaitTargetFiles::as_it_sees(std::string_view path) const {
  if (!root_.empty() && path.starts_with(root_) && path.substr(root_.size()).starts_with('/'))
    path.remove_prefix(root_.size());
  return std::string(path);
}

void WaitTargetFiles::begin() {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(
      ::opendir((memory::proc_folder(process_) + "/fd").c_str()), ::closedir);
  for (size_t i = 0; entries && i < kMostAtOnce; ++i) {
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr) return;
    const auto descriptor = parse_number<int>(entry->d_name);
    if (!descriptor) continue;
    const Nanoseconds before = clock_now();
    history_.saw(*descriptor, read_link_(*descriptor), before, clock_now());
  }
}

bool WaitTargetFiles::may_read(Nanoseconds now) {
  if (now - reads_since_ >= kSecond) {
    reads_since_ = now;
    reads_ = 0;
  }
  return ++reads_ <= kMostReads;
}

// A thread that stays in one call has the same file throughout; for others, the descriptor must have named it
// before and after.
const std::string* WaitTargetFiles::link_of(const Wait& wait) {
  const int descriptor = wait.waits_for.number;
  const auto known = [&](Nanoseconds until) {
    return wait.since != 0 ? history_.some_time(descriptor, wait.since, wait.until)
                           : history_.all_the_while(descriptor, wait.from, until);
  };
  if (const std::string* link = known(wait.until + kLongestTurn)) return link;
  const Nanoseconds before = clock_now();
  if (!may_read(before)) return nullptr;
  std::string link = read_link_(descriptor);
  history_.saw(descriptor, std::move(link), before, clock_now());
  return known(wait.until);
}

std::optional<WaitTarget> WaitTargetFiles::of_wait(const Wait& wait) {
  switch (wait.waits_for.kind) {
    case process::WaitsFor::Kind::time:
      return WaitTarget{WaitTargetKind::time, {}, {}};
    case process::WaitsFor::Kind::child:
      return of_living_child(wait.waits_for.number, wait.until);
    case process::WaitsFor::Kind::descriptor:
      if (const std::string* link = link_of(wait))
        return with_others(of_link(*link, wait.waits_for.number), wait.waits_for.others);
      return {};
    case process::WaitsFor::Kind::unknown:
      break;
  }
  return {};
}

WaitTarget WaitTargetFiles::of_link(const std::string& link, int descriptor) {
  const auto known = by_link_.find(link);
  if (known != by_link_.end()) return known->second;
  process::NamedFile named = process::parse_descriptor_link(link);
  OpenFile& file = named.file;
  if (file.kind == OpenFile::Kind::object && named.name == kPoll) return of_poll(descriptor);
  if (file.kind == OpenFile::Kind::socket) {
    if (auto found = host_.sockets.find(process_, file.inode)) named = *std::move(found);
  } else if (file.kind != OpenFile::Kind::object) {
    read_closer(process_, descriptor, file);
  }
  WaitTarget wait_target = of_file(file, named.name);
  // If nothing was found, another sample may know more.
  if (wait_target.name.empty() && wait_target.other.empty()) return wait_target;
  if (by_link_.size() >= kMostFilesKept) by_link_.clear();
  return by_link_[link] = std::move(wait_target);
}

// Lists the distinct names of its descriptors.
WaitTarget WaitTargetFiles::of_poll(int descriptor) {
  const Nanoseconds start = clock_now();
  Poll& poll = polls_[descriptor];
  if (start < poll.next) return poll.wait_target;
  const auto text =
      process::read_text(fmt::format("{}/fdinfo/{}", memory::proc_folder(process_), descriptor));
  const std::vector<int> descriptors = parse_polled(text.value_or(""));
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(descriptors.size(), kMostPolled); ++i) {
    const std::string link = read_link_(descriptors[i]);
    if (link.empty() || link.find(kPoll) != std::string::npos) continue;
    std::string one =
        profile::wait_target_words(of_link(link, descriptors[i]), profile::WaitTargetDetail::alike);
    if (!one.empty() && std::find(words.begin(), words.end(), one) == words.end())
      words.push_back(std::move(one));
  }
  const size_t named = std::min(words.size(), kMostNamed);
  std::string name;
  for (size_t i = 0; i < named; ++i) name += (i == 0 ? "" : ", ") + words[i];
  if (descriptors.size() > kMostPolled || words.size() > named)
    name = fmt::format("{} descriptors{}{}", descriptors.size(), name.empty() ? "" : ": ", name);
  poll.wait_target = {WaitTargetKind::poll, std::move(name), {}};
  poll.next = again_after(start, clock_now(), kSecond);
  return poll.wait_target;
}

WaitTarget WaitTargetFiles::of_file(const OpenFile& file, std::string_view name, int32_t others) {
  return with_others(of_one(file, name), others);
}

WaitTarget WaitTargetFiles::of_one(const OpenFile& file, std::string_view name) {
  switch (file.kind) {
    case OpenFile::Kind::file:
      return {
          WaitTargetKind::file,
          fmt::format("{}{}{}", file.cut ? "..." : "", as_it_sees(name), file.removed ? " (deleted)" : ""),
          {}};
    case OpenFile::Kind::device:
      return {WaitTargetKind::device, as_it_sees(name), {}};
    case OpenFile::Kind::pipe:
      return {WaitTargetKind::pipe, as_it_sees(name),
              holder_of(fmt::format("pipe:[{}]", file.inode), other_end(file.reads, file.writes))};
    case OpenFile::Kind::socket:
      return of_socket(file, name);
    case OpenFile::Kind::process:
      if (file.process <= 0) return {WaitTargetKind::process, {}, {}};
      return {WaitTargetKind::process, process::command_words(file.process), std::to_string(file.process)};
    case OpenFile::Kind::object:
      if (name == kPoll) return {WaitTargetKind::poll, {}, {}};
      return {WaitTargetKind::object, std::string(name), {}};
    case OpenFile::Kind::unknown:
      break;
  }
  return {WaitTargetKind::other, {}, {}};
}

WaitTarget WaitTargetFiles::of_socket(const OpenFile& file, std::string_view name) {
  if (file.family == AF_UNIX) {
    if (file.accepts) return {WaitTargetKind::listener, std::string(name), {}};
    std::string other;
    if (file.peer_inode != 0) other = holder_of(fmt::format("socket:[{}]", file.peer_inode), End::any);
    if (other.empty() && file.process > 0 && file.process != process_)
      other = process::process_words(file.process);
    const bool accepted = !name.empty() && !file.named_by_peer;
    return {accepted ? WaitTargetKind::client : WaitTargetKind::socket, std::string(name), std::move(other)};
  }
  if (file.family != AF_INET && file.family != AF_INET6)
    return {WaitTargetKind::socket, std::string(family_name(file.family)), {}};
  const std::string own = process::address_words(file.family, file.own);
  if (file.accepts) return {WaitTargetKind::listener, own, {}};
  if (file.peer.port == 0) return {WaitTargetKind::socket, own, {}};
  if (host_.sockets.is_accepting(process_, file.own.port))
    return {WaitTargetKind::client, own, host_words(file.family, file.peer)};
  return {WaitTargetKind::socket, process::address_words(file.family, file.peer), {}};
}

std::string WaitTargetFiles::holder_of(const std::string& link, End end) {
  const auto holders = host_.holders.find(process_, link, end);
  if (holders.size() == 1) return process::process_words(holders.front());
  return holders.empty() ? std::string() : fmt::format("{} processes", holders.size());
}

// Its command. It is the awaited process if it is a child of this one and existed then: no other process can
// have its id until it is reaped. A child in a PID namespace of its own has another number.
std::optional<WaitTarget> WaitTargetFiles::of_living_child(int32_t number, Nanoseconds until) {
  const auto known = children_.find(number);
  if (known != children_.end() && until - known->second.seen < kSecond)
    return WaitTarget{WaitTargetKind::process, known->second.command, std::to_string(number)};
  const auto stat = process::read_stat(number);
  static const auto kTick = kSecond / ::sysconf(_SC_CLK_TCK);
  if (!stat || stat->parent != process_ ||
      static_cast<Nanoseconds>(stat->start_ticks) * kTick > clock_now(CLOCK_BOOTTIME) - (clock_now() - until))
    return WaitTarget{WaitTargetKind::process, {}, std::to_string(number)};
  if (children_.size() >= kMostFilesKept) children_.clear();
  const std::string command = process::command_words(number);
  children_[number] = {command, until};
  return WaitTarget{WaitTargetKind::process, command, std::to_string(number)};
}

WaitTarget WaitTargetFiles::of_child(pid_t child, std::string_view name, Nanoseconds since) {
  const auto known = children_.find(child);
  const bool seen = known != children_.end() && known->second.seen >= since;
  return {WaitTargetKind::process, seen ? known->second.command : std::string(name), std::to_string(child)};
}

}  // namespace phlox::sampler
