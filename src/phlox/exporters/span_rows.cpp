#include "phlox/exporters/span_rows.h"

#include <fmt/format.h>

#include <string>
#include <variant>
#include <vector>

#include "phlox/exporters/collapsed.h"
#include "phlox/exporters/json.h"
#include "phlox/exporters/recording_picture.h"
#include "phlox/exporters/timeline.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/profile/wait_target.h"
#include "phlox/view/shown_event.h"
#include "phlox/view/system_calls.h"

namespace phlox::exporters {
namespace {

// Nothing: unknown.
using Value = std::variant<std::monostate, int64_t, bool, std::string>;

Value text_or_nothing(std::string_view text) {
  return text.empty() ? Value() : Value(displayable(text));
}
Value number_or_nothing(int64_t number, bool known) {
  return known ? Value(number) : Value();
}
// `names`: indexed by the enum's value, "" for unknown.
template <class Enum, size_t N>
Value word(Enum value, const std::string_view (&names)[N]) {
  return text_or_nothing(names[static_cast<size_t>(value)]);
}

constexpr std::string_view kCpuStates[] = {"", "running", "runnable", "blocked"};
constexpr std::string_view kGilStates[] = {"", "none", "holds", "waits", "not applicable"};
constexpr std::string_view kQualities[] = {"ok", "cut", "unproved", "detached", "rejected"};
constexpr std::string_view kKinds[] = {"python", "native", "kernel", "marker"};

// The wait target; nullptr if unknown.
const profile::WaitTarget* wait_target_of(const profile::Profile& profile, const profile::Sample& sample) {
  return sample.wait_target && sample.wait_target.value <= profile.wait_targets().size()
             ? &profile.wait_targets()[sample.wait_target.value - 1]
             : nullptr;
}

// Values shared by all rows.
struct Recording {
  const profile::Profile& profile;
  Nanoseconds start = 0;
  int64_t unix_start = 0;  // ns since 1970; 0: unknown
  std::string machine = {}, event = {};
  bool has_value = false;
  std::vector<view::Label> labels = {};  // by frame id - 1
};

struct Row {
  const Recording& recording;
  const profile::Sample& sample;
  const view::SampleFilter::Part& part;
  const profile::Thread& thread;
  const profile::Process* process = nullptr;
  const profile::Frame* leaf = nullptr;
  const view::Label* label = nullptr;  // of the leaf
  const profile::WaitTarget* wait_target = nullptr;
};

// A value of the leaf, which a thread may lack.
template <class Get>
Value of_leaf(const Row& row, Get&& get) {
  return row.label == nullptr ? Value() : get(*row.label);
}

struct RowColumn {
  std::string_view name;
  Value (*value)(const Row&);
};

constexpr RowColumn kColumns[] = {
    {"start_ns", [](const Row& row) -> Value { return row.part.start - row.recording.start; }},
    {"unix_ns",
     [](const Row& row) {
       return number_or_nothing(row.recording.unix_start + row.part.start - row.recording.start,
                                row.recording.unix_start > 0);
     }},
    {"wall_ns", [](const Row& row) -> Value { return row.part.wall; }},
    {"cpu_ns", [](const Row& row) -> Value { return row.part.cpu; }},
    {"samples", [](const Row& row) -> Value { return row.part.samples; }},
    {"event", [](const Row& row) { return text_or_nothing(row.recording.event); }},
    {"value", [](const Row& row) { return number_or_nothing(row.part.value, row.recording.has_value); }},
    {"pid",
     [](const Row& row) { return row.process == nullptr ? Value() : Value(int64_t{row.process->pid}); }},
    {"process",
     [](const Row& row) {
       return row.process == nullptr ? Value() : Value(displayable(view::process_label(*row.process)));
     }},
    {"tid", [](const Row& row) { return number_or_nothing(row.thread.tid, row.thread.tid != 0); }},
    {"thread",
     [](const Row& row) {
       return text_or_nothing(row.thread.name.empty() ? row.thread.kernel_name : row.thread.name);
     }},
    {"cpu_state", [](const Row& row) { return word(row.sample.cpu_state, kCpuStates); }},
    {"gil_state", [](const Row& row) { return word(row.sample.gil_state, kGilStates); }},
    {"system_call",
     [](const Row& row) {
       return row.sample.cpu_state == profile::CpuState::blocked &&
                      row.sample.system_call != profile::kCallNotRecorded
                  ? Value(view::system_call_name(row.sample.system_call, row.recording.machine))
                  : Value();
     }},
    {"wait_target_kind",
     [](const Row& row) {
       return row.wait_target == nullptr ? Value()
                                         : text_or_nothing(profile::wait_target_key(row.wait_target->kind));
     }},
    {"wait_target",
     [](const Row& row) {
       return row.wait_target == nullptr ? Value()
                                         : text_or_nothing(profile::wait_target_words(*row.wait_target));
     }},
    {"collecting", [](const Row& row) -> Value { return row.sample.collecting; }},
    {"cpu_number",
     [](const Row& row) { return number_or_nothing(row.sample.cpu_number, row.sample.cpu_number >= 0); }},
    {"quality", [](const Row& row) { return word(row.sample.quality, kQualities); }},
    {"kind", [](const Row& row) { return of_leaf(row, [](const auto& l) { return word(l.kind, kKinds); }); }},
    {"function",
     [](const Row& row) {
       return of_leaf(row, [](const auto& l) { return text_or_nothing(l.whole_name()); });
     }},
    {"module",
     [](const Row& row) { return of_leaf(row, [](const auto& l) { return text_or_nothing(l.module); }); }},
    {"file",
     [](const Row& row) { return of_leaf(row, [](const auto& l) { return text_or_nothing(l.file); }); }},
    {"first_line",
     [](const Row& row) {
       return row.leaf == nullptr ? Value()
                                  : number_or_nothing(row.leaf->first_line, row.leaf->first_line > 0);
     }},
    {"line",
     [](const Row& row) {
       return of_leaf(row, [](const auto& l) { return number_or_nothing(l.line, l.line > 0); });
     }},
};

Recording recording_of(const profile::Profile& profile, const view::Choices& choices) {
  Recording recording{profile, view::recording_start(profile), recording_start_time(profile)};
  const profile::SampledEvent event = view::shown_event(profile);
  recording.event = event.name;
  recording.has_value = !event.name.empty() && event.unit != profile::Unit::nanoseconds;
  recording.machine = view::machine_of(profile);
  view::Choices by_line = choices;
  by_line.by.line = true;
  for (uint32_t id = 1; id <= profile.frames().size(); ++id)
    recording.labels.push_back(frame_label(profile, profile::FrameId(id), by_line));
  return recording;
}

Row row_of(const Recording& recording, const profile::Sample& sample, const view::SampleFilter::Part& part) {
  const profile::Profile& profile = recording.profile;
  const profile::Thread& thread = profile.thread(sample.thread);
  Row row{recording, sample, part, thread, process_of(profile, thread)};
  row.wait_target = wait_target_of(profile, sample);
  if (!sample.stack || sample.stack.value > profile.stacks().size()) return row;
  const profile::FrameId leaf = profile.stack(sample.stack).frame;
  if (!leaf || leaf.value > recording.labels.size()) return row;
  row.leaf = &profile.frame(leaf);
  row.label = &recording.labels[leaf.value - 1];
  return row;
}

// Calls `write` with each row and the names of its stack's frames, root first. Calls `begin` once before
// that, when the choices have been checked.
template <class Begin, class Write>
Result<void> each_row(const profile::Profile& profile, const view::Choices& choices, Begin&& begin,
                      Write&& write) {
  const Result<view::SampleFilter> filter = view::SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);
  const FrameTable frames(profile, choices);
  std::vector<std::string> names;
  for (const view::Label& label : frames.labels())
    names.push_back(displayable(collapsed_frame(label, choices.by.line)));
  const Recording recording = recording_of(profile, choices);
  begin();
  std::vector<size_t> path;
  std::vector<std::string_view> stack;
  for (const profile::Sample& sample : profile.samples()) {
    const view::SampleFilter::Part part = filter->part(sample);
    if (!part.passes) continue;
    frames.stack(sample.stack, path);
    stack.clear();
    for (const size_t frame : path) stack.push_back(names[frame]);
    write(row_of(recording, sample, part), stack);
  }
  return {};
}

void put_value(JsonWriter& json, const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) {
    json.Int64(*number);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    json.Bool(*flag);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    json.String(text->data(), static_cast<rapidjson::SizeType>(text->size()));
  } else {
    json.Null();
  }
}

