#include "phlox/importers/perf_data.h"

#include <elf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <variant>

#include "phlox/base/byte_reader.h"
#include "phlox/importers/event_numbers.h"
#include "phlox/importers/hex.h"
#include "phlox/importers/kernel_names.h"
#include "phlox/importers/perf_file.h"
#include "phlox/importers/perf_order.h"
#include "phlox/importers/perf_stacks.h"
#include "phlox/importers/perf_stream.h"
#include "phlox/importers/perf_threads.h"
#include "phlox/profile/counters.h"

namespace phlox::importers {
namespace {

// Samples between two commits: each commit costs a write to disk.
constexpr uint64_t kCommitEvery = 50'000;
// 73 years after the host's boot: sums and differences of such times do not overflow.
constexpr Nanoseconds kLatestPerfTime = Nanoseconds{1} << 61;
// The most bytes of a stack that perf record copies (tools/perf/util/callchain.c: get_stack_size).
constexpr size_t kLongestDump = 65528;

// The fields of sched:sched_switch, at the same offsets since 2.6.35.
struct SwitchFields {
  int64_t previous_state = 0;
  pid_t next = 0;
};
std::optional<SwitchFields> switch_fields(std::span<const std::byte> raw) {
  // common 8, prev_comm 16, prev_pid 4, prev_prio 4, prev_state 8, next_comm 16, next_pid 4, next_prio 4
  ByteReader in(raw);
  in.skip(32);
  SwitchFields fields;
  fields.previous_state = in.read<int64_t>();
  in.skip(16);
  fields.next = in.read<int32_t>();
  if (in.failed()) return std::nullopt;
  return fields;
}

Nanoseconds time_of(std::span<const std::byte> record, const PerfEvent& event, uint32_t type) {
  const uint64_t asked = event.shape.sample_type;
  if ((asked & PERF_SAMPLE_TIME) == 0) return 0;
  if (type != PERF_RECORD_SAMPLE) return perf::trailer_of(record, event.shape).time;
  size_t at = sizeof(perf_event_header);
  for (const uint64_t bit :
       {uint64_t{PERF_SAMPLE_IDENTIFIER}, uint64_t{PERF_SAMPLE_IP}, uint64_t{PERF_SAMPLE_TID}})
    at += (asked & bit) != 0 ? 8 : 0;
  ByteReader in(record);
  in.skip(at);
  return static_cast<Nanoseconds>(in.read<uint64_t>());
}

std::string percent(uint64_t part, uint64_t of) {
  return of == 0 ? "0 %"
                 : fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(of));
}

std::string other_files(const std::vector<std::string>& paths) {
  constexpr size_t kShown = 3;
  std::string text = fmt::format(
      "{} mapped files are not those at their paths here, which name nothing (they are of a container, or "
      "were "
      "replaced): ",
      paths.size());
  for (size_t i = 0; i < paths.size() && i < kShown; ++i) text += (i == 0 ? "" : ", ") + paths[i];
  if (paths.size() > kShown) text += ", ...";
  return text + "; --sysroot FOLDER says where theirs lie, --sysroot / takes those here";
}

class PerfImport {
 public:
  PerfImport(PerfFile& file, const ImportOptions& options, profile::Sink& sink)
      : file_(file),
        options_(options),
        sink_(sink),
        interner_(sink),
        modules_(options.files),
        stacks_(modules_, kernel_, interner_, sink),
        threads_(modules_, file, sink),
        numbers_(sink) {}

  Result<ImportOutcome> run(Input& input) {
    PerfStream stream(input, file_);
    PerfOrder order([this](std::span<const std::byte> record, Nanoseconds time) { take(record, time); });
    for (auto record = stream.next(); !record.empty(); record = stream.next()) {
      uint32_t type = 0;
      std::memcpy(&type, record.data(), sizeof type);
      if (type == kFinishedRound) {
        order.end_round();
        continue;
      }
      const PerfEvent* event = file_.event_of(record);
      if (event == nullptr) {
        ++without_event_;
        continue;
      }
      const Nanoseconds time = time_of(record, *event, type);
      if (time < 0 || time > kLatestPerfTime) {
        ++damaged_;
        continue;
      }
      order.put(record, stream.piece(), time);
    }
    order.end();
    if (begun_ && !wanted_ && !options_.event.empty()) {
      return fail(ErrorKind::usage, fmt::format("no event '{}' was recorded", options_.event),
                  fmt::format("there are: {}", event_names()));
    }
    return finish(stream, order);
  }

