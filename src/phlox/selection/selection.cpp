#include "phlox/selection/selection.h"

#include <fmt/format.h>
#include <pwd.h>
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "phlox/base/text.h"
#include "phlox/process/control_group.h"
#include "phlox/process/process_state.h"
#include "phlox/process/process_tree.h"
#include "phlox/process/text_file.h"

namespace phlox::selection {
namespace {

constexpr size_t kMostNamed = 4, kLongestTitle = 60;
// Steps up to the first process.
constexpr int kDeepest = 64;
// A limit for a service that is refused over and over.
constexpr size_t kMostRefused = 10'000;

Result<uint32_t> user_of(const std::string& text) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> buffer;
  if (::getpwnam_r(text.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return found->pw_uid;
  if (const auto number = parse_number<uint32_t>(text)) return *number;
  return fail(ErrorKind::usage, fmt::format("--user: there is no user '{}' here", text),
              "a name or a number: --user www-data, --user 33");
}

// Whether we started it, directly or not.
bool is_own(pid_t pid) {
  const pid_t self = ::getpid();
  for (int i = 0; i < kDeepest && pid > 1; ++i) {
    if (pid == self) return true;
    const auto stat = process::read_stat(pid);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

// "python3.12" in "/usr/bin/python3.12 app.py": all that is known of a process that may not be read.
bool is_called_python(const std::string& title) {
  return base_name(title.substr(0, title.find(' '))).starts_with("python");
}

}  // namespace

std::string group_path(const std::string& given, const std::string& mountinfo) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  size_t longest = 0;
  std::string root;
  for (const auto& mount : process::parse_group_mounts(mountinfo)) {
    const bool beneath = path == mount.folder || path.starts_with(mount.folder + "/");
    if (!beneath || mount.folder.size() <= longest) continue;
    longest = mount.folder.size();
    root = mount.root == "/" ? "" : mount.root;
  }
  path = root + path.substr(longest);
  return path.starts_with('/') ? path : "/" + path;
}

bool is_in_group(const std::string& memberships, const std::string& group) {
  const auto paths = process::parse_memberships(memberships);
  return std::any_of(paths.begin(), paths.end(), [&](const auto& row) {
    const std::string& path = row.second;
    return group == "/" || path == group || path.starts_with(group + "/");
  });
}

Result<std::unique_ptr<Selection>> Selection::of(const Chosen& a) {
  if (a.name.empty() && a.user.empty() && a.cgroup.empty() && !a.all) return std::unique_ptr<Selection>();
  std::unique_ptr<Selection> made(new Selection);
  const auto add = [&](const std::string& words) {
    made->words_ += (made->words_.empty() ? "" : ", ") + words;
  };
  if (!a.name.empty()) {
    made->name_ = std::make_unique<re2::RE2>(a.name, re2::RE2::Quiet);
    if (!made->name_->ok()) {
      return fail(ErrorKind::usage,
                  fmt::format("--name: '{}' is no regular expression: {}", a.name, made->name_->error()),
                  "put a backslash before characters such as ( and [ to match them literally");
    }
    add(fmt::format("whose command line matches '{}'", a.name));
  }
  if (!a.user.empty()) {
    const auto user = user_of(a.user);
    if (!user) return fail(user);
    made->user_ = *user;
    add("of user " + a.user);
  }
  if (!a.cgroup.empty()) {
    const auto mounts = process::read_text("/proc/self/mountinfo");
    made->group_ = group_path(a.cgroup, mounts ? *mounts : std::string());
    add("in control group " + made->group_);
  }
  return made;
}

Selection::~Selection() = default;

bool Selection::is_asked_for(pid_t pid, std::string& title) const {
  const auto state = process::read_process_state(pid);
  if (!state || state->zombie() || state->kernel_thread() || state->command_line.empty()) return false;
  title = state->title();
  if (user_ && state->status.uid.effective != *user_) return false;
  if (name_ && !re2::RE2::PartialMatch(state->command_line, *name_)) return false;
  if (group_.empty()) return true;
  const auto memberships = process::read_text(fmt::format("/proc/{}/cgroup", pid));
  return memberships && is_in_group(*memberships, group_);
}

bool Selection::takes(pid_t pid) {
  std::string title;
  if (!is_asked_for(pid, title) || is_own(pid)) return false;
  switch (recogniser_.judge(pid)) {
    case python::Recogniser::Verdict::python:
      return true;
    case python::Recogniser::Verdict::no:
    case python::Recogniser::Verdict::unread:
      return false;
    case python::Recogniser::Verdict::hidden:
      break;
  }
  if (is_called_python(title)) {
    const std::lock_guard lock(mutex_);
    if (refused_.size() < kMostRefused) refused_.emplace(pid, title);
  }
  return false;
}

bool Selection::takes_any() {
  const auto all = process::read_processes();
  return std::any_of(all.begin(), all.end(), [this](pid_t pid) { return takes(pid); });
}

std::string Selection::refused() {
  const std::lock_guard lock(mutex_);
  if (refused_.empty()) return "";
  std::string named;
  size_t at = 0;
  for (const auto& [pid, title] : refused_) {
    if (at == kMostNamed) break;
    named += fmt::format("{}{} ({})", at++ == 0 ? "" : ", ", pid, shortened(title, kLongestTitle));
  }
  if (refused_.size() > kMostNamed) named += fmt::format(" and {} more", refused_.size() - kMostNamed);
  return fmt::format(
      "{} Python{} that {} asked for may not be read and {} not in the recording: {}; with sudo {}",
      refused_.size(), refused_.size() == 1 ? "" : "s", refused_.size() == 1 ? "is" : "are",
      refused_.size() == 1 ? "is" : "are", named, refused_.size() == 1 ? "it is" : "they are");
}

}  // namespace phlox::selection
