// A recording from anybody, three ways: any file; a good one with bytes changed; a good one with other values
// in its cells, which is what comes past SQLite's own checks. No crash, no endless loop; what is read can be
// reported, compared and exported in every format.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "phlox/exporters/diff_svg.h"
#include "phlox/exporters/registry.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/recording/reader.h"
#include "phlox/recording/writer.h"
#include "phlox/report/diff.h"
#include "phlox/report/dump.h"
#include "phlox/report/report.h"
#include "phlox/view/chosen_trace.h"
#include "phlox/view/shown_event.h"

namespace {

using namespace phlox;
using namespace phlox::profile;
using namespace phlox::view;

// A folder in memory where there is one: every input is a file.
class Folder {
 public:
  Folder()
      : path_(::access("/dev/shm", W_OK) == 0 ? "/dev/shm/phlox-fuzz-XXXXXX" : "/tmp/phlox-fuzz-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~Folder() {
    for (const char* name : {"good.phlox", "input.phlox", "input.phlox-journal"})
      ::unlink((path_ + "/" + name).c_str());
    ::rmdir(path_.c_str());
  }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void write_good(const std::string& path) {
  auto writer = recording::Writer::create(path);
  if (!writer) std::abort();
  Sink& sink = **writer;
  Process process;
  process.pid = 10;
  process.command_line = "python3 app.py";
  process.mode = "same CPU (real time)";
  sink.emit_meta("machine", "x86_64");
  sink.emit(ProcessId(1), process);
  for (uint32_t t = 1; t <= 2; ++t) {
    Thread thread;
    thread.process = ProcessId(1);
    thread.tid = static_cast<int32_t>(10 + t);
    thread.name = "worker-" + std::to_string(t);
    sink.emit(ThreadId(t), thread);
  }
  put_sampled_event(sink, 1, {"cpu-clock", Unit::nanoseconds});
  put_sampled_event(sink, 2, {"inuse_space", Unit::bytes});
  sink.emit(ModuleId(1), {"/lib/libc.so.6", "ab12", 4096});
  for (uint32_t f = 1; f <= 6; ++f) {
    Frame frame;
    frame.kind = f == 5 ? FrameKind::native : f == 6 ? FrameKind::marker : FrameKind::python;
    frame.function = frame.qualified_name = "function_" + std::to_string(f);
    frame.file = "/srv/app/module_" + std::to_string(f) + ".py";
    frame.first_line = static_cast<int32_t>(f);
    frame.line = static_cast<int32_t>(f + 2);
    if (f == 5) frame.module = ModuleId(1);
    sink.emit(FrameId(f), frame);
    Stack stack;
    if (f > 1) stack.parent = StackId(f - 1);
    stack.frame = FrameId(f);
    sink.emit(StackId(f), stack);
  }
  sink.emit(WakerId(1), {ThreadId(1), StackId(2), ""});
  sink.emit(WaitTargetId(1), {WaitTargetKind::client, "127.0.0.1:8000", "10.0.0.9"});
  for (uint32_t i = 1; i <= 60; ++i) {
    Sample sample;
    sample.thread = ThreadId(i % 2 + 1);
    sample.start = static_cast<Nanoseconds>(i) * 1'000'000;
    sample.wall = 1'000'000;
    sample.cpu = i % 3 == 0 ? 900'000 : 0;
    sample.stack = StackId(i % 7);
    sample.cpu_state = static_cast<CpuState>(i % 4);
    sample.gil_state = static_cast<GilState>(i % 5);
    sample.quality = static_cast<Quality>(i % 5);
    sample.system_call = sample.cpu_state == CpuState::blocked ? 202 : -1;
    sample.waker = WakerId(sample.cpu_state == CpuState::blocked ? i % 2 : 0);
    sample.wait_target = WaitTargetId(sample.cpu_state == CpuState::blocked ? i % 2 : 0);
    sample.event = static_cast<uint16_t>(i % 10 == 0 ? 2 : 1);
    sample.value = sample.event == 2 ? i : 0;
    sink.emit(SampleId(i), sample);
  }
  for (uint32_t i = 1; i <= 6; ++i) {
    TraceTime time{ThreadId(i % 2 + 1), {}, i * 8'000'000, i * 8'000'000 + 11'000'000};
    time.ids.trace.fill(static_cast<uint8_t>(i % 4));
    time.ids.span.fill(static_cast<uint8_t>(i));
    sink.emit(TraceTimeId(i), time);
  }
  Event event;
  event.kind = EventKind::recording_start;
  sink.emit(event);
  sink.emit({ProcessId(1), "samples", 60});
  sink.emit({ProcessId(1), "rejected_moved", 2});
  if (!(*writer)->finish()) std::abort();
}

std::vector<char> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put_file(const std::string& path, const char* data, size_t size) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  ::close(file);
}

// Takes the input apart; zero when it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  const uint8_t* data() const { return data_; }
  size_t left() const { return left_; }
  uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | byte();
    return value;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

// Each step of the input changes one cell, or adds a row like another with its number changed.
void change_cells(const std::string& path, Input& input) {
  constexpr const char* kTables[] = {"meta",  "process", "thread", "module",  "frame",     "stack",
                                     "state", "sample",  "event",  "counter", "trace_time"};
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) std::abort();
  sqlite3_exec(database, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", nullptr, nullptr, nullptr);
  for (int step = 0; step < 16 && !input.empty(); ++step) {
    const std::string table = kTables[input.byte() % std::size(kTables)];
    std::vector<std::string> columns;
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(database, ("SELECT * FROM " + table + " LIMIT 0").c_str(), -1, &statement, nullptr);
    for (int i = 0; i < sqlite3_column_count(statement); ++i)
      columns.emplace_back(sqlite3_column_name(statement, i));
    sqlite3_finalize(statement);
    if (columns.empty()) break;
    const std::string column = columns[input.byte() % columns.size()];
    const uint8_t what = input.byte();
    const int64_t row = input.byte();
    const std::string key = table == "meta" || table == "counter" ? columns[0] : "rowid";
    const std::string sql = what >= 0xf0 ? "DELETE FROM " + table + " WHERE " + key + " = ?2 OR ?1 IS 0.5"
                                         : "UPDATE OR REPLACE " + table + " SET " + column + " = ?1 WHERE " +
                                               key + (table == "meta" ? " > ?2" : " = ?2");
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) continue;
    switch (what % 6) {
      case 0:
        sqlite3_bind_int64(statement, 1, static_cast<int8_t>(input.byte()));
        break;
      case 1:
        sqlite3_bind_int64(statement, 1, static_cast<int64_t>(input.number(8)));
        break;
      case 2:
        sqlite3_bind_null(statement, 1);
        break;
      case 3:
        sqlite3_bind_double(statement, 1, static_cast<double>(input.number(4)) * 1e12);
        break;
      default: {
        const size_t size = std::min<size_t>(input.byte(), input.left());
        std::string text(reinterpret_cast<const char*>(input.data()), size);
        input.number(size);
        what % 6 == 4
            ? sqlite3_bind_text(statement, 1, text.data(), static_cast<int>(size), SQLITE_TRANSIENT)
            : sqlite3_bind_blob(statement, 1, text.data(), static_cast<int>(size), SQLITE_TRANSIENT);
      }
    }
    sqlite3_bind_int64(statement, 2, row);
    sqlite3_step(statement);
    sqlite3_finalize(statement);
  }
  sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(database);
}