 private:
  struct Seen {
    uint16_t number = 0;
    uint64_t samples = 0;
    bool of_wanted = false;
  };

  void begin();
  void take(std::span<const std::byte> bytes, Nanoseconds time);
  void take_sample(const perf::SampleRecord& record, const PerfEvent& event);
  void put_switch(const perf::SampleRecord& record, profile::Sample sample);
  Seen& seen(const PerfEvent& event);
  void take_switch(const perf::SwitchRecord& record);
  void take_map(const perf::MapRecord& record);
  profile::Sample asleep_without_stack();
  bool is_wanted(const PerfEvent& event) const;
  bool is_of_wanted(const PerfEvent& event) const;
  std::string event_names() const;
  std::string samples_by_event() const;
  void put_meta();
  void put_counters();
  ImportOutcome finish(const PerfStream& stream, const PerfOrder& order);
  std::string missing_python() const;
  std::string recorder() const;
  std::string summary() const;

  PerfFile& file_;
  const ImportOptions& options_;
  profile::Sink& sink_;
  profile::Interner interner_;
  ModuleFiles modules_;
  KernelNames kernel_;
  PerfStacks stacks_;
  PerfThreads threads_;
  bool begun_ = false;
  // The event whose samples share out time, by its place in the file: a pipe may announce more events later.
  std::optional<uint32_t> wanted_;
  EventNumbers numbers_;
  ClockPeriods clock_periods_;
  HybridEvents hybrid_;
  std::vector<Seen> seen_;  // of events, by place in the file
  profile::StackId off_cpu_;
  Nanoseconds first_ = 0, last_ = 0;
  uint64_t samples_ = 0, cut_ = 0, lost_ = 0, lost_samples_ = 0, throttled_ = 0, damaged_ = 0,
           without_event_ = 0;
  std::set<std::string> jit_troubles_;
};

// "cycles" also means "cycles:u" if there is no other.
bool PerfImport::is_wanted(const PerfEvent& event) const {
  if (event.name.starts_with("dummy")) return false;
  if (options_.event.empty())
    return !event.tells_switches() &&
           (!wanted_ || (event.is_clock() && !file_.events()[*wanted_].is_clock()));
  const std::string name = on_all_cores(event.name);
  const bool begins = std::string_view(name).substr(0, name.find(':')) == options_.event;
  return event.name == options_.event || name == options_.event || (begins && !wanted_);
}

// Whether it is the wanted event, on any kind of core.
bool PerfImport::is_of_wanted(const PerfEvent& event) const {
  if (!wanted_) return false;
  const PerfEvent& wanted = file_.events()[*wanted_];
  return file_.number_of(event) == wanted_ || on_all_cores(event.name) == on_all_cores(wanted.name);
}

std::string PerfImport::event_names() const {
  std::string names;
  for (const PerfEvent& event : file_.events()) {
    if (!event.name.starts_with("dummy")) names += (names.empty() ? "" : ", ") + event.name;
  }
  return names;
}

// Called once all events are known: a pipe announces them before the first record.
void PerfImport::begin() {
  begun_ = true;
  using Switches = PerfThreads::Switches;
  Switches switches = Switches::none;
  for (const PerfEvent& event : file_.events()) {
    if (is_wanted(event)) wanted_ = file_.number_of(event);
    if (event.tells_switches() && switches == Switches::none) switches = Switches::away;
    if (event.context_switches) switches = Switches::both;
  }
  if (wanted_) seen(file_.events()[*wanted_]);  // the first one
  threads_.know(switches);
  modules_.know(file_.facts().build_ids, file_.facts().host, file_.facts().kernel_release);
}

void PerfImport::take(std::span<const std::byte> bytes, Nanoseconds time) {
  if (!begun_) begin();
  const PerfEvent* event = file_.event_of(bytes);
  if (event == nullptr) return;
  const perf::Record record = perf::parse_record(bytes, event->shape);
  if (const auto* sample = std::get_if<perf::SampleRecord>(&record)) {
    take_sample(*sample, file_.event_of(sample->id, *event));
  } else if (const auto* change = std::get_if<perf::SwitchRecord>(&record)) {
    take_switch(*change);
  } else if (const auto* lost = std::get_if<perf::LostRecord>(&record)) {
    (lost->samples ? lost_samples_ : lost_) += lost->count;
  } else if (const auto* map = std::get_if<perf::MapRecord>(&record)) {
    take_map(*map);
  } else if (const auto* task = std::get_if<perf::TaskRecord>(&record)) {
    uint16_t misc = 0;
    std::memcpy(&misc, bytes.data() + 4, sizeof misc);
    task->exit ? threads_.end(*task)
               : threads_.fork(*task, time != 0 && (misc & PERF_RECORD_MISC_FORK_EXEC) == 0);
  } else if (const auto* name = std::get_if<perf::NameRecord>(&record)) {
    threads_.name(*name, time);
  } else if (const auto* other = std::get_if<perf::OtherRecord>(&record)) {
    damaged_ += other->damaged;
    throttled_ += other->type == PERF_RECORD_THROTTLE;
  }
}

PerfImport::Seen& PerfImport::seen(const PerfEvent& event) {
  const size_t place = file_.number_of(event);
  if (place >= seen_.size()) seen_.resize(place + 1);
  Seen& row = seen_[place];
  if (row.number == 0) {
    const auto unit = event.is_clock() ? profile::Unit::nanoseconds : profile::Unit::count;
    row.number = numbers_.of({on_all_cores(event.name), unit});
    row.of_wanted = is_of_wanted(event);
    hybrid_.met(event.name);
  }
  return row;
}

void PerfImport::take_sample(const perf::SampleRecord& record, const PerfEvent& event) {
  if (first_ == 0) first_ = record.time;
  last_ = std::max(last_, record.time);
  PerfProcess& process = threads_.process(record.pid);
  const PerfStacks::Stack stack = stacks_.stack_of(process, record, event);
  if (!process.jit_trouble().empty()) jit_troubles_.insert(process.jit_trouble());
  profile::Sample sample;
  sample.stack = stack.id;
  sample.quality = stack.cut ? profile::Quality::cut : profile::Quality::ok;
  if ((event.shape.sample_type & PERF_SAMPLE_CPU) != 0)
    sample.cpu_number = static_cast<int16_t>(record.cpu & 0x7fff);
  cut_ += stack.cut;
  const uint64_t period = (event.shape.sample_type & PERF_SAMPLE_PERIOD) != 0 ? record.period : event.period;
  const Nanoseconds time = event.is_clock() ? clock_periods_.take(period) : 0;
  Seen& of_event = seen(event);
  const bool is_wanted = of_event.of_wanted;
  ++of_event.samples;
  sample.event = of_event.number;
  if (!event.is_clock()) sample.value = numbers_.take(period);
  if (event.tells_switches()) {
    if (!is_wanted) {
      threads_.counted(record.pid, record.tid, record.time, 0, sample);
      sample.event = wanted_ ? 1 : 0;
      sample.value = 0;
    }
    put_switch(record, sample);
  } else if (is_wanted) {
    threads_.sampled(record.pid, record.tid, record.time, time, sample);
  } else {
    threads_.counted(record.pid, record.tid, record.time, time, sample);
  }
  if (++samples_ % kCommitEvery == 0) {
    threads_.flush();
    static_cast<void>(sink_.commit());
  }
}

void PerfImport::put_switch(const perf::SampleRecord& record, profile::Sample sample) {
  const auto fields = switch_fields(record.raw);
  // For a tracepoint the state is a bit mask; no bit set means that it could have continued.
  const bool preempted = fields && (fields->previous_state & 0xff) == 0;
  threads_.switched_out(record.pid, record.tid, record.time, preempted, sample, true);
  if (fields && fields->next != record.tid) threads_.switched_in(-1, fields->next, record.time);
}

profile::Sample PerfImport::asleep_without_stack() {
  if (!off_cpu_) {
    profile::Frame marker;
    marker.kind = profile::FrameKind::marker;
    marker.function = marker.qualified_name = "(off the CPU: perf recorded no stack)";
    off_cpu_ = interner_.stack({}, interner_.frame(marker));
  }
  profile::Sample sample;
  sample.samples = 0;
  sample.stack = off_cpu_;
  sample.event = wanted_ ? 1 : 0;
  return sample;
}

void PerfImport::take_switch(const perf::SwitchRecord& record) {
  last_ = std::max(last_, record.time);
  if (!record.out) return threads_.switched_in(record.pid, record.tid, record.time);
  threads_.switched_out(record.pid, record.tid, record.time, record.preempted, asleep_without_stack(), false);
}

void PerfImport::take_map(const perf::MapRecord& record) {
  if (record.pid != -1) return threads_.map(record);
  // "[kernel.kallsyms]_text": the offset is that symbol's address.
  constexpr std::string_view kKernel = "[kernel.kallsyms]";
  if (!record.path.starts_with(kKernel) || record.path.size() == kKernel.size()) return;
  std::string build_id = hex(record.build_id);
  const auto& build_ids = file_.facts().build_ids;
  if (const auto found = build_ids.find(kKernel); build_id.empty() && found != build_ids.end())
    build_id = found->second.front();
  kernel_.open(build_id, record.path.substr(kKernel.size()), record.offset, file_.facts().kernel_release,
               options_.files.build_id_dirs);
}

void PerfImport::put_meta() {
  const PerfFacts& facts = file_.facts();
  const auto put = [this](std::string_view key, const std::string& value) {
    if (!value.empty()) sink_.emit_meta(key, value);
  };
  put("recorded_by", recorder());
  put("host", facts.host);
  put("kernel", facts.kernel_release.empty() ? "" : "Linux " + facts.kernel_release);
  put("machine", facts.architecture);
  put("command_line", facts.command_line);
  put("clock", "perf");
  // perf record --per-thread records no times.
  put("start_monotonic_ns", last_ == 0 ? "" : std::to_string(first_));
  put("end_monotonic_ns", last_ == 0 ? "" : std::to_string(last_));
}

void PerfImport::put_counters() {
  namespace counters = profile::counters;
  const PerfStackCounts& counts = stacks_.counts();
  const auto put = [this](std::string_view name, uint64_t value) {
    sink_.emit({{}, std::string(name), static_cast<int64_t>(value)});
  };
  put(counters::kSamples, samples_);
  put(counters::kCut, cut_);
  put(counters::kLost, lost_ + lost_samples_);
  put(counters::kElapsed, static_cast<uint64_t>(last_ - first_));
  put(counters::kNative, counts.unwound);
  put(counters::kNativeWhole, counts.whole);
  put(counters::kNativeCut, counts.unwound - counts.whole);
}

// "1200 samples of cpu-clock, 31 of page-faults".
std::string PerfImport::samples_by_event() const {
  constexpr size_t kNamed = 4;
  std::vector<std::pair<uint64_t, std::string_view>> counts;
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].samples > 0) counts.emplace_back(seen_[i].samples, file_.events()[i].name);
  }
  std::sort(counts.rbegin(), counts.rend());
  std::string text;
  for (size_t i = 0; i < std::min(counts.size(), kNamed); ++i)
    text += i == 0 ? fmt::format("{} {} of {}", counts[i].first, counts[i].first == 1 ? "sample" : "samples",
                                 counts[i].second)
                   : fmt::format(", {} of {}", counts[i].first, counts[i].second);
  if (counts.size() > kNamed) text += fmt::format(" and {} more events", counts.size() - kNamed);
  return counts.empty() ? "no samples" : text;
}

