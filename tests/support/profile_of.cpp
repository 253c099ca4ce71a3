#include "support/profile_of.h"

namespace phlox::test {

ProfileMaker::ProfileMaker(profile::Sink& sink) : sink_(sink), interner_(sink) {
  profile::Process process;
  process.pid = process.namespace_pid = 4711;
  process.executable = "/usr/bin/python3";
  process.command_line = "python3 app.py";
  process.python_version = "3.12.1";
  process.python_build = "default";
  process.mode = "same CPU (real time)";
  process.start = kStart;
  sink_.emit(profile::ProcessId(1), process);
  profile::Event event;
  event.kind = profile::EventKind::recording_start;
  event.time = kStart;
  sink_.emit(event);
}

profile::ProcessId ProfileMaker::process(int32_t pid, profile::ProcessId parent) {
  profile::Process row;
  row.pid = row.namespace_pid = pid;
  row.parent = parent;
  row.executable = "/usr/bin/python3";
  row.command_line = "python3 worker.py";
  row.python_version = "3.12.1";
  row.python_build = "default";
  row.start = kStart;
  const profile::ProcessId id(++processes_);
  sink_.emit(id, row);
  return id;
}

profile::ThreadId ProfileMaker::thread(const std::string& name, int32_t tid, profile::ProcessId of) {
  ends_.push_back(kStart);
  const profile::ThreadId id(static_cast<uint32_t>(ends_.size()));
  profile::Thread row;
  row.process = of;
  row.tid = tid != 0 ? tid : static_cast<int32_t>(4710 + id.value);
  row.python_id = 0x7f0000000000 + id.value;
  row.name = name;
  row.kernel_name = "python3";
  row.start = kStart;
  sink_.emit(id, row);
  return id;
}

profile::FrameId ProfileMaker::frame(const std::string& text) {
  profile::Frame frame;
  std::string name = text;
  frame.file = "/app/app.py";
  if (const size_t slash = name.rfind('/'); slash != std::string::npos) {
    frame.file = name.substr(0, slash);
    name = name.substr(slash + 1);
  }
  frame.first_line = 1;
  frame.line = 2;
  if (const size_t colon = name.rfind(':'); colon != std::string::npos && !name.starts_with("(")) {
    frame.line = std::stoi(name.substr(colon + 1));
    name = name.substr(0, colon);
  }
  if (name.starts_with("(")) {
    frame.kind = profile::FrameKind::marker;
    frame.file.clear();
    frame.first_line = frame.line = 0;
  }
  if (name.starts_with("@")) {
    frame.kind = profile::FrameKind::native;
    name.erase(0, 1);
    frame.file.clear();
    frame.first_line = frame.line = 0;
  }
  frame.function = name.substr(name.rfind('.') + 1);
  frame.qualified_name = name;
  return interner_.frame(frame);
}

profile::StackId ProfileMaker::stack(const std::string& frames) {
  profile::StackId stack;
  for (size_t at = 0; at < frames.size();) {
    const size_t end = std::min(frames.find(';', at), frames.size());
    stack = interner_.stack(stack, frame(frames.substr(at, end - at)));
    at = end + 1;
  }
  return stack;
}

profile::Sample ProfileMaker::sample(profile::ThreadId thread, const std::string& frames, Nanoseconds wall) {
  profile::Sample sample;
  sample.thread = thread;
  sample.start = ends_[thread.value - 1];
  sample.wall = wall;
  sample.cpu = wall;
  sample.cpu_number = 1;
  sample.stack = stack(frames);
  sample.cpu_state = profile::CpuState::running;
  sample.gil_state = profile::GilState::holds;
  ends_[thread.value - 1] += wall;
  return sample;
}

void ProfileMaker::put(const profile::Sample& sample) {
  sink_.emit(profile::SampleId(++samples_), sample);
}

}  // namespace phlox::test
