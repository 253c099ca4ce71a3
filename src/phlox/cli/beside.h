// The Pythons beside the one that is recorded or looked at: its children, and those alike. What they do is
// not in its picture, and who does not know that misreads it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "phlox/cli/pythons.h"

namespace phlox::cli {

class Beside {
 public:
  // How a process beside would be seen.
  using Advice = std::function<std::string(pid_t)>;

  // `root`: of whose descendants all but `recorded()` are beside.
  Beside(pid_t root, Advice advice) : root_(root), advice_(std::move(advice)), recorded_{root} {}

  void recorded(pid_t pid) { recorded_.insert(pid); }
  // Costs milliseconds where there are none, and about 50 where there are thousands: call it from time to
  // time, for those that come and go.
  void look();
  // Whole sentences on what was seen, each said once: those that were not said before.
  std::vector<std::string> news();
  // Of those that no look came to before the end.
  std::string unjudged_words() const;
  // All of it that was ever said, for the recording.
  std::string summary() const;

 private:
  using Who = std::pair<uint64_t, pid_t>;  // start and id
  std::string children_words(const std::vector<const PythonProcess*>& children) const;
  std::string alike_words() const;
  void look_for_alike();

  pid_t root_;
  Advice advice_;
  pid_t parent_ = 0;
  std::set<pid_t> recorded_;
  python::Recogniser recogniser_;
  std::map<Who, PythonProcess> children_;
  std::set<pid_t> judged_;  // whether they are Pythons
  size_t unjudged_ = 0;
  std::map<Who, PythonProcess> alike_;
  std::set<Who> said_;
  bool looked_for_alike_ = false, said_alike_ = false;
};

}  // namespace phlox::cli
