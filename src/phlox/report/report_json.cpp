// A report as JSON: docs/json/report.schema.json. A change that readers would misread raises kVersion.
#include <limits>

#include "phlox/profile/waker_words.h"
#include "phlox/report/await_rows.h"
#include "phlox/report/endpoint_rows.h"
#include "phlox/report/json_rows.h"
#include "phlox/report/report.h"
#include "phlox/report/request_rows.h"
#include "phlox/report/signal_rows.h"
#include "phlox/report/trace_rows.h"
#include "phlox/view/shown_event.h"

namespace phlox::report {
namespace {

constexpr int64_t kVersion = 1;

std::string_view wait_name(WaitKind kind) {
  switch (kind) {
    case WaitKind::system_call:
      return "system_call";
    case WaitKind::gil:
      return "gil";
    case WaitKind::cpu:
      return "cpu";
  }
  return "";
}

// Only if there is any: recordings without native frames keep their old form.
void write_native(JsonText& json, const NativeBeneath& native) {
  if (native.is_library()) {
    json.object("c_code", [&] {
      json.text("module", native.module);
      json.number("share", native.share);
    });
  }
  if (native.full.empty()) return;
  json.object("native", [&] {
    json.text("name", native.full);
    json.text("module", native.module);
    json.number("share", native.share);
  });
}

void write_functions(JsonText& json, std::string_view name, const std::vector<FunctionRow>& rows) {
  json.objects(name, rows, [&](const FunctionRow& row) {
    write_place(json, row.kind, row.full, row.file, row.line, row.module);
    write_estimate(json, "self", row.self);
    write_estimate(json, "total", row.total);
    json.count("samples", row.samples);
    write_native(json, row.native);
  });
}

void write_threads(JsonText& json, const std::vector<ThreadRow>& rows) {
  json.objects("threads", rows, [&](const ThreadRow& row) {
    json.text("name", row.name);
    json.integer("pid", row.pid);
    json.integer("tid", row.tid);
    json.integer("weight", row.weight);
    json.integer("wall_ns", row.wall);
    json.integer("cpu_ns", row.cpu);
    json.count("samples", row.samples);
    json.text("busiest_function", row.busiest);
    json.object("states_ns", [&] {
      json.integer("running", row.states.running);
      json.integer("runnable", row.states.runnable);
      json.integer("blocked", row.states.blocked);
      json.integer("unknown", row.states.unknown);
      json.integer("gil_holds", row.states.gil_holds);
      json.integer("gil_waits", row.states.gil_waits);
      json.integer("idle", row.states.idle);
      json.integer("collecting", row.states.collecting);
      json.integer("rejected", row.states.rejected);
    });
    json.object("waiting_ns", [&] {
      const StateTimes& s = row.states;
      json.integer("at_work", s.idle - s.for_work - s.for_others - s.not_known);
      json.integer("for_work", s.for_work);
      json.integer("for_others", s.for_others);
      json.integer("not_known", s.not_known);
    });
  });
}

void write_waiting(JsonText& json, const view::WaitingAt& waiting) {
  json.integer("wall_ns", waiting.wall);
  json.count("threads", waiting.threads);
  json.objects("places", waiting.places, [&](const view::WaitingAt::Place& place) {
    json.text("name", place.name);
    json.text("file", place.file);
    json.integer("wall_ns", place.wall);
    json.count("threads", place.threads);
  });
}

void write_stalls(JsonText& json, const LoopRow& loop) {
  json.object("stalls", [&] {
    json.integer("shortest_ns", loop.stalls.shortest);
    json.truth("exact", loop.stalls.exact);
    json.integer("interval_ns", loop.stalls.interval);
    json.count("proved", loop.stalls.proved);
    json.count("not_proved", loop.stalls_seen - loop.stalls.proved);
    json.integer("wall_ns", loop.stalls.wall);
    json.objects("longest", loop.stall_rows, [&](const StallRow& row) {
      json.integer("start_ns", row.stall.start);
      json.integer("wall_ns", row.stall.wall);
      json.integer("least_ns", row.stall.least);
      json.integer("error_ns", row.stall.error);
      json.integer("short_waits_ns", row.stall.brief);
      json.truth("one_turn", row.stall.is_one_turn());
      json.truth("cut", row.stall.is_cut);
      json.text("kind", view::stall_key(row.stall.kind));
      json.integer("kind_ns", row.stall.of_kind);
      json.text("words", row.words);
      json.text("class", row.stall.sample == 0 ? "" : view::wait_class_key(row.waits));
      json.text("for", row.what);
      json.text("wait_target", row.wait_target);
      json.text("name", row.name);
      json.text("file", row.file);
      json.integer("line", row.line);
      json.count("callbacks", row.stall.callbacks);
      json.text("holder", row.holder);
      json.text("holder_in", row.holder_name);
      json.text("holder_file", row.holder_file);
      json.integer("holder_line", row.holder_line);
      json.count("ready_tasks", row.ready);
      json.integer("ready_for_ns", row.ready_for);
    });
  });
}

void write_loops(JsonText& json, const std::vector<LoopRow>& rows) {
  json.objects("event_loops", rows, [&](const LoopRow& row) {
    json.text("thread", row.thread);
    json.integer("pid", row.pid);
    json.integer("tid", row.tid);
    json.text("loop", row.time.kind);
    json.integer("wall_ns", row.time.wall);
    json.object("parts_ns", [&] {
      json.integer("idle", row.time.idle);
      json.integer("running", row.time.running);
      json.integer("blocked", row.time.blocked);
      json.integer("gil_waits", row.time.gil);
      json.integer("cpu_waits", row.time.cpu);
      json.integer("not_known", row.time.unknown);
    });
    json.text("blocked_in", row.name);
    json.text("blocked_in_file", row.file);
    json.integer("blocked_in_line", row.line);
    write_stalls(json, row);
  });
}

void write_processes(JsonText& json, const std::vector<ProcessRow>& rows) {
  json.objects("processes", rows, [&](const ProcessRow& row) {
    json.integer("pid", row.pid);
    json.integer("namespace_pid", row.namespace_pid);
    json.integer("parent", row.parent);
    json.text("container", row.container);
    json.text("service_name", row.service.name);
    json.text("service_version", row.service.version);
    json.text("deployment_environment", row.service.environment);
    json.text("control_group", row.control_group);
    json.text("command_line", row.command_line);
    json.integer("recorded_ns", row.recorded);
    json.integer("cpu_ns", row.cpu);
    json.count("samples", row.samples);
    json.count("threads", row.threads);
    json.text("busiest_function", row.busiest);
    json.text("how_ended", row.how_ended);
  });
}

void write_programs(JsonText& json, const std::vector<ProgramRow>& rows) {
  json.objects("programs", rows, [&](const ProgramRow& row) {
    json.text("name", row.name);
    json.count("processes", row.processes);
    json.integer("recorded_ns", row.recorded);
    json.integer("cpu_ns", row.cpu);
    json.count("samples", row.samples);
    json.count("threads", row.threads);
    json.text("busiest_function", row.busiest);
  });
}

void write_gil_waits(JsonText& json, const std::vector<GilWaitRow>& rows) {
  json.objects("gil_waits", rows, [&](const GilWaitRow& row) {
    json.text("thread", row.thread);
    json.integer("pid", row.pid);
    json.integer("tid", row.tid);
    json.integer("wall_ns", row.wall);
    json.number("share", row.share);
    json.text("name", row.name);
    json.text("file", row.file);
    json.integer("line", row.line);
    json.number("place_share", row.place_share);
    json.text("holder", row.holder);
    json.number("holder_share", row.holder_share);
    json.integer("unseen_ns", row.unseen);
    json.integer("free_ns", row.free);
    json.objects("holders", row.holders, [&](const GilHolderRow& holder) {
      json.text("name", holder.name);
      json.text("file", holder.file);
      json.integer("line", holder.line);
      json.integer("wall_ns", holder.wall);
      json.number("share", holder.share);
      json.text("thread", holder.thread);
      json.integer("threads", holder.threads);
    });
  });
}

void write_ended_waits(JsonText& json, const std::vector<EndedWaitRow>& rows) {
  json.objects("ended_waits", rows, [&](const EndedWaitRow& row) {
    json.text("class", view::wait_class_key(row.waits));
    json.text("for", row.what);
    json.text("wait_target_kind", row.wait_target_kind);
    json.text("wait_target", row.wait_target);
    json.text("name", row.name);
    json.text("file", row.file);
    json.integer("line", row.line);
    json.integer("wall_ns", row.wall);
    json.count("waits", row.count);
    json.integer("threads", row.threads);
    json.text("ended_how", profile::waker_kind({profile::ThreadId(row.by_threads > 0 ? 1 : 0), {}, row.by}));
    json.text("ended_by", row.by);
    json.integer("ended_by_threads", row.by_threads);
    json.text("ended_in", row.by_name);
    json.text("ended_in_file", row.by_file);
    json.integer("ended_in_line", row.by_line);
  });
}

void write_head(JsonText& json, const Report& report) {
  json.text("format", "phlox report");
  json.integer("version", kVersion);
  json.text("title", report.title);
  json.text("containers", report.containers);
  json.text("services", report.services);
  json.text("weight", weight_key(report.weight));
  json.text("unit", view::unit_key(report.weight));
  json.text("event", report.event);
  json.integer("total", report.total);
  json.count("samples", report.samples);
  json.integer("elapsed_ns", report.elapsed);
  json.text("show", view::show_name(report.show));
  json.object("left_out", [&] {
    write_waiting(json, report.left_out.for_work);
    json.object("for_others", [&] { write_waiting(json, report.left_out.for_others); });
  });
  json.object("idle_or_at_work", [&] { write_waiting(json, report.left_out.unknown); });
  json.object("seen", [&] {
    json.count("functions", report.functions_seen);
    json.count("lines", report.lines_seen);
    json.count("threads", report.threads_seen);
    json.count("processes", report.processes_seen);
  });
}

void write_findings(JsonText& json, const std::vector<Finding>& findings) {
  json.objects("findings", findings, [&](const Finding& finding) {
    json.text("kind", finding.kind);
    json.number("weight", finding.weight);
    json.text("text", finding.text);
    json.object("numbers", [&] {
      for (const auto& [name, value] : finding.numbers) json.number(name, value);
    });
    json.object("names", [&] {
      for (const auto& [name, value] : finding.names) json.text(name, value);
    });
  });
}

void write_lines(JsonText& json, const std::vector<LineRow>& lines) {
  json.objects("lines", lines, [&](const LineRow& row) {
    json.text("name", row.full);
    json.text("file", row.file);
    json.integer("line", row.line);
    write_estimate(json, "self", row.self);
    write_estimate(json, "total", row.total);
    json.count("samples", row.samples);
    write_native(json, row.native);
  });
}

void write_recordings(JsonText& json, const std::vector<RecordingRow>& rows) {
  json.objects("recordings", rows, [&](const RecordingRow& row) {
    json.text("file", row.name);
    json.integer("elapsed_ns", row.elapsed);
    json.integer("wall_ns", row.wall);
    json.integer("cpu_ns", row.cpu);
    json.count("samples", row.samples);
    json.count("processes", row.processes);
  });
}

void write_not_examined(JsonText& json, const std::vector<profile::Descendant>& rows) {
  json.objects("not_looked_into", rows, [&](const profile::Descendant& row) {
    json.integer("pid", row.pid);
    json.integer("parent", row.parent);
    json.text("command_line", row.command_line);
    json.integer("cpu_ns", row.cpu);
    json.truth("ended", row.ended);
  });
}

void write_waits(JsonText& json, const std::vector<WaitRow>& waits) {
  json.objects("waits", waits, [&](const WaitRow& row) {
    json.text("kind", wait_name(row.kind));
    json.text("class", view::wait_class_key(row.waits));
    json.text("for", row.what);
    json.text("wait_target_kind", row.wait_target_kind);
    json.text("wait_target", row.wait_target);
    json.text("name", row.name);
    json.text("file", row.file);
    json.integer("line", row.line);
    json.integer("wall_ns", row.wall);
    json.integer("for_work_ns", row.for_work);
    json.integer("not_known_ns", row.not_known);
    json.number("share", row.share);
    json.integer("threads", row.threads);
    write_native(json, row.native);
    json.text("called_from", row.called_from);
    json.text("called_from_file", row.called_from_file);
    json.integer("called_from_line", row.called_from_line);
  });
}

}  // namespace

void write_estimate(JsonText& json, std::string_view name, const Estimate& estimate) {
  json.object(name, [&] {
    json.integer("weight", estimate.weight);
    json.number("share", estimate.share);
    json.number("low", estimate.low);
    json.number("high", estimate.high);
  });
}

void write_place(JsonText& json, profile::FrameKind kind, std::string_view name, std::string_view file,
                 int32_t line, std::string_view module) {
  json.text("kind", kind_key(kind));
  json.text("name", name);
  json.text("file", file);
  json.integer("line", line);
  json.text("module", module);
}

void write_missing_names(JsonText& json, const std::vector<profile::Module>& modules) {
  json.objects("missing_names", modules, [&](const profile::Module& module) {
    json.text("module", module.path);
    json.text("build_id", module.build_id);
    json.truth("functions", module.missing->functions);
    json.truth("lines", module.missing->lines);
    json.text("why", module.missing->why);
    json.text("advice", module.missing->advice);
  });
}

void write_quality(JsonText& json, std::string_view name, const view::QualitySummary& quality) {
  // An unknown rate: none was requested, or the recording is older than the count.
  const auto rate = [&](std::string_view key, double hz) {
    json.number(key, hz > 0 ? hz : std::numeric_limits<double>::quiet_NaN());
  };
  json.object(name, [&] {
    rate("rate_asked_hz", quality.asked_rate);
    rate("rate_reached_hz", quality.achieved_rate);
    json.integer("elapsed_ns", quality.elapsed);
    json.integer("samples", quality.samples);
    json.integer("missed", quality.missed);
    json.integer("retried", quality.retried);
    json.integer("cut", quality.cut);
    json.integer("detached", quality.detached);
    json.integer("unproved", quality.unproved);
    json.integer("lost", quality.lost);
    json.integer("rejected", quality.rejected);
    json.object("rejected_by_reason", [&] {
      for (const view::RejectReason& reason : quality.reasons) json.integer(reason.name, reason.count);
    });
    json.object("native", [&] {
      json.integer("looks", quality.native);
      json.integer("whole", quality.native_whole);
      json.integer("with_a_gap", quality.native_restarted);
      json.integer("cut", quality.native_cut);
      json.integer("unmerged", quality.native_unmerged);
      json.integer("threads_without_event", quality.native_without_event);
    });
    json.integer("kernel_threads", quality.kernel_threads);
    json.texts("modes", quality.modes);
    json.integer("taken_from_target_ns", quality.target_time);
    json.integer("recorder_cpu_ns", quality.recorder_time);
  });
}

std::string_view kind_key(profile::FrameKind kind) {
  constexpr std::string_view kKinds[] = {"python", "native", "kernel", "marker"};
  return kKinds[static_cast<size_t>(kind)];
}

std::string_view weight_key(view::Weight weight) {
  switch (weight) {
    case view::Weight::wall:
      return "wall";
    case view::Weight::cpu:
      return "cpu";
    case view::Weight::samples:
      return "samples";
    case view::Weight::count:
    case view::Weight::bytes:
      return "event";
  }
  return "";
}

std::string report_json(const Report& report) {
  return JsonText::document([&](JsonText& json) {
    write_head(json, report);
    write_findings(json, report.findings);
    write_functions(json, "functions", report.functions);
    if (!report.native_functions.empty()) write_functions(json, "native_functions", report.native_functions);
    write_functions(json, "functions_by_total", report.totals);
    write_functions(json, "functions_on_all_stacks", report.common);
    write_lines(json, report.lines);
    write_recordings(json, report.recordings);
    write_processes(json, report.processes);
    write_not_examined(json, report.not_examined);
    if (!report.programs.empty()) write_programs(json, report.programs);
    write_threads(json, report.threads);
    write_loops(json, report.loops);
    write_awaits(json, report.awaits);
    write_signals(json, report.signals);
    write_endpoints(json, report);
    write_requests(json, report);
    write_traces(json, report);
    write_waits(json, report.waits);
    write_gil_waits(json, report.gil_waits);
    write_ended_waits(json, report.ended_waits);
    json.truth("waits_exact", report.waits_exact);
    write_missing_names(json, report.missing_names);
    json.text("unfinished", report.unfinished);
    json.object("lacking", [&] {
      json.integer("let_go_ns", report.lacking.let_go);
      json.integer("between_ns", report.lacking.between);
    });
    json.text("not_recorded", report.not_recorded);
    json.object("quality", [&] {
      json.text("line", report.quality);
      json.text("warning", report.warning);
      write_quality(json, "numbers", report.measured);
    });
  });
}

}  // namespace phlox::report
