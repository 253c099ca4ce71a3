// A file of `perf record` (tools/perf/Documentation/perf.data-file-format.txt, kernel 6.1 and later
// additions): the events and the shape of their records, and the facts about machine and programs that follow
// the records. From bytes; every count is capped, every position checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/result.h"
#include "phlox/importers/input.h"
#include "phlox/perf/records.h"

namespace phlox::importers {

// A sampled event.
struct PerfEvent {
  std::string name;  // "cycles:u"; empty: the file does not say
  uint32_t type = 0;
  uint64_t config = 0;
  perf::Shape shape;
  uint16_t most_frames = 0;  // of a call chain; 0: the host's setting
  bool context_switches = false;
  // The period of samples that have none of their own; 0: all have one.
  uint64_t period = 0;
  bool each_time = false;   // a sample each time that it happens, not by a frequency or every N times
  bool identified = false;  // the shape has PERF_SAMPLE_IDENTIFIER
  // A software clock: its period is CPU time in nanoseconds.
  bool is_clock() const;
  bool is_sched_switch() const { return name.starts_with("sched:sched_switch"); }
  // Its samples are all switches away. With `perf record -F`, perf samples this tracepoint like any other
  // event.
  bool tells_switches() const { return is_sched_switch() && each_time; }
};

struct PerfFacts {
  std::string host, kernel_release, perf_version, architecture, command_line;
  // Build-ids by path, as hex, and of the kernel: "[kernel.kallsyms]". Several for one path: each in a mount
  // namespace of its own.
  std::map<std::string, std::vector<std::string>, std::less<>> build_ids;
};

class PerfFile {
 public:
  static bool recognise(std::span<const std::byte> head);
  // ErrorKind::input: not such a file, or of a kind that phlox does not read; the message says which.
  static Result<PerfFile> open(Input& input);

  bool is_pipe() const { return pipe_; }
  // Where records begin and end: none if not known (a pipe; a recorder that was killed).
  uint64_t data_start() const { return data_start_; }
  std::optional<uint64_t> data_end() const { return data_end_; }

  const std::vector<PerfEvent>& events() const { return events_; }
  const PerfFacts& facts() const { return facts_; }
  uint16_t machine() const { return machine_; }
  // The event of a record, by its identifier; the first one if records have none. Null: an identifier of no
  // event, or there are no events.
  const PerfEvent* event_of(std::span<const std::byte> record) const;
  // By the id in a sample, if it has one; otherwise `shape_of`, by which it was read.
  const PerfEvent& event_of(uint64_t id, const PerfEvent& shape_of) const;
  uint32_t number_of(const PerfEvent& event) const { return static_cast<uint32_t>(&event - events_.data()); }

  // Records with facts of a file's header (pipes). False: it is none of them. Each may change the shapes.
  bool take(std::span<const std::byte> record);
  // Invalid parts.
  size_t refused() const { return refused_; }

 private:
  void read_events(Input& input, uint64_t offset, uint64_t size, uint64_t entry_size);
  void read_features(Input& input, uint64_t offset, std::span<const uint64_t> bits);
  void take_feature(unsigned feature, std::span<const std::byte> bytes);
  void take_build_ids(std::span<const std::byte> bytes);
  void take_event_names(std::span<const std::byte> bytes);
  void add_event(std::span<const std::byte> attr, std::span<const std::byte> ids);
  void name_unnamed();
  void settle_machine();

  bool pipe_ = false;
  uint64_t data_start_ = 0;
  std::optional<uint64_t> data_end_;
  std::vector<PerfEvent> events_;
  std::unordered_map<uint64_t, uint32_t> by_id_;
  PerfFacts facts_;
  uint16_t machine_ = 0;
  size_t refused_ = 0;
};

}  // namespace phlox::importers
