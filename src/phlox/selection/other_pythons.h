// The Pythons that run at the same time as a recorded or dumped one and are not recorded: its children and
// its siblings. The user must know of them to read the picture right.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "phlox/selection/pythons.h"

namespace phlox::selection {

class OtherPythons {
 public:
  // How such a process would be recorded.
  using Advice = std::function<std::string(pid_t)>;

  // `root`: all its descendants except `recorded()` are such processes.
  OtherPythons(pid_t root, Advice advice) : root_(root), advice_(std::move(advice)), recorded_{root} {}

  void recorded(pid_t pid) { recorded_.insert(pid); }
  // Costs milliseconds if there are none, and about 50 if there are thousands: call it now and then, because
  // processes come and go.
  void check();
  // Whole sentences, each reported once: those that were not reported before.
  std::vector<std::string> news();
  // The same for processes that were not checked before the end.
  std::string unjudged_words() const;
  // All sentences so far, for the recording.
  std::string summary() const;

 private:
  using Who = std::pair<uint64_t, pid_t>;  // start and id
  std::string children_words(const std::vector<const PythonProcess*>& children) const;
  std::string sibling_words() const;
  void find_siblings();

  pid_t root_;
  Advice advice_;
  pid_t parent_ = 0;
  std::set<pid_t> recorded_;
  python::Recogniser recogniser_;
  std::map<Who, PythonProcess> children_;
  std::set<pid_t> judged_;  // whether they are Pythons
  size_t unjudged_ = 0;
  std::map<Who, PythonProcess> siblings_;
  std::set<Who> said_;
  bool searched_siblings_ = false, said_siblings_ = false;
};

}  // namespace phlox::selection
