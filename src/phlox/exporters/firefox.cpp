#include "phlox/exporters/firefox.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "phlox/base/text.h"
#include "phlox/exporters/firefox_tables.h"
#include "phlox/exporters/gzip_stream.h"
#include "phlox/exporters/json.h"
#include "phlox/exporters/recording_picture.h"
#include "phlox/exporters/timeline.h"
#include "phlox/view/quality.h"
#include "phlox/view/work.h"

namespace phlox::exporters {
namespace {

constexpr int kVersion = 60;  // meta.preprocessedProfileVersion

void put_milliseconds(JsonWriter& json, Nanoseconds ns) {
  json.Double(static_cast<double>(ns) / 1e6);
}

void put_bool(JsonWriter& json, std::string_view key, bool value) {
  put_key(json, key);
  json.Bool(value);
}

// A row of a thread's samples. The profiler takes a stack to last from its sample to the next one, and CPU
// time to be the time used since the previous sample.
struct FirefoxRow {
  Nanoseconds time = 0;
  int64_t stack = -1;  // none
  int64_t weight = 0;
  Nanoseconds cpu = 0;  // used between this row and the next
};

// A span becomes a row at its begin and, if it has several samples, a second one at its last sample: between
// distant rows the profiler would draw a gradual change of state.
std::vector<FirefoxRow> rows_of(const std::vector<ThreadSample>& samples, const FirefoxTables& tables) {
  std::vector<FirefoxRow> rows;
  Nanoseconds end = 0;
  for (const auto& [sample, part] : samples) {
    if (!rows.empty() && part.start > end) rows.push_back({end});
    FirefoxRow row{part.start, tables.stack(sample->stack), part.weight, part.cpu};
    end = std::max(end, part.start + part.wall);
    if (part.samples < 2 || part.wall < part.samples) {
      rows.push_back(row);
      continue;
    }
    FirefoxRow last = row;
    last.time = part.start + part.wall - part.wall / part.samples;
    last.weight = part.weight / part.samples;
    last.cpu = part.cpu / part.samples;
    row.weight -= last.weight;
    row.cpu -= last.cpu;
    rows.push_back(row);
    rows.push_back(last);
  }
  if (!rows.empty()) rows.push_back({end});
  return rows;
}

void put_samples(JsonWriter& json, const std::vector<FirefoxRow>& rows, view::Weight weight,
                 Nanoseconds zero) {
  put_key(json, "samples");
  json.StartObject();
  const bool counted = !is_time(weight);
  put(json, "weightType",
      std::string_view(!counted                        ? "tracing-ms"
                       : weight == view::Weight::bytes ? "bytes"
                                                       : "samples"));
  put_column(json, "stack", rows, [&](const FirefoxRow& row) {
    if (row.stack < 0) {
      json.Null();
    } else {
      json.Int64(row.stack);
    }
  });
  put_column(json, "time", rows, [&](const FirefoxRow& row) { put_milliseconds(json, row.time - zero); });
  put_column(json, "weight", rows, [&](const FirefoxRow& row) {
    if (counted) {
      json.Int64(row.weight);
    } else {
      put_milliseconds(json, row.weight);
    }
  });
  const FirefoxRow* before = nullptr;
  put_column(json, "threadCPUDelta", rows, [&](const FirefoxRow& row) {
    if (before == nullptr) {
      json.Null();
    } else {
      json.Int64(before->cpu);
    }
    before = &row;
  });
  put(json, "length", static_cast<int64_t>(rows.size()));
  json.EndObject();
}

constexpr std::string_view kEventSchema = "Event", kStateSchema = "State";

struct Marker {
  Nanoseconds start = 0, end = 0;  // equal for a moment
  std::string name, details;
  std::string_view schema;
};

std::vector<Marker> markers_of(const profile::Profile& profile, size_t thread, bool leads_process,
                               const std::vector<ThreadSample>& samples) {
  std::vector<Marker> markers;
  const profile::Thread& row = profile.threads()[thread];
  for (const profile::Event& event : profile.events()) {
    const bool mine = event.thread && event.thread->value == thread + 1;
    const bool of_process =
        leads_process && !event.thread && (!event.process || *event.process == row.process);
    if (!mine && !of_process) continue;
    markers.push_back(
        {event.time, event.time, std::string(event_name(event.kind)), event_words(event), kEventSchema});
  }
  for (StateRun& run : notable_runs(profile, samples))
    markers.push_back({run.start, run.end, std::move(run.name), "", kStateSchema});
  return markers;
}

void put_markers(JsonWriter& json, const std::vector<Marker>& markers, FirefoxTables& tables,
                 Nanoseconds zero) {
  put_key(json, "markers");
  json.StartObject();
  put_column(json, "data", markers, [&](const Marker& marker) {
    json.StartObject();
    put(json, "type", marker.schema);
    if (!marker.details.empty()) put(json, "details", marker.details);
    json.EndObject();
  });
  put_column(json, "name", markers, [&](const Marker& m) { json.Uint64(tables.text(m.name)); });
  put_column(json, "startTime", markers, [&](const Marker& m) { put_milliseconds(json, m.start - zero); });
  put_column(json, "endTime", markers, [&](const Marker& m) {
    if (m.schema == kEventSchema) {
      json.Null();
    } else {
      put_milliseconds(json, m.end - zero);
    }
  });
  // 0: a moment, 1: an interval.
  put_column(json, "phase", markers, [&](const Marker& m) { json.Int(m.schema == kEventSchema ? 0 : 1); });
  put_column(json, "category", markers, [&](const Marker&) { json.Int(0); });
  put(json, "length", static_cast<int64_t>(markers.size()));
  json.EndObject();
}

void put_schema(JsonWriter& json, std::string_view name, std::initializer_list<const char*> display,
                bool details) {
  json.StartObject();
  put(json, "name", name);
  put(json, "tooltipLabel", "{marker.name}");
  put(json, "tableLabel", std::string_view(details ? "{marker.data.details}" : "{marker.name}"));
  put(json, "chartLabel", "{marker.name}");
  put_key(json, "display");
  json.StartArray();
  for (const char* place : display) json.String(place);
  json.EndArray();
  put_key(json, "fields");
  json.StartArray();
  if (details) {
    json.StartObject();
    put(json, "key", "details");
    put(json, "label", "Details");
    put(json, "format", "string");
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

// Entries of meta.extra, which the profiler shows under "Profile info".
void put_extra(JsonWriter& json, const profile::Profile& profile, const view::Choices& choices) {
  put_key(json, "extra");
  json.StartArray();
  json.StartObject();
  put(json, "label", "phlox");
  put_key(json, "entries");
  json.StartArray();
  const auto entry = [&](std::string_view label, const std::string& value) {
    if (value.empty()) return;
    json.StartObject();
    put(json, "label", label);
    put(json, "format", "string");
    put(json, "value", value);
    json.EndObject();
  };
  entry("Recording", recording_subtitle(profile, choices));
  entry("Quality", view::quality_line(view::summarize_quality(profile)));
  entry("Left out", view::left_out_words(view::waiting_for_work(profile, choices)));
  json.EndArray();
  json.EndObject();
  json.EndArray();
}

int64_t number_of(const profile::Profile& profile, std::string_view key) {
  int64_t number = 0;
  if (const auto found = profile.meta().find(key); found != profile.meta().end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
  return number;
}

void put_meta(JsonWriter& json, const profile::Profile& profile, const view::Choices& choices,
              const std::string& title, std::optional<size_t> selected, const FirefoxTables& tables) {
  put_key(json, "meta");
  json.StartObject();
  const view::QualitySummary quality = view::summarize_quality(profile);
  put_double(json, "interval", quality.achieved_rate > 0 ? 1000 / quality.achieved_rate : 1.0);
  put_double(json, "startTime", static_cast<double>(recording_start_time(profile)) / 1e6);
  put(json, "product", title);
  put(json, "importedFrom", "phlox " PHLOX_VERSION);
  put(json, "processType", int64_t{0});
  put(json, "stackwalk", int64_t{1});
  put(json, "version", int64_t{24});  // version of the unprocessed format: ignored
  put(json, "preprocessedProfileVersion", int64_t{kVersion});
  put_bool(json, "symbolicated", true);
  put_bool(json, "usesOnlyOneStackType", true);
  put_bool(json, "sourceCodeIsNotOnSearchfox", true);
  put(json, "platform", "Linux");
  if (const auto machine = profile.meta().find("machine"); machine != profile.meta().end())
    put(json, "oscpu", std::string_view("Linux " + machine->second));
  if (!profile.processes().empty() && !profile.processes().front().command_line.empty())
    put(json, "arguments", std::string_view(profile.processes().front().command_line));
  if (const int64_t cpus = number_of(profile, "cpus"); cpus > 0) put(json, "logicalCPUs", cpus);
  put_key(json, "sampleUnits");
  json.StartObject();
  put(json, "time", "ms");
  put(json, "eventDelay", "ms");
  put(json, "threadCPUDelta", "ns");
  json.EndObject();
  if (selected) {
    put_key(json, "initialSelectedThreads");
    json.StartArray();
    json.Uint64(*selected);
    json.EndArray();
  }
  tables.put_categories(json);
  put_key(json, "markerSchema");
  json.StartArray();
  put_schema(json, kEventSchema, {"marker-chart", "marker-table", "timeline-overview"}, true);
  put_schema(json, kStateSchema, {"marker-chart", "marker-table"}, false);
  json.EndArray();
  put_extra(json, profile, choices);
  json.EndObject();
}

// The row under which the profiler groups the other threads of the process.
std::vector<bool> leaders(const profile::Profile& profile, const SamplesByThread& threads) {
  std::vector<bool> leads(threads.size(), false);
  for (size_t p = 0; p <= profile.processes().size(); ++p) {
    std::optional<size_t> first;
    for (size_t i = 0; i < threads.size(); ++i) {
      const profile::Process* process = process_of(profile, profile.threads()[i]);
      const profile::Process* wanted = p == 0 ? nullptr : &profile.processes()[p - 1];
      if (threads[i].empty() || process != wanted) continue;
      const profile::Thread& thread = profile.threads()[i];
      const bool main =
          process != nullptr && (thread.tid == process->pid || thread.tid == process->namespace_pid);
      if (!first || main) first = i;
      if (main) break;
    }
    if (first) leads[*first] = true;
  }
  return leads;
}

void put_thread(JsonWriter& json, const profile::Profile& profile, size_t index, bool leads,
                const std::vector<ThreadSample>& samples, view::Weight weight, FirefoxTables& tables) {
  const Nanoseconds zero = view::recording_start(profile);
  const profile::Thread& thread = profile.threads()[index];
  const profile::Process* process = process_of(profile, thread);
  const auto put_time = [&](std::string_view key, Nanoseconds time) {
    put_key(json, key);
    if (time > zero) {
      put_milliseconds(json, time - zero);
    } else {
      json.Int(0);
    }
  };
  const auto put_end = [&](std::string_view key, Nanoseconds time) {
    put_key(json, key);
    if (time > zero) {
      put_milliseconds(json, time - zero);
    } else {
      json.Null();  // it was still running
    }
  };
  json.StartObject();
  put(json, "name", std::string_view(thread.name.empty() ? thread.kernel_name : thread.name));
  put(json, "processType", "default");
  put(json, "processName", std::string_view(process == nullptr ? "" : view::process_label(*process)));
  put(json, "pid", std::string_view(std::to_string(process == nullptr ? 0 : process->pid)));
  // Ids must be unique: the kernel may reuse one, and some threads have none.
  const bool twice = std::any_of(profile.threads().begin(), profile.threads().begin() + ptrdiff_t(index),
                                 [&](const profile::Thread& other) { return other.tid == thread.tid; });
  put_key(json, "tid");
  if (thread.tid == 0 || twice) {
    put_text(json, fmt::format("{}.{}", thread.tid, index + 1));
  } else {
    json.Int(thread.tid);
  }
  put_bool(json, "isMainThread", leads);
  put_time("processStartupTime", process == nullptr ? 0 : process->start);
  put_end("processShutdownTime", process == nullptr ? 0 : process->end);
  put_time("registerTime", thread.start);
  put_end("unregisterTime", thread.end);
  put_key(json, "pausedRanges");
  json.StartArray();
  json.EndArray();
  put_bool(json, "showMarkersInTimeline", true);
  put_samples(json, rows_of(samples, tables), weight, zero);
  put_markers(json, markers_of(profile, index, leads, samples), tables, zero);
  json.EndObject();
}

}  // namespace

Result<void> write_firefox_json(const profile::Profile& profile, const view::Choices& choices,
                                const std::string& title, std::ostream& out) {
  Result<view::SampleFilter> filter = view::SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);
  const SamplesByThread threads = samples_by_thread(profile, *filter);
  FirefoxTables tables(profile, choices, threads);

  rapidjson::OStreamWrapper stream(out);
  JsonWriter json(stream);
  json.StartObject();
  std::optional<size_t> selected = busiest_thread(threads);
  if (selected) {
    const auto end = threads.begin() + static_cast<ptrdiff_t>(*selected);
    selected = static_cast<size_t>(
        std::count_if(threads.begin(), end, [](const auto& samples) { return !samples.empty(); }));
  }
  put_meta(json, profile, choices, title, selected, tables);
  tables.put_libraries(json);
  const std::vector<bool> leads = leaders(profile, threads);
  put_key(json, "threads");
  json.StartArray();
  for (size_t i = 0; i < threads.size(); ++i) {
    if (!threads[i].empty()) put_thread(json, profile, i, leads[i], threads[i], choices.weight, tables);
  }
  json.EndArray();
  tables.put_shared(json);
  json.EndObject();
  return {};
}

Result<void> write_firefox(const profile::Profile& profile, const view::Choices& choices,
                           const std::string& title, std::ostream& out) {
  GzipStream gzip(out);
  if (const auto done = write_firefox_json(profile, choices, title, gzip.stream()); !done) return done;
  return gzip.finish();
}

}  // namespace phlox::exporters
