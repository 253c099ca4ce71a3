// Chooses the processes of this host that `phlox record` and `phlox top` take in addition to those with
// --pid: by their command line, user or control group, or every Python. A process that has run since is
// checked again. One thread checks; another may read which were refused.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/python/recognise.h"
#include "phlox/selection/chosen.h"

namespace re2 {
class RE2;
}

namespace phlox::selection {

class Selection {
 public:
  // Null: none of them was given.
  static Result<std::unique_ptr<Selection>> of(const Chosen& chosen);
  ~Selection();

  // Whether this process is a requested Python. False for phlox itself and for processes that it started.
  bool takes(pid_t pid);
  // Whether one of them is running now.
  bool takes_any();
  // "whose command line matches 'worker', of user www-data"; "" for --all alone.
  const std::string& words() const { return words_; }

  // A sentence about processes that seem to be requested, but that we may not read; empty: none.
  std::string refused();

 private:
  Selection() = default;
  bool is_asked_for(pid_t pid, std::string& title) const;

  std::unique_ptr<re2::RE2> name_;
  std::optional<uint32_t> user_;
  std::string group_;
  std::string words_;
  python::Recogniser recogniser_;
  std::mutex mutex_;
  std::map<pid_t, std::string> refused_;  // with their names
};

// The path of a control group as /proc/PID/cgroup has it, given in that form or as a folder below a mount of
// the hierarchy. Pure but for `mountinfo`, the text of /proc/self/mountinfo.
std::string group_path(const std::string& given, const std::string& mountinfo);
// Whether one of these memberships (the text of /proc/PID/cgroup) is the group or below it. Pure.
bool is_in_group(const std::string& memberships, const std::string& group);

}  // namespace phlox::selection
