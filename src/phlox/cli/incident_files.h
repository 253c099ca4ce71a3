// Writes the files of one incident: a recording of its time, cut out of the one that is being recorded, a
// page and a text. The page and the text are made by processes of their own (served_command.h), so that the
// recorder's memory stays small.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "phlox/base/file_user.h"
#include "phlox/base/result.h"
#include "phlox/cli/talk.h"
#include "phlox/incidents/plan.h"

namespace phlox::cli {

// Makes the folder if there is none; only its owner may write into it. ErrorKind::output: it is not such a
// folder.
Result<void> make_incident_folder(const std::string& folder, const std::optional<FileUser>& owner);

class IncidentFiles {
 public:
  struct Options {
    std::string folder;
    uint64_t most_bytes = 0;         // of all incidents in the folder
    Nanoseconds shortest_stall = 0;  // for the report; 0: its own
    sigset_t mask{};                 // of the processes that make page and text
  };
  IncidentFiles(Options options, Talk& talk);

  // Says what was written, or why not. `recording`: that is being recorded, or finished.
  void write(const incidents::Incident& incident, const std::string& recording);

 private:
  Result<void> check_room() const;
  Result<std::string> output_of(const std::vector<std::string>& words) const;
  Result<void> write_page(const std::string& stem) const;
  Result<void> write_text(const std::string& stem, const incidents::Incident& incident) const;
  std::string new_stem(const incidents::Incident& incident) const;

  Options options_;
  std::optional<FileUser> owner_;
  Talk& talk_;
  bool said_full_ = false;
};

}  // namespace phlox::cli
