// Rows of the model for importers of formats that have only names: processes, threads and frames by name,
// each once, and their samples. Unknown facts stay empty.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "phlox/importers/importer.h"
#include "phlox/profile/interner.h"
#include "phlox/profile/sink.h"

namespace phlox::importers {

class ForeignRows {
 public:
  // `recorded_by`: "py-spy"; empty: the format does not say.
  ForeignRows(profile::Sink& sink, std::string recorded_by)
      : sink_(sink), interner_(sink), recorded_by_(std::move(recorded_by)) {}

  // 0: the number is not known.
  profile::ProcessId process(int32_t pid, std::string_view name,
                             std::optional<profile::ProcessId> parent = std::nullopt);
  // When it is known.
  void name(profile::ProcessId process, std::string_view name);
  profile::ThreadId thread(profile::ProcessId process, int32_t tid, std::string_view name);
  profile::Interner& interner() { return interner_; }
  // Equal ones get the same id.
  profile::ModuleId module(std::string_view path, std::string_view build_id);
  // Writes a sample. A count that is too large for one row becomes several rows.
  void sample(profile::Sample sample, uint64_t samples);
  // The count of another event in a sample that was already written.
  void value(profile::Sample sample);

  // Writes meta and counters, and from when to when each process and thread was sampled. `elapsed`: 0:
  // unknown.
  ImportOutcome finish(Nanoseconds elapsed, std::string summary);
  uint64_t samples() const { return samples_; }

 private:
  void put(profile::Sample sample);
  void put_spans();

  profile::Sink& sink_;
  profile::Interner interner_;
  std::string recorded_by_;
  std::map<std::pair<int32_t, std::string>, uint32_t> processes_;
  std::map<std::tuple<uint32_t, int32_t, std::string>, uint32_t> threads_;
  std::map<std::pair<std::string, std::string>, uint32_t> modules_;
  // By id - 1.
  std::vector<profile::Process> process_rows_;
  std::vector<profile::Thread> thread_rows_;
  uint32_t last_sample_ = 0;
  uint64_t samples_ = 0, left_out_ = 0;
  uint64_t beyond_ = 0;  // requests beyond the limits: a process, a thread, a module
  Nanoseconds time_left_ = std::numeric_limits<Nanoseconds>::max() / 4;
  bool time_cut_ = false;
  uint64_t far_ = 0;  // samples that begin too long before or after time 0
};

// Adds the warning "3 lines were left out", or the one for a single line; none for a count of 0.
void warn(ImportOutcome& out, uint64_t count, std::string_view of_one, std::string_view of_more);

// The name of a frame without a name, file and address.
inline constexpr std::string_view kNoName = "[no name]";
// The message about such frames, of which there is at least one.
std::string warning_of_no_names(uint64_t frames);

// A frame by its name, which may contain more: "name (file.py:12)", "name (file.py)", "py::name:file.py". A
// note of stackcollapse-perf.pl may follow: "_[k]" the kernel, "_[i]" inlined, "_[j]" made at run time,
// "_[w]" of a waker. A frame with a Python source is Python's, any other native.
profile::Frame frame_of_text(std::string_view text);
// Whether a source is a Python source: "x.py", "<string>", "<frozen importlib._bootstrap>".
bool is_python_source(std::string_view file);

}  // namespace phlox::importers
