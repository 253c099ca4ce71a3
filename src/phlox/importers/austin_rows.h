// Rows of austin's samples, for both of its formats. austin records how much time passed since the last
// sample, not when a sample was taken. So samples follow one another, and those of all threads in one pass
// have the same time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "phlox/importers/foreign_rows.h"

namespace phlox::importers {

struct AustinSample {
  int32_t pid = 0;
  std::string thread;  // "0:4711", interpreter and thread
  profile::StackId stack;
  std::optional<int64_t> microseconds;  // none: memory was recorded, not time
  std::optional<bool> idle;
  bool collecting = false;
  bool invalid = false;  // austin could not read the whole stack
};

struct AustinFrame {
  profile::FrameId id;
  bool is_python = true;
};

class AustinRows {
 public:
  // `hexadecimal`: the form of thread numbers.
  AustinRows(profile::Sink& sink, bool hexadecimal)
      : sink_(sink), rows_(sink, "austin"), hexadecimal_(hexadecimal) {}

  // "mode", "wall".
  void metadata(std::string_view key, std::string_view value);
  const std::string& mode() const { return mode_; }
  // It writes no metadata: neither its version nor that it ended.
  void is_of_version_1() {
    version_ = "1";
    ended_ = true;
  }

  profile::Interner& interner() { return rows_.interner(); }
  // As austin names it. `function`: qualified, as far as Python has it.
  AustinFrame frame(std::string_view file, std::string_view function, int32_t line);
  profile::FrameId invalid_frame();
  profile::FrameId kernel_frame(std::string_view function);

  void put(const AustinSample& sample);
  // `cut`: the file ends inside a sample.
  ImportOutcome finish(std::string_view format, uint64_t refused, bool cut);

 private:
  // The samples of one process at one moment.
  struct Turn {
    Nanoseconds start = 0;
    int64_t microseconds = 0;
    std::set<uint32_t> threads;
  };

  profile::ThreadId thread_of(const AustinSample& sample);

  profile::Sink& sink_;
  ForeignRows rows_;
  bool hexadecimal_;
  std::string version_, mode_, python_, errors_;
  Nanoseconds duration_ = 0, longest_ = 0;
  bool ended_ = false;
  std::map<int32_t, Turn> turns_;
  uint64_t stacks_ = 0, invalid_ = 0, refused_ = 0, timeless_ = 0, nameless_ = 0;
};

}  // namespace phlox::importers
