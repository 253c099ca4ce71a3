#include "phlox/report/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "phlox/profile/wait_target.h"
#include "phlox/report/json_rows.h"
#include "phlox/report/table.h"
#include "phlox/view/native_frames.h"
#include "phlox/view/system_calls.h"

namespace phlox::report {
namespace {

// The JSON's version: a change that readers would misread raises it.
constexpr int64_t kDumpVersion = 1;

using profile::CpuState;
using profile::Frame;
using profile::FrameKind;
using profile::FrameRole;
using profile::GilState;
using profile::Profile;
using profile::Quality;
using profile::Sample;

// The last sample of each thread, in the order of their first ones. Time between two samples has its own
// rows, which do not show where the thread is.
std::map<uint32_t, const Sample*> last_samples(const Profile& instant) {
  std::map<uint32_t, const Sample*> last;
  for (const Sample& sample : instant.samples()) {
    const Sample*& latest = last[sample.thread.value];
    if (latest == nullptr || sample.samples > 0) latest = &sample;
  }
  return last;
}

std::vector<const Frame*> frames_of(const Profile& instant, profile::StackId stack) {
  std::vector<const Frame*> frames;
  while (stack) {
    const profile::Stack& row = instant.stack(stack);
    frames.push_back(&instant.frame(row.frame));
    if (row.parent >= stack) break;  // parents come first: this ends
    stack = row.parent;
  }
  return frames;
}

std::string_view cpu_name(CpuState state) {
  switch (state) {
    case CpuState::running:
      return "running";
    case CpuState::runnable:
      return "runnable";
    case CpuState::blocked:
      return "blocked";
    case CpuState::unknown:
      break;
  }
  return "unknown";
}

std::string_view role_name(FrameRole role) {
  switch (role) {
    case FrameRole::none:
      break;
    case FrameRole::interpreter_loop:
      return "interpreter loop";
    case FrameRole::trampoline:
      return "trampoline";
    case FrameRole::cython_slot:
      return "Cython slot";
    case FrameRole::cython_wrapper:
      return "Cython wrapper";
    case FrameRole::cython_body:
      return "Cython body";
    case FrameRole::jit_code:
      return "JIT code";
  }
  return "";
}

std::string_view gil_name(GilState state) {
  switch (state) {
    case GilState::none:
      return "none";
    case GilState::holds:
      return "holds";
    case GilState::waits:
      return "waits";
    case GilState::not_applicable:
      return "not_applicable";
    case GilState::unknown:
      break;
  }
  return "unknown";
}

std::string_view quality_name(Quality quality) {
  switch (quality) {
    case Quality::ok:
      return "ok";
    case Quality::cut:
      return "cut";
    case Quality::unproved:
      return "unproved";
    case Quality::detached:
      return "detached";
    case Quality::rejected:
      break;
  }
  return "rejected";
}

// nullptr: not known.
const profile::WaitTarget* wait_target_of(const Profile& instant, const Sample& sample) {
  return sample.wait_target && sample.wait_target.value <= instant.wait_targets().size()
             ? &instant.wait_targets()[sample.wait_target.value - 1]
             : nullptr;
}

std::string states_of(const Profile& instant, const Sample& sample, std::string_view machine) {
  std::string text(cpu_name(sample.cpu_state));
  if (sample.cpu_state == CpuState::blocked && sample.system_call >= 0) {
    text += " in " + view::system_call_name(sample.system_call, machine);
    const profile::WaitTarget* wait_target = wait_target_of(instant, sample);
    const std::string words =
        wait_target != nullptr ? profile::wait_target_words(*wait_target) : std::string();
    if (!words.empty()) text += " (" + plain(words) + ")";
  }
  if (sample.gil_state == GilState::holds) text += ", holds the GIL";
  if (sample.gil_state == GilState::waits) text += ", waits for the GIL";
  if (sample.collecting) text += ", collecting garbage";
  if (sample.quality == Quality::unproved) text += ", unproved";
  if (sample.quality == Quality::detached) text += ", between two generators";
  return text;
}

// Source lines; each file is requested once.
class Lines {
 public:
  explicit Lines(const DumpSource& source) : source_(source) {}
  std::string_view line(const std::string& file, int32_t number) {
    const auto [entry, is_new] = files_.try_emplace(file);
    if (is_new && source_) entry->second = source_(file);
    if (!entry->second || number <= 0) return {};
    std::string_view text = *entry->second;
    for (int32_t at = 1; at < number; ++at) {
      const size_t end = text.find('\n');
      if (end == std::string_view::npos) return {};
      text.remove_prefix(end + 1);
    }
    text = text.substr(0, text.find('\n'));
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
    return text;
  }