// A file of a killed recorder has no version.
std::string PerfImport::recorder() const {
  const std::string& version = file_.facts().perf_version;
  return version.empty() ? "perf" : "perf " + version;
}

std::string PerfImport::summary() const {
  const PerfStackCounts& counts = stacks_.counts();
  const std::string length =
      last_ == 0 ? "" : fmt::format(" in {:.1f} s", static_cast<double>(last_ - first_) * 1e-9);
  std::string text = fmt::format("{}: {}{}, {} {} of {} {}", recorder(), samples_by_event(), length,
                                 threads_.threads(), threads_.threads() == 1 ? "thread" : "threads",
                                 threads_.processes(), threads_.processes() == 1 ? "process" : "processes");
  if (counts.unwound > 0) {
    text += fmt::format("; {} of {} dumped stacks unwound to their start",
                        percent(counts.whole, counts.unwound), counts.unwound);
    if (counts.too_short > 0) text += fmt::format(", {} deeper than the dump", counts.too_short);
    if (counts.red_zone > 0) text += fmt::format(", {} broken below the stack pointer", counts.red_zone);
    if (counts.no_rule > 0) text += fmt::format(", {} without unwind information", counts.no_rule);
    if (counts.senseless > 0) text += fmt::format(", {} senseless", counts.senseless);
  }
  if (counts.chains > 0) text += fmt::format("; {} call chains as recorded", counts.chains);
  return text;
}

