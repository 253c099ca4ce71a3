// What `record --on` and `diff --fail-if` read that others wrote: conditions, lines of a log file, the causes
// in a recording's meta, and rows of programs that are recorded. No crash; a condition keeps its limits;
// lines do not depend on how the bytes came in pieces; each row is passed on.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "phlox/incidents/condition.h"
#include "phlox/incidents/log_lines.h"
#include "phlox/incidents/row_watch.h"
#include "phlox/report/diff.h"
#include "phlox/view/incident_causes.h"

namespace {

using namespace phlox;

void check(bool holds) {
  if (!holds) std::abort();
}

void check_conditions(std::string_view text) {
  if (const auto one = incidents::parse_condition(text)) {
    check(text.starts_with(incidents::kind_name(one->kind)));
    check(one->length >= 0 && one->length <= 10 * kSecond);
    check(one->over >= kSecond && one->over <= 600 * kSecond);
    check(one->share >= 0 && one->share <= 10'000);
  } else {
    check(one.error().kind == ErrorKind::usage);
  }
  if (const auto one = report::parse_condition(text)) check(one->limit == one->limit);
}

std::vector<std::string> lines_of(std::string_view bytes, size_t piece) {
  std::vector<std::string> lines;
  incidents::LogLines log;
  for (size_t at = 0; at < bytes.size(); at += piece)
    log.put(bytes.substr(at, piece), [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

void check_lines(std::string_view bytes) {
  const auto whole = lines_of(bytes, bytes.size() + 1);
  check(whole == lines_of(bytes, 1) && whole == lines_of(bytes, 7));
  for (const std::string& line : whole)
    check(line.size() <= incidents::LogLines::kLongestLine && line.find('\n') == std::string::npos);
}

void check_causes(std::string_view text) {
  profile::Profile recording;
  recording.emit_meta("incident.1", std::string(text));
  recording.emit_meta("incident.2", "5\tstall\t" + std::string(text));
  for (const view::IncidentCause& cause : view::incident_causes(recording))
    check(!cause.kind.empty() && !cause.in_short.empty());
}

struct Bytes {
  std::string_view left;
  uint32_t next(uint32_t below) {
    if (left.empty()) return 0;
    uint32_t value = static_cast<unsigned char>(left.front());
    left.remove_prefix(1);
    if (below > 256 && !left.empty()) {
      value = value << 8 | static_cast<unsigned char>(left.front());
      left.remove_prefix(1);
    }
    return value % below;
  }
};

struct Counted : profile::Sink {
  void receive(const profile::AnyRow&) override { ++rows; }
  Result<void> commit() override { return {}; }
  size_t rows = 0;
};

profile::Sample sample_of(Bytes& bytes, uint32_t threads, uint32_t stacks, Nanoseconds now) {
  profile::Sample sample;
  sample.thread = profile::ThreadId(bytes.next(threads + 2));  // none, and one that is not known
  sample.stack = profile::StackId(bytes.next(stacks + 1));
  sample.start = now - Nanoseconds{bytes.next(4)} * 1'000'000;
  sample.wall = Nanoseconds{bytes.next(60'000)} * 1'000'000;
  sample.cpu = sample.wall / (1 + bytes.next(3));
  sample.samples = bytes.next(3);
  sample.cpu_state = static_cast<profile::CpuState>(bytes.next(4));
  sample.gil_state = static_cast<profile::GilState>(bytes.next(4));
  constexpr int16_t kCalls[] = {232, 230, 202, 23, -1};
  sample.system_call = kCalls[bytes.next(5)];
  return sample;
}

profile::Event event_of(Bytes& bytes, uint32_t processes, uint32_t threads, Nanoseconds now) {
  constexpr std::string_view kTexts[] = {
      "handled", "sh (1): ends it",   "the kernel: ends it", "signal 9 (SIGKILL)",
      "signal ", "signal 99999999999"};
  profile::Event event;
  event.kind = static_cast<profile::EventKind>(bytes.next(18));
  event.time = now - Nanoseconds{bytes.next(9)} * kSecond;
  if (bytes.next(4) != 0) event.process = profile::ProcessId(1 + bytes.next(processes));
  if (bytes.next(4) != 0) event.thread = profile::ThreadId(1 + bytes.next(threads));
  event.value = bytes.next(70);
  event.text = kTexts[bytes.next(std::size(kTexts))];
  return event;
}

void check_rows(std::string_view text) {
  constexpr uint32_t kProcesses = 2, kThreads = 4;
  std::vector<incidents::Condition> all;
  for (const char* on : {"stall=20ms", "gil=20ms", "cpu=1%/1s", "cpu-wait=1%/1s", "death"})
    all.push_back(*incidents::parse_condition(on));
  Counted kept;
  size_t causes = 0;
  incidents::RowWatch watch(
      all, kept,
      [&](const incidents::Cause& cause) {
        check(!cause.words.empty() && !cause.in_short.empty());
        ++causes;
      },
      [](const profile::Process&) {});
  size_t rows = 0;
  const auto put = [&](auto... row) {
    watch.emit(row...);
    ++rows;
  };
  for (uint32_t i = 1; i <= kProcesses; ++i) {
    profile::Process process;
    process.pid = static_cast<int32_t>(i);
    process.mode = profile::kInTheKernel;
    put(profile::ProcessId(i), process);
  }
  for (uint32_t i = 1; i <= kThreads; ++i) {
    profile::Thread thread;
    thread.process = profile::ProcessId(1 + i % kProcesses);
    thread.tid = static_cast<int32_t>(i);
    put(profile::ThreadId(i), thread);
  }
  constexpr const char* kNames[][2] = {{"/usr/lib/python3.12/asyncio/base_events.py", "_run_once"},
                                       {"/usr/lib/python3.12/selectors.py", "select"},
                                       {"/usr/lib/python3.12/asyncio/events.py", "_run"},
                                       {"/app/app.py", "work"}};
  constexpr uint32_t kParents[] = {0, 1, 1, 3};
  for (uint32_t i = 1; i <= 4; ++i) {
    profile::Frame frame;
    frame.function = frame.qualified_name = kNames[i - 1][1];
    frame.file = kNames[i - 1][0];
    put(profile::FrameId(i), frame);
    put(profile::StackId(i), profile::Stack{profile::StackId(kParents[i - 1]), profile::FrameId(i)});
  }
  Bytes bytes{text};
  Nanoseconds now = 1000 * kSecond;
  uint32_t samples = 0;
  profile::Sample last;
  while (!bytes.left.empty()) {
    switch (bytes.next(5)) {
      case 0:
        check(watch.commit().has_value());
        break;
      case 1:
        put(event_of(bytes, kProcesses, kThreads, now));
        break;
      case 2:  // the last one grows
        if (samples == 0) break;
        last.wall += Nanoseconds{bytes.next(250)} * 1'000'000;
        put(profile::SampleId(samples), last);
        break;
      default:
        last = sample_of(bytes, kThreads, 4, now);
        now += last.wall;
        put(profile::SampleId(++samples), last);
    }
  }
  check(watch.commit().has_value());
  check(kept.rows == rows);
  check(causes <= rows * all.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_conditions(bytes);
  check_lines(bytes);
  check_causes(bytes);
  check_rows(bytes);
  return 0;
}
