#include "phlox/exporters/page_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <tsl/robin_map.h>

#include "phlox/base/encodings.h"
#include "phlox/exporters/page_columns.h"
#include "phlox/exporters/page_incidents.h"
#include "phlox/exporters/page_json.h"
#include "phlox/exporters/page_loops.h"
#include "phlox/exporters/page_requests.h"
#include "phlox/exporters/page_traces.h"
#include "phlox/exporters/recording_picture.h"
#include "phlox/exporters/words.h"
#include "phlox/profile/declarations.h"
#include "phlox/view/await_time.h"
#include "phlox/view/empty_view.h"
#include "phlox/view/loops_and_pools.h"
#include "phlox/view/quality.h"
#include "phlox/view/system_calls.h"
#include "phlox/view/whole_run.h"
#include "phlox/view/whole_waits.h"
#include "phlox/view/work.h"

namespace phlox::exporters {
namespace {

using profile::Profile;

constexpr int kFormat = 1;  // of the page's data; the script that reads it is in the same file

// Each text once; a line each, since no displayable text has a line's end in it.
class Strings {
 public:
  Strings() { index(""); }
  uint32_t index(std::string_view raw) {
    const auto [at, added] = known_.try_emplace(displayable(raw), count_);
    if (added) {
      ++count_;
      text_ += at->first;
      text_ += '\n';
    }
    return at->second;
  }
  const std::string& text() const { return text_; }

 private:
  tsl::robin_map<std::string, uint32_t> known_;
  uint32_t count_ = 0;
  std::string text_;
};

// What the event that is shown counted is the first of them. `awaits`: await time, if there is any.
std::string weight_word(view::Weight weight, const PageTables& tables, bool awaits) {
  for (size_t i = 0; awaits && i < tables.events.size(); ++i) {
    if (tables.events[i].name == view::kAwaitTime) return fmt::format("event{}", i + 1);
  }
  if (is_of_event(weight) && !tables.events.empty()) return "event1";
  return weight == view::Weight::cpu ? "cpu" : is_time(weight) ? "wall" : "samples";
}

// Where the numbers of a side begin: processes and threads of all sides are counted through.
struct Offset {
  const PageSide* side;
  int64_t recording, processes, threads;
  Nanoseconds start;  // of the side's recording; each side's time begins at 0