 private:
  const DumpSource& source_;
  std::map<std::string, std::optional<std::string>> files_;
};

std::string_view module_path(const Profile& instant, const Frame& frame) {
  if (!frame.module || frame.module->value == 0 || frame.module->value > instant.modules().size()) return {};
  return instant.modules()[frame.module->value - 1].path;
}

// " in /usr/lib/libfoo.so", for a native frame without a source file.
std::string module_words(const Profile& instant, const Frame& frame) {
  const std::string_view path = module_path(instant, frame);
  return path.empty() ? std::string() : " in " + plain(path);
}

// By thread and depth.
using VariablesOf = std::map<std::pair<uint32_t, size_t>, const std::vector<DumpVariable>*>;

VariablesOf index_of(const Dump& dump) {
  VariablesOf index;
  for (const DumpVariables& of_frame : dump.variables)
    index[{of_frame.thread.value, of_frame.depth}] = &of_frame.variables;
  return index;
}

void write_frame(JsonText& json, const Profile& instant, const Frame& frame) {
  json.text("kind", kind_key(frame.kind));
  json.text("function", frame.function);
  json.text("qualified_name", frame.qualified_name);
  json.text("file", frame.file);
  json.integer("first_line", frame.first_line);
  json.integer("line", frame.line);
  if (frame.kind == FrameKind::native || frame.kind == FrameKind::kernel) {
    json.text("module", module_path(instant, frame));
    json.count("address", frame.address);
    json.truth("inlined", frame.inlined_in.has_value());
    json.text("found_by", frame.found_by);
    if (const auto role = role_name(frame.role); !role.empty()) json.text("role", role);
  }
}

void write_thread(JsonText& json, const Profile& instant, uint32_t id, const Sample& sample,
                  const VariablesOf& variables) {
  const profile::Thread& thread = instant.thread(profile::ThreadId(id));
  json.integer("pid", instant.process(thread.process).pid);
  json.integer("tid", thread.tid);
  json.count("python_id", thread.python_id);
  json.integer("interpreter", thread.interpreter);
  json.text("name", thread.name);
  json.text("kernel_name", thread.kernel_name);
  json.text("cpu", cpu_name(sample.cpu_state));
  json.text("gil", gil_name(sample.gil_state));
  if (sample.cpu_state == CpuState::blocked && sample.system_call >= 0) {
    json.text("system_call", view::system_call_name(sample.system_call, view::machine_of(instant)));
  }
  if (const profile::WaitTarget* wait_target = wait_target_of(instant, sample)) {
    json.text("wait_target_kind", profile::wait_target_key(wait_target->kind));
    json.text("wait_target", profile::wait_target_words(*wait_target));
  }
  json.truth("collecting", sample.collecting);
  json.text("quality", quality_name(sample.quality));
  size_t depth = 0;
  json.objects("frames", frames_of(instant, sample.stack), [&](const Frame* frame) {
    write_frame(json, instant, *frame);
    const bool python = frame->kind == FrameKind::python;
    const auto found = python ? variables.find({id, depth++}) : variables.end();
    if (found == variables.end()) return;
    json.objects("variables", *found->second, [&](const DumpVariable& variable) {
      json.text("name", variable.name);
      json.text("value", variable.value);
      json.truth("argument", variable.argument);
    });
  });
}

}  // namespace

std::string dump_text(const Profile& instant, const Dump& dump, const DumpSource& source) {
  std::string out;
  for (const auto& process : instant.processes()) {
    out += fmt::format("Process {}: {}\n", process.pid, plain(process.command_line));
  }
  out += plain(dump.python) + "\n";
  const std::string_view machine = view::machine_of(instant);
  const VariablesOf variables = index_of(dump);
  Lines lines(source);
  for (const auto& [id, sample] : last_samples(instant)) {
    const profile::Thread& thread = instant.thread(profile::ThreadId(id));
    out += fmt::format("\n{}: {}\n", plain(view::thread_label(thread)), states_of(instant, *sample, machine));
    size_t depth = 0;
    for (const Frame* frame : frames_of(instant, sample->stack)) {
      if (frame->kind == FrameKind::marker) {
        out += fmt::format("    {}\n", plain(frame->function));
        continue;
      }
      if (frame->kind == FrameKind::python || !frame->file.empty()) {
        out += fmt::format("    {} ({}:{})\n", plain(frame->qualified_name), plain(frame->file), frame->line);
      } else {
        out += fmt::format("    {}{}\n", plain(frame->qualified_name), module_words(instant, *frame));
      }
      if (const auto text = lines.line(frame->file, frame->line); !text.empty())
        out += fmt::format("        {}\n", plain(text));
      if (frame->kind != FrameKind::python) continue;
      const auto found = variables.find({id, depth++});
      if (found == variables.end()) continue;
      for (const DumpVariable& variable : *found->second) {
        out += fmt::format("          {}{} = {}\n", variable.argument ? "" : "  ", plain(variable.name),
                           plain(variable.value));
      }
    }
    if (!sample->stack) out += "    (no Python frame)\n";
  }
  for (const DumpMissing& missing : dump.missing) out += "\n" + plain(describe(missing)) + "\n";
  const DumpLine line = [&lines](const std::string& file, int32_t number) {
    return lines.line(file, number);
  };
  for (const DumpTasks& tasks : dump.tasks) out += tasks_text(instant, tasks, dump.every_task, line);
  return out;
}

std::string describe(const DumpMissing& missing) {
  if (missing.threads == 0) return "Not every thread may be shown: " + missing.why;
  return fmt::format("{} thread{} not shown: {}", missing.threads, missing.threads == 1 ? " is" : "s are",
                     missing.why);
}

std::string dump_json(const Profile& instant, const Dump& dump) {
  const VariablesOf variables = index_of(dump);
  return JsonText::document([&](JsonText& json) {
    json.integer("version", kDumpVersion);
    json.text("kind", "dump");
    json.text("python", dump.python);
    json.objects("processes", instant.processes(), [&](const profile::Process& process) {
      json.integer("pid", process.pid);
      json.integer("namespace_pid", process.namespace_pid);
      json.text("executable", process.executable);
      json.text("command_line", process.command_line);
      json.text("python_version", process.python_version);
      json.text("python_build", process.python_build);
      json.text("mode", process.mode);
    });
    json.objects("missing", dump.missing, [&](const DumpMissing& missing) {
      json.count("threads", missing.threads);
      json.text("why", missing.why);
    });
    write_missing_names(json, view::modules_without_names(instant));
    json.objects("threads", last_samples(instant), [&](const auto& observed) {
      write_thread(json, instant, observed.first, *observed.second, variables);
    });
    write_tasks(json, dump.tasks);
  });
}

}  // namespace phlox::report
