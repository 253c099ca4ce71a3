#include "phlox/exporters/registry.h"

#include <algorithm>
#include <cctype>

#include "phlox/exporters/callgrind.h"
#include "phlox/exporters/chrome.h"
#include "phlox/exporters/collapsed.h"
#include "phlox/exporters/firefox.h"
#include "phlox/exporters/html.h"
#include "phlox/exporters/otlp.h"
#include "phlox/exporters/perfetto.h"
#include "phlox/exporters/pprof.h"
#include "phlox/exporters/pstats.h"
#include "phlox/exporters/recording_picture.h"
#include "phlox/exporters/span_rows.h"
#include "phlox/exporters/speedscope.h"
#include "phlox/exporters/svg.h"
#include "phlox/view/await_time.h"
#include "phlox/view/quality.h"
#include "phlox/view/shown_event.h"
#include "phlox/view/work.h"

namespace phlox::exporters {
namespace {

std::string title_of(const profile::Profile& profile, const ExportOptions& options) {
  return options.title.empty() ? recording_title(profile) : options.title;
}

Result<void> export_collapsed(const profile::Profile& profile, const view::Choices& choices,
                              const ExportOptions&, std::ostream& out) {
  Result<view::CallTree> tree = view::build_call_tree(profile, choices);
  if (!tree) return fail(tree);
  write_collapsed(*tree, choices.by.line, out);
  return {};
}

Result<void> export_svg(const profile::Profile& profile, const view::Choices& choices,
                        const ExportOptions& options, std::ostream& out) {
  Result<view::CallTree> tree = view::build_whole_call_tree(profile, choices);
  if (!tree) return fail(tree);
  write_flame_svg(make_picture(profile, choices, *std::move(tree), options), out);
  return {};
}

// How reliable the recording is, and what is left out.
std::string facts_in_words(const profile::Profile& profile, const view::Choices& choices) {
  std::string words = view::quality_line(view::summarize_quality(profile));
  const std::string left_out = view::left_out_words(view::waiting_for_work(profile, choices));
  return left_out.empty() ? words : words + "; left out: " + left_out;
}

Result<void> export_pprof(const profile::Profile& profile, const view::Choices& choices, const ExportOptions&,
                          std::ostream& out) {
  view::Choices wanted = choices;
  wanted.by.place = true;
  Result<view::CallTree> tree = view::build_call_tree(profile, wanted);
  if (!tree) return fail(tree);
  PprofFacts facts;
  facts.modules = &profile.modules();
  auto others = other_events(profile, wanted);
  if (!others) return fail(others);
  facts.others = *std::move(others);
  facts.weight = choices.weight;
  facts.event = view::shown_event(profile).name;
  facts.awaits = view::shows_await_time(profile);
  facts.by_line = choices.by.line;
  facts.start = recording_start_time(profile);
  facts.duration = view::summarize_quality(profile).elapsed;
  facts.comment = recording_title(profile) + ": " + facts_in_words(profile, choices);
  return write_pprof(*tree, facts, out);
}

Result<void> export_otlp(const profile::Profile& profile, const view::Choices& choices, const ExportOptions&,
                         std::ostream& out) {
  const auto message = otlp_message(profile, choices, {});
  if (!message) return fail(message);
  out << *message;
  return {};
}

Result<void> export_speedscope(const profile::Profile& profile, const view::Choices& choices,
                               const ExportOptions& options, std::ostream& out) {
  return write_speedscope(profile, choices, title_of(profile, options), out);
}

Result<void> export_firefox(const profile::Profile& profile, const view::Choices& choices,
                            const ExportOptions& options, std::ostream& out) {
  return write_firefox(profile, choices, title_of(profile, options), out);
}

Result<void> export_chrome(const profile::Profile& profile, const view::Choices& choices,
                           const ExportOptions& options, std::ostream& out) {
  return write_chrome(profile, choices, title_of(profile, options), out);
}

Result<void> export_perfetto(const profile::Profile& profile, const view::Choices& choices,
                             const ExportOptions&, std::ostream& out) {
  return write_perfetto(profile, choices, out);
}

Result<void> export_callgrind(const profile::Profile& profile, const view::Choices& choices,
                              const ExportOptions& options, std::ostream& out) {
  view::Choices wanted = choices;
  wanted.by.line = wanted.by.place = true;
  Result<view::CallTree> tree = view::build_call_tree(profile, wanted);
  if (!tree) return fail(tree);
  auto others = other_events(profile, wanted);
  if (!others) return fail(others);
  write_callgrind(profile, *tree,
                  {choices.weight, title_of(profile, options), facts_in_words(profile, choices),
                   view::shown_event(profile).name, *std::move(others), view::shows_await_time(profile)},
                  out);
  return {};
}

Result<void> export_pstats(const profile::Profile& profile, const view::Choices& choices,
                           const ExportOptions&, std::ostream& out) {
  Result<view::CallTree> tree = view::build_call_tree(profile, choices);
  if (!tree) return fail(tree);
  write_pstats(*tree, choices.weight, out);
  return {};
}

Result<void> export_json_lines(const profile::Profile& profile, const view::Choices& choices,
                               const ExportOptions&, std::ostream& out) {
  return write_json_lines(profile, choices, out);
}

Result<void> export_csv(const profile::Profile& profile, const view::Choices& choices, const ExportOptions&,
                        std::ostream& out) {
  return write_csv(profile, choices, out);
}

const Format kFormats[] = {
    {"svg",
     {".svg"},
     "interactive flame graph: one file for any browser, and a picture for image viewers",
     export_svg,
     view::Show::work,
     false,
     Awaits::chosen},
    {"html",
     {".html", ".htm"},
     "the page to keep: timeline, flame graph, tables and filters in one file for any browser",
     write_page,
     view::Show::work,
     false,
     Awaits::page},
    {"collapsed",
     {".txt", ".collapsed", ".folded"},
     "one line a stack for flame graph scripts: root first, ';' between frames, then nanoseconds (or "
     "samples)",
     export_collapsed,
     view::Show::work,
     true,
     Awaits::chosen},
    {"speedscope",
     {".speedscope.json", ".json"},
     "every thread in the order of time, for speedscope.app",
     export_speedscope,
     view::Show::everything,
     true,
     Awaits::chosen},
    {"pprof",
     {".pb.gz", ".pprof"},
     "totals for go tool pprof, Pyroscope, Parca and Grafana",
     export_pprof,
     view::Show::work,
     false,
     Awaits::alongside},
    {"otlp",
     {".otlp"},
     "totals as OpenTelemetry's profiles signal, a resource for each process",
     export_otlp,
     view::Show::everything,
     false,
     Awaits::alongside},
    {"firefox",
     {".firefox.json.gz", ".json.gz"},
     "every thread in the order of time with its CPU use, for profiler.firefox.com",
     export_firefox,
     view::Show::everything,
     false},
    {"perfetto",
     {".pftrace", ".perfetto-trace"},
     "slices and states of every thread on a timeline, for ui.perfetto.dev and its SQL",
     export_perfetto,
     view::Show::everything,
     false},
    {"chrome",
     {".trace.json"},
     "the same as trace events in JSON, for chrome://tracing and many scripts",
     export_chrome,
     view::Show::everything},
    {"callgrind",
     {".callgrind"},
     "costs by line and calls, for KCachegrind, QCachegrind and callgrind_annotate",
     export_callgrind,
     view::Show::work,
     true,
     Awaits::alongside},
    {"pstats",
     {".pstats", ".prof"},
     "as cProfile writes it, for Python's pstats, snakeviz and gprof2dot",
     export_pstats,
     view::Show::work,
     false,
     Awaits::chosen},
    {"jsonl",
     {".jsonl", ".ndjson"},
     "one interval per line as a JSON object, for jq and data frames",
     export_json_lines,
     view::Show::everything},
    {"csv",
     {".csv"},
     "one interval per row, for spreadsheets, databases and Parquet",
     export_csv,
     view::Show::everything},
};

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool ends_with_ignoring_case(std::string_view text, std::string_view end) {
  if (text.size() < end.size()) return false;
  return std::equal(end.begin(), end.end(), text.end() - static_cast<std::ptrdiff_t>(end.size()),
                    [](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

std::span<const Format> formats() {
  return kFormats;
}

const Format* find_format(std::string_view name) {
  auto found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return f.name == name; });
  return found == std::end(kFormats) ? nullptr : found;
}

const Format* find_format_for_file(std::string_view path) {
  const Format* best = nullptr;
  size_t longest = 0;  // ".trace.json" is not ".json"
  for (const Format& format : kFormats) {
    for (const std::string_view extension : format.extensions) {
      if (extension.size() <= longest || !ends_with_ignoring_case(path, extension)) continue;
      longest = extension.size();
      best = &format;
    }
  }
  return best;
}

std::string format_names() {
  std::string names;
  for (const Format& format : kFormats) {
    if (!names.empty()) names += ", ";
    names += format.name;
  }
  return names;
}

}  // namespace phlox::exporters