// A spreadsheet takes text that begins like this for a formula, which may start a program; a leading
// apostrophe marks it as text.
bool looks_like_formula(std::string_view text) {
  return !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos;
}

std::string quoted(std::string_view name) {
  const std::string text = (looks_like_formula(name) ? "'" : "") + std::string(name);
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string csv_field(const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  return {};
}

}  // namespace

Result<void> write_json_lines(const profile::Profile& profile, const view::Choices& choices,
                              std::ostream& out) {
  rapidjson::OStreamWrapper stream(out);
  return each_row(
      profile, choices, [] {},
      [&](const Row& row, const std::vector<std::string_view>& stack) {
        JsonWriter json(stream);
        json.StartObject();
        for (const RowColumn& column : kColumns) {
          put_key(json, column.name);
          put_value(json, column.value(row));
        }
        put_column(json, "stack", stack, [&](std::string_view name) {
          json.String(name.data(), static_cast<rapidjson::SizeType>(name.size()));
        });
        json.EndObject();
        stream.Put('\n');
      });
}

Result<void> write_csv(const profile::Profile& profile, const view::Choices& choices, std::ostream& out) {
  const auto header = [&] {
    for (const RowColumn& column : kColumns) out << column.name << ',';
    out << "stack\n";
  };
  std::string line, joined;
  return each_row(profile, choices, header, [&](const Row& row, const std::vector<std::string_view>& stack) {
    line.clear();
    joined.clear();
    for (const RowColumn& column : kColumns) line += csv_field(column.value(row)) + ',';
    for (const std::string_view name : stack) joined += (joined.empty() ? "" : ";") + escape_collapsed(name);
    out << line << quoted(joined) << '\n';
  });
}

}  // namespace phlox::exporters
