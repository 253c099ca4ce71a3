#include "phlox/recording/tables.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/profile/sampled_events.h"
#include "phlox/profile/trace_ids.h"
#include "phlox/profile/wait_target.h"
#include "phlox/recording/columns.h"

namespace phlox::recording {
namespace {

using profile::Profile;

template <class Tag>
std::optional<Id<Tag>> optional_of(Id<Tag> id) {
  return id ? std::optional(id) : std::nullopt;
}

// Recordings without column `role` have it at the end of `found_by`. Removes it there and returns it.
profile::FrameRole take_role(std::string& found_by) {
  constexpr std::pair<std::string_view, profile::FrameRole> kRoles[] = {
      {", interpreter loop", profile::FrameRole::interpreter_loop},
      {", trampoline", profile::FrameRole::trampoline},
      {", Cython slot", profile::FrameRole::cython_slot},
      {", Cython wrapper", profile::FrameRole::cython_wrapper},
      {", Cython body", profile::FrameRole::cython_body}};
  for (const auto& [words, role] : kRoles) {
    if (!found_by.ends_with(words)) continue;
    found_by.resize(found_by.size() - words.size());
    return role;
  }
  return profile::FrameRole::none;
}

// The limit for all texts together. Pages that are not on the disk hold none, unless the disk compresses
// them.
uint64_t size_of(sqlite3* database, const std::string& path) {
  constexpr uint64_t kBlock = 512, kPacked = 8, kAtLeast = 16 << 20;
  const auto pages = static_cast<uint64_t>(first_number(database, "PRAGMA page_count").value_or(0));
  const auto page = static_cast<uint64_t>(first_number(database, "PRAGMA page_size").value_or(0));
  uint64_t size = pages * page;
  struct stat there {
  }, log{};
  ::stat((path + "-wal").c_str(), &log);
  if (::stat(path.c_str(), &there) == 0 && there.st_blocks > 0) {
    const auto blocks = static_cast<uint64_t>(there.st_blocks) + static_cast<uint64_t>(log.st_blocks);
    size = std::min(size, blocks * kBlock * kPacked);
  }
  return std::max(size, kAtLeast);
}

class Reading {
 public:
  Reading(sqlite3* database, const std::string& path, OptionalTables has, const Names& names)
      : database_(database), path_(path), has_(has), names_(names), text_left_(size_of(database, path)) {}

  Result<Profile> run() {
    for (auto part :
         {&Reading::meta, &Reading::processes, &Reading::threads, &Reading::modules, &Reading::missing_names,
          &Reading::frames, &Reading::stacks, &Reading::wakers, &Reading::wait_targets, &Reading::states,
          &Reading::samples, &Reading::trace_times, &Reading::events, &Reading::counters, &Reading::labels}) {
      if (auto done = (this->*part)(); !done) return fail(done);
    }
    return std::move(profile_);
  }

 private:
  // Calls `row` for every row of a query over one table.
  template <class OneRow>
  Result<void> each(std::string_view table, std::string_view columns, OneRow&& row) {
    const std::string sql = fmt::format("SELECT {} FROM {}{}", columns, table,
                                        table == "meta" || table == names_.counters ? "" : " ORDER BY rowid");
    const Statement statement = prepare(database_, sql);
    if (!statement) return broken();
    Columns values(statement.get(), table, text_left_);
    for (;;) {
      const int step = sqlite3_step(statement.get());
      if (step == SQLITE_DONE) return {};
      if (step != SQLITE_ROW) return broken();
      values.next_row();
      row(values);
      if (values.failed()) return damaged(path_, values.wrong());
    }
  }
  tl::unexpected<Error> broken() const { return damaged(path_, sqlite3_errmsg(database_)); }

  Result<void> meta() {
    return each("meta", "key, value", [&](Columns& c) {
      const std::string key = c.text();
      profile_.emit_meta(key, c.text());
    });
  }