// Everything that is made of a recording.
void sample_at(const Profile& profile, const Profile& other, uint8_t choice) {
  Choices choices;
  choices.by = {(choice & 1) != 0, (choice & 2) != 0, (choice & 4) != 0};
  choices.weight = static_cast<Weight>((choice >> 3) % 3);
  if ((choice & 32) != 0) choices.states = static_cast<uint8_t>(StateChoice::idle);
  if ((choice & 64) != 0) choices.to = 20'000'000;
  for (const exporters::Format& format : exporters::formats()) {
    std::ostringstream out;
    (void)format.write(profile, choices, {}, out);
  }
  if (const auto report = report::make_report(profile, {choices, 5})) {
    (void)report::report_text(*report);
    (void)report::report_markdown(*report);
    (void)report::report_json(*report);
    (void)report::report_source(*report, [](std::string_view) { return "one\ntwo\nthree\n"; });
  }
  if (const auto diff = report::make_diff(profile, other, {choices, 5})) {
    (void)report::diff_text(*diff);
    (void)report::diff_json(*diff);
  }
  std::ostringstream picture;
  (void)exporters::write_diff_svg(other, profile, choices, {}, picture);
  (void)report::dump_text(profile, {}, {});
  (void)report::dump_json(profile, {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  static const std::string path = folder.file("input.phlox");
  static const std::vector<char> good = [] {
    write_good(folder.file("good.phlox"));
    return bytes_of(folder.file("good.phlox"));
  }();
  static const std::optional<Profile> other = [] {
    auto read = recording::read(folder.file("good.phlox"));
    if (!read) std::abort();
    return std::optional(std::move(*read));
  }();
  if (size < 2) return 0;
  Input input(data + 2, size - 2);
  switch (data[0] % 3) {
    case 0:
      put_file(path, reinterpret_cast<const char*>(input.data()), input.left());
      break;
    case 1: {
      std::vector<char> bytes = good;
      while (!input.empty()) {
        const size_t at = input.number(3) % bytes.size();
        bytes[at] = static_cast<char>(input.byte());
      }
      put_file(path, bytes.data(), bytes.size());
      break;
    }
    default:
      put_file(path, good.data(), good.size());
      change_cells(path, input);
  }
  if (auto profile = recording::read(path)) {
    // Of a bit that look_at() has other use for.
    if (!show_event(*profile, data[1] % 2 == 0 ? "" : "inuse_space")) (void)show_event(*profile, "");
    sample_at(*profile, *other, data[1]);
    Choices choices;
    choices.trace = std::string(32, '0');
    if (show_trace(*profile, choices)) (void)report::make_report(*profile, {choices, 5});
  }
  return 0;
}