// Why few or no stacks of a Python program have its functions; empty if they do, or if Python has next to no
// part in the recording.
std::string PerfImport::missing_python() const {
  const PerfThreads::PythonStacks& stacks = threads_.python_stacks();
  const uint64_t all = stacks_.counts().samples;
  const uint64_t lacking = stacks.of_telling - stacks.with_function;
  const auto matters = [&](uint64_t some) { return some * 20 > all; };
  if (matters(stacks.of_silent)) {
    return fmt::format(
        "{} of {} stacks are of Python that does not tell perf of its functions, and show the interpreter's "
        "C functions instead: python -X perf does (3.12 and later; /tmp/perf-PID.map must still be there), "
        "phlox record needs nothing of the kind",
        stacks.of_silent, all);
  }
  if (stacks_.counts().unwound == 0 && matters(lacking) && lacking > stacks.with_function) {
    return fmt::format(
        "{} of {} stacks of Python lack its functions: it was built without frame pointers, and perf record "
        "--call-graph dwarf goes without them",
        lacking, stacks.of_telling);
  }
  return "";
}

ImportOutcome PerfImport::finish(const PerfStream& stream, const PerfOrder& order) {
  threads_.finish(last_);
  threads_.tell_pythons();
  put_meta();
  put_counters();
  ImportOutcome out;
  out.samples = samples_;
  out.modules = stacks_.modules();
  out.summary = summary();
  const auto warn = [&](uint64_t count, const std::string& text) {
    if (count > 0) out.warnings.push_back(text);
  };
  warn(lost_ + lost_samples_,
       fmt::format("perf lost {} records while it recorded: a larger buffer (perf record -m) helps",
                   lost_ + lost_samples_));
  const PerfStackCounts& counts = stacks_.counts();
  warn(counts.longest_dump < kLongestDump && counts.too_short * 20 > counts.unwound ? 1 : 0,
       fmt::format("{} of {} stacks are deeper than the {} bytes that perf copied of each: perf record "
                   "--call-graph dwarf,{} copies more, into a larger file",
                   counts.too_short, counts.unwound, counts.longest_dump, kLongestDump));
  const std::string together = hybrid_.warning();
  warn(together.empty() ? 0 : 1, together);
  const std::string python = missing_python();
  warn(python.empty() ? 0 : 1, python);
  warn(stream.cut() ? 1 : 0, "the file ends inside a record: the recorder was killed, or the file was cut");
  warn(stream.unread(), fmt::format("{} bytes of the file could not be read", stream.unread()));
  warn(stream.damaged(), fmt::format("{} compressed records could not be unpacked", stream.damaged()));
  warn(damaged_, fmt::format("{} records made no sense and were left out", damaged_));
  warn(without_event_,
       fmt::format("{} records are of no event that the file tells of, and were left out", without_event_));
  warn(throttled_,
       fmt::format("the kernel throttled perf {} times: there are fewer samples than were asked for",
                   throttled_));
  warn(order.late(), fmt::format("{} came too late to be put into the order of time",
                                 order.late() == 1 ? "1 record" : fmt::format("{} records", order.late())));
  for (const PerfEvent& event : file_.events()) {
    warn(event.is_sched_switch() && !event.each_time,
         fmt::format("{} was itself sampled, so it does not tell who waited and how long: perf record "
                     "--switch-events does",
                     event.name));
  }
  warn(modules_.others().size(), other_files(modules_.others()));
  for (const std::string& trouble : jit_troubles_) out.warnings.push_back(trouble);
  warn(clock_periods_.longer(), clock_periods_.warning());
  if (numbers_.left_out()) out.warnings.push_back(EventNumbers::kLeftOut);
  if (stream.trace_bytes() > 0)
    out.details.push_back(fmt::format("{} bytes of hardware traces passed over", stream.trace_bytes()));
  return out;
}

}  // namespace

Result<ImportOutcome> import_perf_data(Input& input, const ImportOptions& options, profile::Sink& sink) {
  auto file = PerfFile::open(input);
  if (!file) return fail(file);
  auto outcome = PerfImport(*file, options, sink).run(input);
  if (outcome && input.lost())
    outcome->warnings.push_back(no_room_to_read_again().value().message + ": a part of it is missing");
  return outcome;
}

}  // namespace phlox::importers