  int64_t process(const auto& id) const { return id ? int64_t{id->value} - 1 + processes : -1; }
  int64_t thread(const auto& id) const { return id ? int64_t{id->value} - 1 + threads : -1; }
};

std::vector<Offset> offsets_of(std::span<const PageSide> sides) {
  std::vector<Offset> offsets;
  int64_t processes = 0, threads = 0;
  for (const PageSide& side : sides) {
    offsets.push_back({&side, static_cast<int64_t>(offsets.size()), processes, threads,
                       view::recording_start(*side.profile)});
    processes += static_cast<int64_t>(side.profile->processes().size());
    threads += static_cast<int64_t>(side.profile->threads().size());
  }
  return offsets;
}

std::string of_side(const PageSide& side, const std::string& words) {
  return side.name.empty() || words.empty() ? words : side.name + ": " + words;
}

void put_processes(Json& json, const Offset& offset) {
  for (const profile::Process& process : offset.side->profile->processes()) {
    json.open('{');
    json.text("label", of_side(*offset.side, view::process_label(process)));
    json.number("pid", process.pid);
    json.number("parent", offset.process(process.parent));
    json.text("commandLine", process.command_line);
    json.text("python", process.python_version);
    json.text("howEnded", process.how_ended);
    json.number("start", process.start - offset.start);
    json.number("end", process.end == 0 ? -1 : process.end - offset.start);
    json.close('}');
  }
}

void put_threads(Json& json, const Offset& offset) {
  for (const profile::Thread& thread : offset.side->profile->threads()) {
    json.open('{');
    json.text("label", of_side(*offset.side, view::thread_label(thread)));
    json.number("recording", offset.recording);
    json.text("name", thread.name.empty() ? thread.kernel_name : thread.name);
    json.number("process", offset.process(thread.process ? &thread.process : nullptr));
    json.number("tid", thread.tid);
    json.number("interpreter", thread.interpreter);
    json.key("python");
    json.truth(thread.python_id != 0);
    json.key("ofTasks");
    json.truth(view::is_unknown_thread_of_loop(thread));
    json.number("start", thread.start - offset.start);
    json.number("end", thread.end == 0 ? -1 : thread.end - offset.start);
    json.close('}');
  }
}

void put_events(Json& json, const Offset& offset) {
  for (const profile::Event& event : offset.side->profile->events()) {
    json.open('{');
    json.number("kind", static_cast<int64_t>(event.kind));
    json.number("time", event.time - offset.start);
    json.number("process", offset.process(event.process));
    json.number("thread", offset.thread(event.thread));
    json.number("value", event.value);
    json.text("text", event.text);
    json.close('}');
  }
}

void put_counters(Json& json, const Offset& offset) {
  for (const profile::Counter& counter : offset.side->profile->counters()) {
    json.open('{');
    json.number("process", int64_t{counter.process.value} - 1 + offset.processes);
    json.text("name", counter.name);
    json.number("value", counter.value);
    json.close('}');
  }
}

void put_lists(Json& json, std::span<const PageSide> sides) {
  const std::vector<Offset> offsets = offsets_of(sides);
  const auto list = [&](std::string_view name, auto&& put) {
    json.key(name);
    json.open('[');
    for (const Offset& offset : offsets) put(json, offset);
    json.close(']');
  };
  list("processes", put_processes);
  list("threads", put_threads);
  list("events", put_events);
  list("tallies", put_counters);
  list("recordings", [](Json& out, const Offset& offset) {
    out.open('{');
    out.text("name", offset.side->name);
    out.text("title", recording_title(*offset.side->profile));
    out.key("exactWaits");
    out.truth(view::waits_are_exact(*offset.side->profile));
    out.key("wholeRun");
    out.truth(view::is_whole_run(*offset.side->profile));
    out.close('}');
  });
}

void put_states(Json& json, const Profile& profile, const PageTables& tables) {
  const std::string_view machine = view::machine_of(profile);
  json.key("states");
  json.open('[');
  for (const PageState& state : tables.states) {
    json.open('{');
    json.number("cpu", static_cast<int64_t>(state.cpu));
    json.number("gil", static_cast<int64_t>(state.gil));
    json.key("collecting");
    json.truth(state.collecting);
    json.text("call", state.cpu == profile::CpuState::blocked
                          ? view::system_call_name(state.system_call, machine)
                          : std::string());
    json.number("quality", static_cast<int64_t>(state.quality));
    if (!state.library.empty()) json.text("library", state.library);
    json.close('}');
  }
  json.close(']');
}

void put_facts(Json& json, const Profile& profile) {
  json.key("meta");
  json.open('{');
  for (const auto& [key, value] : profile.meta()) {
    if (!profile::is_declaration(key)) json.text(displayable(key), value);  // places have their files
  }
  json.close('}');
}

void add_functions(ColumnWriter& columns, Strings& strings, const PageTables& tables) {
  const auto texts = [&](const char* name, auto&& text) {
    columns.add(name, ColumnLayout::planes, tables.functions,
                [&](const PageFunction& function) { return strings.index(text(function)); });
  };
  texts("function.name", [](const PageFunction& f) -> std::string_view {
    return f.label.name.empty() ? std::string_view("(no name)") : f.label.name;
  });
  texts("function.full", [](const PageFunction& f) -> std::string_view { return f.label.full; });
  texts("function.file", [](const PageFunction& f) -> std::string_view { return f.label.file; });
  texts("function.module", [](const PageFunction& f) -> std::string_view { return f.label.module; });
  texts("function.binary", [](const PageFunction& f) -> std::string_view { return f.binary; });
  columns.add("function.line", ColumnLayout::planes, tables.functions,
              [](const PageFunction& f) { return std::max(0, f.label.line); });
  columns.add("function.kind", ColumnLayout::planes, tables.functions,
              [](const PageFunction& f) { return static_cast<int>(f.label.kind); });
  columns.add("function.owner", ColumnLayout::planes, tables.functions,
              [](const PageFunction& f) { return f.owner; });
}

void add_tree(ColumnWriter& columns, Strings& strings, const PageTables& tables) {
  uint32_t before = 0;
  columns.add("place.function", ColumnLayout::planes, tables.places,
              [&](const PagePlace& place) { return place.function - std::exchange(before, place.function); });
  columns.add("place.line", ColumnLayout::planes, tables.places,
              [](const PagePlace& place) { return std::max(0, place.line); });
  columns.add("place.file", ColumnLayout::planes, tables.places,
              [&](const PagePlace& place) { return strings.index(place.file); });
  // Depth first, a node's depth tells its parent.
  std::vector<uint32_t> depth;
  depth.reserve(tables.nodes.size());
  for (const PageNode& node : tables.nodes) depth.push_back(depth.empty() ? 0 : depth[node.parent] + 1);
  columns.add("node.depth", ColumnLayout::planes, depth, [](uint32_t value) { return value; });
  columns.add("node.place", ColumnLayout::planes, tables.nodes,
              [](const PageNode& node) { return node.place; });
}

void add_waits(ColumnWriter& columns, Strings& strings, const PageTables& tables) {
  const auto& rows = tables.waits;
  const auto add = [&](const char* name, auto&& value) {
    columns.add(name, ColumnLayout::planes, rows, value);
  };
  add("wait.words", [&](const PageWait& wait) { return strings.index(wait.words); });
  add("wait.which", [&](const PageWait& wait) { return strings.index(wait.which); });
  add("wait.place", [](const PageWait& wait) { return wait.place; });
  add("wait.by", [](const PageWait& wait) { return wait.by + 1; });
  add("wait.byPlace", [](const PageWait& wait) { return wait.by_place; });
  add("wait.other", [&](const PageWait& wait) { return strings.index(wait.other); });
}

// Starts lie on a grid: a recording keeps them in microseconds since one moment.
struct Grid {
  Nanoseconds first = 0;
  Nanoseconds unit = 1000;
};

Grid grid_of(const std::vector<PageSpan>& spans) {
  Grid grid;
  if (spans.empty()) return grid;
  const auto by_start = [](const PageSpan& a, const PageSpan& b) { return a.start < b.start; };
  grid.first = std::min_element(spans.begin(), spans.end(), by_start)->start;
  const auto off = [&](const PageSpan& span) { return (span.start - grid.first) % grid.unit != 0; };
  if (std::any_of(spans.begin(), spans.end(), off)) grid.unit = 1;
  return grid;
}

void add_spans(ColumnWriter& columns, const PageTables& tables, const Grid& grid, size_t threads) {
  const auto& rows = tables.spans;
  std::vector<int64_t> counts(threads, 0);
  for (const PageSpan& span : rows) ++counts[span.thread];
  columns.add("thread.stretches", ColumnLayout::planes, counts);
  // Most spans begin where the thread's last one ended.
  uint32_t thread = ~uint32_t{0};
  int64_t expected = 0;
  columns.add("stretch.start", ColumnLayout::planes, rows, [&](const PageSpan& span) {
    if (std::exchange(thread, span.thread) != span.thread) expected = 0;
    const int64_t start = (span.start - grid.first) / grid.unit;
    const int64_t difference = start - expected;
    expected = (start * grid.unit + span.wall) / grid.unit;
    return zigzag(difference);
  });
  columns.add("stretch.wall", ColumnLayout::planes, rows,
              [](const PageSpan& span) { return std::max<Nanoseconds>(0, span.wall); });
  // Blocked, a thread uses no CPU; running, nearly all of the time.
  columns.add("stretch.cpu", ColumnLayout::planes, rows, [](const PageSpan& span) {
    return span.cpu == 0 ? 0 : zigzag(std::max<Nanoseconds>(0, span.wall) - span.cpu) + 1;
  });
  columns.add("stretch.samples", ColumnLayout::planes, rows, [](const PageSpan& s) { return s.samples; });
  if (!tables.events.empty()) {
    columns.add("stretch.event", ColumnLayout::planes, rows, [](const PageSpan& s) { return s.event; });
    columns.add("stretch.value", ColumnLayout::planes, rows,
                [](const PageSpan& s) { return std::max<int64_t>(0, s.value); });
  }
  columns.add("stretch.node", ColumnLayout::words, rows, [](const PageSpan& s) { return s.node; });
  columns.add("stretch.state", ColumnLayout::planes, rows, [](const PageSpan& s) { return s.state; });
  columns.add("stretch.doing", ColumnLayout::planes, rows,
              [](const PageSpan& s) { return static_cast<int>(s.doing); });
  columns.add("stretch.wait", ColumnLayout::planes, rows, [](const PageSpan& s) { return s.wait; });
  columns.add("stretch.cpuNumber", ColumnLayout::planes, rows,
              [](const PageSpan& s) { return std::max(0, s.cpu_number + 1); });
  if (tables.endpoints.size() > 1)
    columns.add("stretch.endpoint", ColumnLayout::planes, rows, [](const PageSpan& s) { return s.endpoint; });
}

void put_columns(Json& json, const ColumnWriter& columns) {
  constexpr std::string_view kLayouts[] = {"planes", "words", "text"};
  json.key("columns");
  json.open('[');
  for (const Column& column : columns.columns()) {
    json.open('[');
    json.text(column.name);
    json.text(kLayouts[static_cast<size_t>(column.layout)]);
    json.number(column.width);
    json.number(static_cast<int64_t>(column.rows));
    json.close(']');
  }
  json.close(']');
}

void put_merge(Json& json, const PageMerge& merge, uint64_t limit) {
  if (merge.window == 0) return;
  json.key("merged");
  json.open('{');
  json.number("limit", static_cast<int64_t>(limit));
  json.number("window", merge.window);
  json.number("stretchesBefore", static_cast<int64_t>(merge.spans_before));
  json.number("stretchesAfter", static_cast<int64_t>(merge.spans_after));
  json.number("nodesBefore", static_cast<int64_t>(merge.nodes_before));
  json.number("nodesAfter", static_cast<int64_t>(merge.nodes_after));
  json.key("rareShare");
  json.real(merge.rare_share);
  json.number("cutWall", merge.cut_wall);
  json.close('}');
}

void put_sources(Json& json, const PageSources& sources) {
  if (sources.json.empty()) return;
  json.key("sources");
  json.open('{');
  json.number("files", static_cast<int64_t>(sources.files));
  json.number("missing", static_cast<int64_t>(sources.missing));
  json.number("leftOut", static_cast<int64_t>(sources.left_out));
  json.number("bytes", static_cast<int64_t>(sources.packed));
  json.close('}');
}

void put_events(Json& head, const std::vector<profile::SampledEvent>& events) {
  head.key("events");
  head.open('[');
  for (const profile::SampledEvent& event : events) {
    head.open('{');
    head.text("name", displayable(event.name));
    head.text("unit", profile::unit_key(event.unit));
    if (event.name == view::kAwaitTime && event.unit == profile::Unit::nanoseconds) {
      head.key("awaits");
      head.truth(true);
    }
    head.close('}');
  }
  head.close(']');
}

// Whatever it begins with, the page says what its choice of work leaves out.
view::Choices showing_work(view::Choices choices) {
  choices.show = view::Show::work;
  return choices;
}

std::string title_of(std::span<const PageSide> sides, const ExportOptions& options) {
  if (!options.title.empty()) return displayable(options.title);
  std::string title = recording_title(*sides.back().profile);
  if (sides.size() == 1) title = incident_title(*sides.back().profile) + title;
  if (sides.size() > 1) {
    const std::string first = recording_title(*sides.front().profile);
    title = "Difference: " + (first == title ? title : first + " → " + title);
  }
  return displayable(title);
}

// What was recorded, and how far it can be believed: of each side.
void put_words(Json& head, std::span<const PageSide> sides, const view::Choices& choices) {
  std::string subtitle, warning, left_out, unknown;
  std::vector<std::string> loops;
  Json stalls, incidents;
  stalls.open('[');
  incidents.open('[');
  const auto add = [](std::string& to, const std::string& words) {
    if (!words.empty()) to += (to.empty() ? "" : "; ") + words;
  };
  bool unfinished = false;
  head.key("quality");
  head.open('[');
  for (const Offset& offset : offsets_of(sides)) {
    const PageSide& side = *offset.side;
    const view::QualitySummary quality = view::summarize_quality(*side.profile);
    for (const std::string& line : quality_lines(*side.profile, quality)) head.text(of_side(side, line));
    const auto empty = view::why_empty(*side.profile, choices);
    add(warning, of_side(side, empty ? "Nothing to show: " + *empty : view::quality_warning(quality)));
    const view::LeftOut waiting = view::waiting_for_work(*side.profile, showing_work(choices));
    add(left_out, of_side(side, view::left_out_words(waiting)));
    add(unknown, of_side(side, view::unknown_words(waiting)));
    // Of one trace, only its own threads' time is left: nothing is known of a loop as a whole.
    const PageLoops of_loops = choices.trace ? PageLoops() : loops_of_page(*side.profile, choices);
    for (const std::string& words : of_loops.words) loops.push_back(of_side(side, words));
    for (const PageStall& stall : of_loops.stalls)
      put_stall(stalls, offset.thread(std::optional(stall.thread)), stall);
    put_incidents(incidents, *side.profile, side.name.empty() ? "" : side.name + ": ");
    add(subtitle, of_side(side, recording_facts(*side.profile)));
    unfinished = unfinished || is_unfinished(*side.profile);
  }
  head.close(']');
  head.text("subtitle", subtitle + choices_words(*sides.back().profile, choices) + ".");
  head.text("warning", warning);
  head.text("leftOut", left_out);
  head.text("notKnown", unknown);
  head.key("loops");
  head.open('[');
  for (const std::string& words : loops) head.text(words);
  head.close(']');
  stalls.close(']');
  head.key("stalls");
  head.raw(stalls.document());
  incidents.close(']');
  head.key("incidents");
  head.raw(incidents.document());
  head.key("unfinished");
  head.truth(unfinished);
}

}  // namespace

Result<PageData> make_page_data(std::span<const PageSide> sides, const view::Choices& choices,
                                const ExportOptions& options, const PageTables& tables,
                                const PageMerge& merge, const PageSources& sources) {
  const Profile& last = *sides.back().profile;
  const Grid grid = grid_of(tables.spans);
  size_t threads = 0;
  for (const PageSide& side : sides) threads += side.profile->threads().size();

  ColumnWriter columns;
  Strings strings;
  add_functions(columns, strings, tables);
  add_tree(columns, strings, tables);
  add_waits(columns, strings, tables);
  add_spans(columns, tables, grid, threads);
  const size_t trace_times_left_out = add_trace_times(columns, sides, grid.first);
  columns.add_text("strings", strings.text());
  Json catalogue;
  catalogue.open('{');
  put_lists(catalogue, sides);
  put_states(catalogue, last, tables);
  catalogue.key("endpoints");
  catalogue.open('[');
  for (const std::string& label : tables.endpoints) catalogue.text(label);
  catalogue.close(']');
  put_facts(catalogue, last);
  catalogue.close('}');
  columns.add_text("catalogue", catalogue.document());
  if (!sources.json.empty()) columns.add_text("sources", sources.json);
  auto packed = deflated(columns.bytes());
  if (!packed) return fail(packed);

  PageData data;
  data.title = title_of(sides, options);
  Json head;
  head.open('{');
  head.number("format", kFormat);
  head.text("phlox", PHLOX_VERSION);
  head.text("title", data.title);
  put_words(head, sides, choices);
  put_requests(head, last, sides.size() == 1 ? options.tasks : nullptr, choices);
  put_traces(head, sides.size() == 1 ? &last : nullptr, options.tasks, choices, trace_times_left_out);
  head.text("weight", weight_word(choices.weight, tables, options.weigh_awaits));
  put_events(head, tables.events);
  head.text("show", view::show_name(choices.show));
  head.key("inherited");
  head.truth(options.with_inherited != nullptr && options.show_inherited);
  head.text("by", choices.by.line ? "line" : "function");
  head.number("gridFirst", grid.first);
  head.number("gridUnit", grid.unit);
  put_sources(head, sources);
  put_merge(head, merge, options.page_bytes);
  put_columns(head, columns);
  head.close('}');
  data.head = safe_in_markup(head.document());
  data.columns = base64(*packed);
  return data;
}

}  // namespace phlox::exporters
