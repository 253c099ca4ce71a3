// Names the wait targets of one process's threads: from the arguments of a call, or from the kernel's facts
// about the file. Used by the recorder's thread, when a sample is taken out of the ring; reads /proc, never
// the target's memory. Reports nothing that it cannot find out or prove.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "phlox/base/clock.h"
#include "phlox/process/file_holders.h"
#include "phlox/process/open_file.h"
#include "phlox/process/socket_tables.h"
#include "phlox/process/waits_for.h"
#include "phlox/profile/model.h"
#include "phlox/sampler/assemble/descriptor_history.h"

namespace phlox::sampler {

class WaitTargetFiles {
 public:
  // Shared by all processes of a recording.
  struct Host {
    process::SocketTables sockets;
    process::FileHolders holders;
  };
  // The descriptor in /proc now; empty: there is none.
  using ReadLink = std::function<std::string(int descriptor)>;

  WaitTargetFiles(pid_t process, Host& host);
  WaitTargetFiles(pid_t process, Host& host, ReadLink read_link);

  // Reads what some of the descriptors name now.
  void begin();

  // For a wait that was sampled at `until`, and was the same one since `since`; 0: of several similar ones,
  // from `from` on.
  struct Wait {
    process::WaitsFor waits_for;
    Nanoseconds from = 0, since = 0, until = 0;
  };
  std::optional<profile::WaitTarget> of_wait(const Wait& wait);
  // `name`: NamedFile::name. `others`: further descriptors of the wait.
  profile::WaitTarget of_file(const process::OpenFile& file, std::string_view name, int32_t others = 0);
  // For a child that has ended; `name`: its own name. Since the wait began.
  profile::WaitTarget of_child(pid_t child, std::string_view name, Nanoseconds since);

 private:
  const std::string* link_of(const Wait& wait);
  bool may_read(Nanoseconds now);
  profile::WaitTarget of_link(const std::string& link, int descriptor);
  profile::WaitTarget of_poll(int descriptor);
  profile::WaitTarget of_one(const process::OpenFile& file, std::string_view name);
  profile::WaitTarget of_socket(const process::OpenFile& file, std::string_view name);
  std::optional<profile::WaitTarget> of_living_child(int32_t number, Nanoseconds until);
  std::string holder_of(const std::string& link, process::FileHolders::End end);

  std::string as_it_sees(std::string_view path) const;

  pid_t process_;
  std::string root_;  // its root folder, as we see it; empty: the same as ours
  Host& host_;
  ReadLink read_link_;
  DescriptorHistory history_;
  std::unordered_map<std::string, profile::WaitTarget> by_link_;
  struct Child {
    std::string command;
    Nanoseconds seen = 0;
  };
  std::unordered_map<pid_t, Child> children_;
  struct Poll {
    profile::WaitTarget wait_target;
    Nanoseconds next = 0;  // no new check before
  };
  std::unordered_map<int, Poll> polls_;  // by descriptor
  int reads_ = 0;                        // of links, since
  Nanoseconds reads_since_ = 0;
};

}  // namespace phlox::sampler
