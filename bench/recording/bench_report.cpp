// Makes a recording of SAMPLES samples and measures reading and reporting: the goal is one second for a
// report of a million, and for a diff of two of them.
//   bench_report [SAMPLES] [STACKS] [FOLDER]     (default 1,000,000 and 20,000)
// With a FOLDER it only writes before.phlox and after.phlox there, for the section `report` of bench/run.py.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "phlox/profile/interner.h"
#include "phlox/recording/reader.h"
#include "phlox/recording/writer.h"
#include "phlox/report/diff.h"
#include "phlox/report/report.h"

using namespace phlox;
using namespace phlox::profile;
using namespace phlox::view;

namespace {

// A program of 2,000 functions in 100 files, stacks up to 60 deep, four threads of which one works; 1,000
// samples per second.
bool make_recording(const std::string& path, uint32_t samples, uint32_t stacks, unsigned seed) {
  auto writer = recording::Writer::create(path);
  if (!writer) return false;
  Sink& sink = **writer;
  Interner interner(sink);
  Process process;
  process.pid = 1;
  process.command_line = "python3 bench.py";
  sink.emit(ProcessId(1), process);
  for (uint32_t t = 1; t <= 4; ++t) {
    Thread thread;
    thread.process = ProcessId(1);
    thread.tid = static_cast<int32_t>(t);
    thread.name = "worker-" + std::to_string(t);
    sink.emit(ThreadId(t), thread);
  }
  std::mt19937 random(1);
  std::vector<StackId> known = {interner.stack({}, interner.frame(Frame{}))}, leaves;
  while (interner.stacks() < stacks) {
    Frame frame;
    const auto function = static_cast<uint32_t>(random() % 2000);
    frame.function = "function_" + std::to_string(function);
    frame.qualified_name = "Class" + std::to_string(function % 50) + "." + frame.function;
    frame.file = "/usr/lib/python3.12/package/module_" + std::to_string(function % 100) + ".py";
    frame.first_line = static_cast<int32_t>(function * 10);
    frame.line = frame.first_line + static_cast<int32_t>(random() % 10);
    // Mostly beneath one of the latest, which makes stacks deep.
    const StackId parent = known[known.size() - 1 - random() % std::min<size_t>(known.size(), 40)];
    known.push_back(interner.stack(parent, interner.frame(frame)));
  }
  random.seed(seed);
  Nanoseconds now = 0;
  for (uint32_t i = 1; i <= samples; ++i) {
    Sample sample;
    sample.thread = ThreadId(i % 4 + 1);
    sample.start = now;
    sample.wall = 900'000 + static_cast<Nanoseconds>(random() % 200'000);
    sample.stack = known[random() % known.size()];
    sample.cpu_state = i % 4 == 0 ? CpuState::running : CpuState::blocked;
    sample.gil_state = i % 4 == 0 ? GilState::holds : i % 4 == 1 ? GilState::waits : GilState::none;
    sample.cpu = i % 4 == 0 ? sample.wall : 0;
    sample.system_call = i % 4 == 0 ? -1 : 202;
    if (i % 4 == 3) now += sample.wall;
    sink.emit(SampleId(i), sample);
    if (i % 1000 == 0 && !sink.commit()) return false;
  }
  return bool((*writer)->finish());
}

// Wall and CPU time of a task, in ms.
class Watch {
 public:
  std::string text() const {
    return fmt::format("{:.0f} ms (CPU {:.0f})", double(clock_now() - wall_) / 1e6,
                       double(clock_now(CLOCK_PROCESS_CPUTIME_ID) - cpu_) / 1e6);
  }

 private:
  Nanoseconds wall_ = clock_now();
  Nanoseconds cpu_ = clock_now(CLOCK_PROCESS_CPUTIME_ID);
};

}  // namespace

int main(int argc, char** argv) {
  const auto samples = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1'000'000);
  const auto stacks = static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 20'000);
  const bool keep = argc > 3;
  std::string folder = keep ? argv[3] : "/tmp/phlox-bench-XXXXXX";
  if (!keep && ::mkdtemp(folder.data()) == nullptr) return 1;
  const std::string before = folder + "/before.phlox", after = folder + "/after.phlox";
  {
    const Watch watch;
    if (!make_recording(before, samples, stacks, 1) || !make_recording(after, samples, stacks, 2)) return 1;
    fmt::print("two recordings of {} samples, {} stacks: written in {}\n", samples, stacks, watch.text());
  }
  if (keep) return 0;
  {
    const Watch reading;
    const auto profile = recording::read(before);
    if (!profile) return 1;
    const std::string read = reading.text();
    const Watch making;
    const auto report = report::make_report(*profile, {});
    if (!report) return 1;
    const auto text = report::report_text(*report);
    fmt::print("report: read {}, make {}\n", read, making.text());
    const Watch drawing;
    if (!build_call_tree(*profile, {})) return 1;
    fmt::print("the flame graph's tree: {}\n", drawing.text());
  }
  {
    const Watch reading;
    auto other = std::async(std::launch::async, [&] { return recording::read(after); });
    const auto one = recording::read(before);
    const auto two = other.get();
    if (!one || !two) return 1;
    const std::string read = reading.text();
    const Watch comparing;
    const auto diff = report::make_diff(*one, *two, {});
    if (!diff) return 1;
    fmt::print("diff: read both side by side {}, compare {}; {} of {} functions differ\n", read,
               comparing.text(), diff->differ, diff->compared);
  }
  ::unlink(before.c_str());
  ::unlink(after.c_str());
  ::rmdir(folder.c_str());
  return 0;
}