  Result<void> processes() {
    return each(
        "process",
        fmt::format("id, pid, namespace_pid, parent, executable, command_line, python_version, python_build, "
                    "found_by, {}, start_ns, end_ns, how_ended",
                    names_.process_mode),
        [&](Columns& c) {
          profile::Process row;
          c.row_id();
          row.pid = c.number<int32_t>();
          row.namespace_pid = c.number<int32_t>();
          row.parent = optional_of(c.optional_reference<profile::ProcessTag>(c.row() - 1));
          row.executable = c.text();
          row.command_line = c.text();
          row.python_version = c.text();
          row.python_build = c.text();
          row.found_by = c.text();
          row.mode = c.text();
          row.start = c.time();
          row.end = c.time();
          row.how_ended = c.text();
          if (!c.failed()) profile_.emit(profile::ProcessId(c.row()), row);
        });
  }

  Result<void> threads() {
    return each("thread", "id, process, tid, python_id, interpreter, name, kernel_name, start_ns, end_ns",
                [&](Columns& c) {
                  profile::Thread row;
                  c.row_id();
                  row.process = c.reference<profile::ProcessTag>(profile_.processes().size());
                  row.tid = c.number<int32_t>();
                  row.python_id = c.bits();
                  row.interpreter = c.number<int64_t>();
                  row.name = c.text();
                  row.kernel_name = c.text();
                  row.start = c.time();
                  row.end = c.time();
                  if (!c.failed()) profile_.emit(profile::ThreadId(c.row()), row);
                });
  }

  Result<void> modules() {
    return each("module", "id, path, build_id, load_bias", [&](Columns& c) {
      profile::Module row;
      c.row_id();
      row.path = c.text();
      row.build_id = c.text();
      row.load_bias = c.bits();
      if (!c.failed()) profile_.emit(profile::ModuleId(c.row()), row);
    });
  }

  Result<void> missing_names() {
    if (!has_.missing_names) return {};
    return each("missing_names", "module, functions, lines, why, advice", [&](Columns& c) {
      const auto id = c.reference<profile::ModuleTag>(profile_.modules().size());
      profile::MissingNames row;
      row.functions = c.integer(0, 1) != 0;
      row.lines = c.integer(0, 1) != 0;
      row.why = c.text();
      row.advice = c.text();
      if (c.failed()) return;
      profile::Module module = profile_.modules()[id.value - 1];
      module.missing = std::move(row);
      profile_.emit(id, module);
    });
  }

  bool has_column(std::string_view table, std::string_view column) const {
    return prepare(database_, fmt::format("SELECT {} FROM {}", column, table)) != nullptr;
  }

  Result<void> frames() {
    const bool has_role = has_column("frame", "role");
    return each("frame",
                std::string("id, kind, function, qualified_name, file, first_line, line, module, address, "
                            "inlined_in, found_by") +
                    (has_role ? ", role" : ""),
                [&](Columns& c) {
                  profile::Frame row;
                  c.row_id();
                  row.kind = c.value(profile::FrameKind::marker);
                  row.function = c.text();
                  row.qualified_name = c.text();
                  row.file = c.text();
                  row.first_line = c.number<int32_t>();
                  row.line = c.number<int32_t>();
                  row.module =
                      optional_of(c.optional_reference<profile::ModuleTag>(profile_.modules().size()));
                  row.address = c.bits();
                  row.inlined_in = optional_of(c.optional_reference<profile::FrameTag>(c.row() - 1));
                  row.found_by = c.text();
                  row.role = has_role ? c.value(profile::FrameRole::jit_code) : take_role(row.found_by);
                  if (!c.failed()) profile_.emit(profile::FrameId(c.row()), row);
                });
  }

  Result<void> stacks() {
    return each("stack", "id, parent, frame", [&](Columns& c) {
      profile::Stack row;
      c.row_id();
      row.parent = c.optional_reference<profile::StackTag>(c.row() - 1);
      row.frame = c.reference<profile::FrameTag>(profile_.frames().size());
      if (!c.failed()) profile_.emit(profile::StackId(c.row()), row);
    });
  }

