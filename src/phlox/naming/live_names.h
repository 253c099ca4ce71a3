// Names native frames while a recording goes on, for outputs that do not wait for its end: what an agent
// pushes, recordings of incidents. A thread of its own reads the files, with rests (naming_pace.h) but at no
// lower priority, because a host is often busy when there is an incident. The recorder's thread only hands
// frames over and emits them again with their names. Between the recorder and its sink. Opens no process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "phlox/naming/naming_pace.h"
#include "phlox/naming/native_names.h"

namespace phlox::naming {

class LiveNames : public profile::Sink, public profile::NativeFiles {
 public:
  struct Limits {
    // CPU time of one batch. Its other frames are tried once more, in a later one.
    Nanoseconds batch = 10 * kSecond;
    NamingPace::Limits pace = {};
    // Frames and files that wait to be named, whatever the programs do. What is beyond has no names.
    size_t frames = 200'000, modules = 20'000;
    size_t name_bytes = size_t{64} << 20;  // of all names and their files
    size_t missing = 1000;                 // modules of which finish() says what is missing
  };
  explicit LiveNames(symbols::DebugSearch search) : LiveNames(std::move(search), Limits()) {}
  LiveNames(symbols::DebugSearch search, const Limits& limits);
  ~LiveNames() override;

  // From now on passes rows on to `sink`. `new_frame`: an id for a frame that was inlined into a named one;
  // none: there are too many. Starts the thread, with the rights that the caller has by now.
  void begin(profile::Sink& sink, std::function<profile::FrameId()> new_frame);

  void receive(const profile::AnyRow& row) override;
  // Emits the names that were found since, and hands over the frames that came.
  Result<void> commit() override;
  void add(profile::ProcessId process, profile::NativeModule module) override;
  void note_end(profile::ProcessId process) override;
  // Names are wanted now. For any thread.
  void hurry();
  // All frames that came before this time (CLOCK_MONOTONIC) were emitted with the names that could be found,
  // or were tried once. For any thread.
  Nanoseconds named_until() const { return named_until_; }

  // After the last row: names what is left. Returns the missing names, worst first, and stores them with the
  // modules.
  std::vector<NativeRows::Missing> finish(const NativeRows::Patience& patience);

 private:
  struct Waiting {
    profile::FrameId id;
    profile::Frame frame;
    bool is_second_try = false;
  };
  struct Batch {
    std::vector<Waiting> frames;
    std::vector<profile::NativeModule> modules;
    bool has_new_file = false;
  };
  struct Named {
    std::vector<std::pair<profile::FrameId, profile::Frame>> rows;
    std::vector<std::pair<std::string, std::string>> meta;
    std::vector<NativeRows::Missing> missing;
    uint32_t last = 0;  // greater ids are of inlined functions, and not ours yet
    std::vector<Waiting> late;
  };
  Named name(const Batch& batch, const NativeRows::Patience& patience);
  void run();
  void keep_waiting(profile::FrameId id, const profile::Frame& frame);
  std::shared_ptr<Descriptor> shared(std::shared_ptr<Descriptor> file);
  Batch take_batch();
  void put(Named named);

  const symbols::DebugSearch search_;
  const Limits limits_;
  profile::Sink* sink_ = nullptr;
  std::function<profile::FrameId()> new_frame_;
  std::vector<Waiting> waiting_;
  std::map<profile::FrameId, profile::Frame> code_;  // in no module: JIT code, until it has a name
  // Processes share modules; each has opened the file itself.
  using Opened = std::pair<profile::ModuleId, profile::ProcessId>;
  std::map<Opened, profile::NativeModule>::const_iterator find_module(profile::ModuleId id) const;
  std::map<Opened, profile::NativeModule> modules_;
  std::map<profile::ModuleId, profile::Module> rows_;  // for finish()
  std::vector<profile::NativeModule> jit_files_;
  std::set<Opened> ended_;                                                    // of processes that have ended
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<Descriptor>> files_;  // by device and inode
  std::map<profile::ModuleId, NativeRows::Missing> missing_;
  uint32_t last_frame_ = 0;
  size_t name_bytes_ = 0;
  bool has_new_file_ = false;
  std::optional<Nanoseconds> taken_;  // when the batch was taken that is not emitted yet
  std::atomic<Nanoseconds> named_until_ = 0;
  std::set<profile::ModuleId> advised_;  // the naming thread's

  std::mutex mutex_;  // for what follows
  std::condition_variable changed_;
  std::optional<Batch> batch_;
  std::optional<Named> named_;
  bool is_idle_ = true, hurried_ = false, over_ = false;
  std::thread thread_;
};

}  // namespace phlox::naming