  // A row without a kind is from a version that proved nothing: nothing is reported for those waits.
  Result<void> wakers() {
    if (!has_.waker) return {};
    const bool has_kind = has_column(names_.wakers, "kind");
    const std::string columns = "id, thread, stack, other";
    return each(names_.wakers, has_kind ? columns + ", kind" : columns, [&](Columns& c) {
      profile::Waker row;
      c.row_id();
      row.thread = c.optional_reference<profile::ThreadTag>(profile_.threads().size());
      row.stack = c.optional_reference<profile::StackTag>(profile_.stacks().size());
      row.other = c.optional_text();
      const bool is_proved = has_kind && !c.optional_text().empty();
      if (!is_proved) row = {};
      if (!c.failed()) profile_.emit(profile::WakerId(c.row()), row);
    });
  }

  Result<void> wait_targets() {
    if (!has_.wait_targets) return {};
    return each(names_.wait_targets, "id, kind, name, other", [&](Columns& c) {
      profile::WaitTarget row;
      c.row_id();
      row.kind = profile::wait_target_kind(c.text());
      row.name = c.optional_text();
      row.other = c.optional_text();
      if (!c.failed()) profile_.emit(profile::WaitTargetId(c.row()), row);
    });
  }

  // A row of `state`, as a Sample that has nothing else.
  Result<void> states() {
    const bool has_event = has_column("state", "event");
    const bool has_waker = has_.waker && has_column("state", names_.state_waker);
    const bool has_wait_target = has_.wait_targets && has_column("state", names_.state_wait_target);
    const bool has_code_file = has_column("state", "code_file");
    const auto events = static_cast<int16_t>(profile::sampled_events(profile_).size());
    const bool has_no_call = has_column("state", "no_call");
    const bool by_others = profile_.meta().contains("recorded_by");
    const std::string columns = "id, cpu, gil, collecting, system_call, quality, cpu_number";
    return each(
        "state",
        columns + (has_event ? ", event" : "") + (has_waker ? fmt::format(", {}", names_.state_waker) : "") +
            (has_wait_target ? fmt::format(", {}", names_.state_wait_target) : "") +
            (has_code_file ? ", code_file" : "") + (has_no_call ? ", no_call" : ""),
        [&](Columns& c) {
          profile::Sample row;
          c.row_id();
          row.cpu_state = c.value(profile::CpuState::blocked);
          row.gil_state = c.value(profile::GilState::not_applicable);
          row.collecting = c.integer(0, 1) != 0;
          row.system_call = c.small_or_none();
          row.quality = c.value(profile::Quality::rejected);
          row.cpu_number = c.small_or_none();
          if (has_event) row.event = static_cast<uint16_t>(std::max<int16_t>(0, c.small_or_none(1, events)));
          if (has_waker) row.waker = c.optional_reference<profile::WakerTag>(profile_.wakers().size());
          if (row.waker && profile_.wakers()[row.waker.value - 1] == profile::Waker()) row.waker = {};
          if (has_wait_target)
            row.wait_target = c.optional_reference<profile::WaitTargetTag>(profile_.wait_targets().size());
          if (has_code_file)
            row.code_file = c.optional_reference<profile::ModuleTag>(profile_.modules().size());
          const bool no_call = has_no_call && c.optional_integer(0, 1) != 0;
          if (row.cpu_state == profile::CpuState::blocked && row.system_call < 0 && (by_others || !no_call))
            row.system_call = profile::kCallNotRecorded;
          states_.push_back(row);
        });
  }

  Result<void> samples() {
    int64_t epoch = 0;
    if (auto found = profile_.meta().find("sample_epoch_ns"); found != profile_.meta().end()) {
      errno = 0;
      char* end = nullptr;
      epoch = std::strtoll(found->second.c_str(), &end, 10);
      if (errno != 0 || end == found->second.c_str() || *end != 0 || epoch < -kMaximumTime ||
          epoch > kMaximumTime)
        return damaged(path_, "meta: sample_epoch_ns is no time");
    }
    // So that later sums of weights cannot overflow.
    int64_t left = std::numeric_limits<int64_t>::max() / 4;
    int64_t value_left = std::numeric_limits<int64_t>::max();
    uint32_t last = 0;
    const bool has_value = has_column("sample", "value");
    const std::string columns = "rowid, start_us, wall_ns, cpu_ns, samples, thread, stack, state";
    return each("sample", columns + (has_value ? ", value" : ""), [&](Columns& c) {
      // Even a killed recorder leaves no gaps, but a user's program may have deleted rows.
      const int64_t id = c.integer(int64_t{last} + 1, std::numeric_limits<uint32_t>::max());
      last = static_cast<uint32_t>(id);
      const int64_t start = c.integer(-kMaximumTime / 1000, kMaximumTime / 1000);
      const int64_t wall = c.integer(0, left);
      const int64_t cpu = c.integer(0, left - wall);
      const int64_t samples = c.integer(0, std::numeric_limits<uint32_t>::max());
      const auto thread = c.reference<profile::ThreadTag>(profile_.threads().size());
      const auto stack = c.optional_reference<profile::StackTag>(profile_.stacks().size());
      const int64_t state = c.integer(1, static_cast<int64_t>(states_.size()));
      const int64_t value = has_value ? c.optional_integer(0, value_left) : 0;
      if (c.failed()) return;
      left -= wall + cpu;
      value_left -= value;
      profile::Sample row = states_[static_cast<size_t>(state) - 1];
      row.start = epoch + start * 1000;
      row.wall = wall;
      row.cpu = cpu;
      row.samples = static_cast<uint32_t>(samples);
      row.thread = thread;
      row.stack = stack;
      row.value = value;
      profile_.emit(profile::SampleId(c.row()), row);
    });
  }

  // Retention may have removed rows, as those of samples. Whether times of one thread overlap is not checked:
  // view::TraceParts accepts that.
  Result<void> trace_times() {
    if (!has_.trace_time) return {};
    int64_t last = 0;
    return each("trace_time", "id, thread, start_ns, end_ns, trace, span", [&](Columns& c) {
      last = c.integer(last + 1, std::numeric_limits<uint32_t>::max());
      profile::TraceTime row;
      row.thread = c.reference<profile::ThreadTag>(profile_.threads().size());
      row.start = c.time();
      row.end = c.integer(row.start + 1, kMaximumTime);
      const auto trace = profile::parse_id<16>(c.text());
      const auto span = profile::parse_id<8>(c.text());
      if (!trace || !span) c.reject_row("has ids that are not 32 and 16 lower-case hex digits");
      if (c.failed()) return;
      row.ids = {*trace, *span};
      profile_.emit(profile::TraceTimeId(c.row()), row);
    });
  }

  Result<void> events() {
    return each("event", "id, kind, time_ns, process, thread, value, text", [&](Columns& c) {
      profile::Event row;
      c.row_id();
      row.kind = c.value(profile::EventKind::signal_delivered);
      row.time = c.time();
      row.process = optional_of(c.optional_reference<profile::ProcessTag>(profile_.processes().size()));
      row.thread = optional_of(c.optional_reference<profile::ThreadTag>(profile_.threads().size()));
      row.value = c.number<int64_t>();
      row.text = c.text();
      if (!c.failed()) profile_.emit(row);
    });
  }

  Result<void> counters() {
    return each(names_.counters, "process, name, value", [&](Columns& c) {
      profile::Counter row;
      row.process = profile::ProcessId(
          static_cast<uint32_t>(c.integer(0, static_cast<int64_t>(profile_.processes().size()))));
      row.name = c.text();
      row.value = c.integer(-kMaximumTime, kMaximumTime);
      // About twenty for each process; Profile searches them one by one.
      if (c.row() > 50'000) c.reject_row("is one too many");
      if (!c.failed()) profile_.emit(row);
    });
  }

  Result<void> labels() {
    if (!has_.label) return {};
    return each("label", "start_ns, end_ns, text", [&](Columns& c) {
      profile::TimeLabel row;
      row.start = c.time();
      row.end = c.time();
      row.text = c.text();
      if (c.row() > 1'000'000) c.reject_row("is one too many");
      if (!c.failed()) profile_.put_time_label(std::move(row));
    });
  }

  sqlite3* database_;
  const std::string& path_;
  OptionalTables has_;
  Names names_;
  uint64_t text_left_;
  Profile profile_;
  std::vector<profile::Sample> states_;
};

}  // namespace

Result<Profile> read_tables(const OpenedRecording& recording, const std::string& path) {
  return Reading(recording.database.get(), path, recording.has, recording.names).run();
}

}  // namespace phlox::recording
