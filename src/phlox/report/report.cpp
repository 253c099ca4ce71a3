#include "phlox/report/report.h"

#include <fmt/format.h>
#include <tsl/robin_map.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <set>
#include <tuple>

#include "phlox/base/spread.h"
#include "phlox/base/text.h"
#include "phlox/profile/counters.h"
#include "phlox/profile/kept.h"
#include "phlox/profile/unfinished.h"
#include "phlox/report/analysis.h"
#include "phlox/report/await_rows.h"
#include "phlox/report/code_beneath.h"
#include "phlox/report/comparison.h"
#include "phlox/report/endpoint_rows.h"
#include "phlox/report/estimate.h"
#include "phlox/report/findings.h"
#include "phlox/report/gil_rows.h"
#include "phlox/report/loop_rows.h"
#include "phlox/report/request_rows.h"
#include "phlox/report/signal_rows.h"
#include "phlox/report/waits.h"
#include "phlox/view/gil_holders.h"
#include "phlox/view/native_frames.h"
#include "phlox/view/program_name.h"
#include "phlox/view/quality.h"
#include "phlox/view/shown_event.h"
#include "phlox/view/stack_places.h"
#include "phlox/view/whole_waits.h"

namespace phlox::report {
namespace {

using profile::Profile;

// No more files than this are annotated, however many a recording names.
constexpr size_t kMaximumFiles = 200;
constexpr size_t kMostSignals = 1000;
constexpr size_t kMostTraces = 10;

std::string short_title_of(const Profile& profile) {
  if (profile.processes().empty()) return "(empty recording)";
  constexpr size_t kLongestCommand = 160;
  profile::Process first = profile.processes().front();
  first.command_line = shortened(first.command_line, kLongestCommand);
  std::string title = view::process_label(first);
  if (profile.processes().size() > 1)
    title += " and " + std::to_string(profile.processes().size() - 1) + " more";
  return title;
}

// Empty for recordings of older versions and of other tools.
std::string meta_of(const Profile& profile, std::string_view name, const profile::Process& process) {
  const auto found = profile.meta().find(fmt::format("{}.{}", name, process.pid));
  return found == profile.meta().end() ? std::string() : found->second;
}

// "In container 0123456789ab, where 4711 is process 1", for the first few; one process per container.
std::string containers_of(const Profile& profile) {
  constexpr size_t kMost = 4;
  constexpr size_t kLongId = 64;
  std::set<std::string> seen;  // "": its own PID namespace, and no container is known
  std::string words;
  for (const profile::Process& process : profile.processes()) {
    const bool counts_itself = process.namespace_pid != 0 && process.namespace_pid != process.pid;
    const std::string container = meta_of(profile, "container", process);
    if ((container.empty() && !counts_itself) || !seen.insert(container).second) continue;
    if (seen.size() > kMost) continue;
    // Shortened as docker ps does it; names are shown whole.
    const std::string id = container.substr(0, container.size() == kLongId ? 12 : kLongId);
    words += fmt::format(
        "{}{}{}", words.empty() ? "In " : "; in ",
        id.empty() ? "a PID namespace of its own" : "container " + id,
        counts_itself ? fmt::format(", where {} is process {}", process.pid, process.namespace_pid) : "");
  }
  if (seen.size() > kMost) words += fmt::format("; and {} more", seen.size() - kMost);
  return words;
}

bool is_python(const Profile& profile, const Entry& entry) {
  return profile.frame(entry.frame).kind == profile::FrameKind::python;
}

bool is_only_beneath_python(const Profile& profile, const Entry& entry) {
  const profile::FrameKind kind = profile.frame(entry.frame).kind;
  return (kind == profile::FrameKind::native || kind == profile::FrameKind::kernel) && entry.alone_total == 0;
}

// The time that is charged to this place.
const Share& place_share(const Profile& profile, const Entry& entry) {
  return is_python(profile, entry) ? entry.self : entry.alone;
}

NativeBeneath native_of(const Profile& profile, const Entry& entry) {
  if (!entry.code.library.empty()) return {{}, {}, entry.code.library, entry.code.share};
  if (!entry.native || entry.self.weight <= 0) return {};
  NativeBeneath native = native_beneath(profile, entry.native);
  native.share = double(entry.native_weight) / double(entry.self.weight);
  return native;
}

FunctionRow function_row(const Profile& profile, const Analysis& analysis, const Entry& entry,
                         const Share& self) {
  const auto label = view::function_label(profile, entry.frame);
  return {label.kind,
          label.name,
          label.whole_name(),
          label.file,
          label.line,
          label.module,
          estimate_of(self, analysis),
          estimate_of(entry.total, analysis),
          entry.samples,
          native_of(profile, entry)};
}

template <class Weight>
std::vector<const Entry*> heaviest(const std::vector<Entry>& entries, size_t limit, Weight&& weight) {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries) {
    if (weight(entry) > 0) order.push_back(&entry);
  }
  const size_t count = std::min(limit, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](const Entry* a, const Entry* b) {
                      return weight(*a) != weight(*b) ? weight(*a) > weight(*b)
                                                      : a->frame.value < b->frame.value;
                    });
  order.resize(count);
  return order;
}

void add_states(StateTimes& times, const profile::Sample& sample, Nanoseconds wall, view::Doing doing) {
  times.for_work += doing == view::Doing::waiting_for_work ? wall : 0;
  times.for_others += doing == view::Doing::waiting_for_others ? wall : 0;
  times.not_known += doing == view::Doing::waiting_unknown ? wall : 0;
  switch (sample.cpu_state) {
    case profile::CpuState::running:
      times.running += wall;
      break;
    case profile::CpuState::runnable:
      times.runnable += wall;
      break;
    case profile::CpuState::blocked:
      times.blocked += wall;
      if (sample.gil_state != profile::GilState::waits) times.idle += wall;
      break;
    case profile::CpuState::unknown:
      times.unknown += wall;
      break;
  }
  if (sample.gil_state == profile::GilState::holds) times.gil_holds += wall;
  if (sample.gil_state == profile::GilState::waits) times.gil_waits += wall;
  if (sample.collecting && sample.cpu_state != profile::CpuState::runnable) times.collecting += wall;
  if (sample.quality == profile::Quality::rejected) times.rejected += wall;
}

// Threads that work come first: of three hundred threads the table shows fifteen.
std::tuple<Nanoseconds, Nanoseconds, int64_t> busy_rank(const ThreadRow& row) {
  return {row.cpu, row.states.running + row.states.runnable + row.states.gil_waits, row.weight};
}

// By thread (index id - 1): the heaviest function, with its weight. Keys: function << 32 | thread.
std::vector<std::pair<int64_t, uint32_t>> heaviest_of_each(
    const tsl::robin_map<uint64_t, int64_t, Spread>& selves, size_t threads) {
  std::vector<std::pair<int64_t, uint32_t>> busiest(threads, {0, 0});
  for (const auto& [key, weight] : selves) {
    const auto function = static_cast<uint32_t>(key >> 32);
    const auto thread = static_cast<uint32_t>(key);
    auto& best = busiest[thread - 1];
    if (weight > best.first || (weight == best.first && function < best.second)) best = {weight, function};
  }
  return busiest;
}

std::vector<ThreadRow> thread_rows(const Profile& profile, const view::SampleFilter& filter,
                                   const Analysis& analysis, const view::Choices& choices) {
  std::vector<ThreadRow> rows(profile.threads().size());
  const std::vector<view::StackPlace> places = view::stack_places(profile);
  // By thread and function: the shown weight, and the rest. Ids are small and in the low bits of both halves,
  // so the hash mixes them.
  tsl::robin_map<uint64_t, int64_t, Spread> selves, others, used;
  for (const profile::Sample& sample : profile.samples()) {
    const auto part = filter.part_of_everything(sample);
    if (!part.passes) continue;
    ThreadRow& row = rows[sample.thread.value - 1];
    row.weight += part.weight;
    row.wall += part.wall;
    row.cpu += part.cpu;
    row.samples += static_cast<uint64_t>(part.samples);
    if (part.cpu > 0) row.on_cpu += static_cast<uint64_t>(part.samples);
    add_states(row.states, sample, part.wall, part.doing);
    if (!sample.stack || sample.stack.value > profile.stacks().size()) continue;
    const uint32_t frame = places[sample.stack.value].frame.value;
    const uint32_t function = frame < analysis.function_of.size() ? analysis.function_of[frame] : 0;
    if (function == 0) continue;
    auto& sums = view::is_shown(part.doing, choices.show) ? selves : others;
    const uint64_t key = uint64_t{function} << 32 | sample.thread.value;
    sums[key] += part.weight;
    if (part.cpu > 0) used[key] += part.cpu;
  }
  std::vector<std::pair<int64_t, uint32_t>> busiest = heaviest_of_each(selves, rows.size());
  // For time, the function that used the CPU: one that slept is never the busiest. If no CPU time was
  // measured, or something else was counted, the one with the most weight.
  const bool by_cpu = analysis.cpu > 0 && !view::is_of_event(choices.weight);
  if (by_cpu) busiest = heaviest_of_each(used, rows.size());
  // A thread of which nothing is shown still has a function.
  const auto elsewhere = heaviest_of_each(others, rows.size());
  for (size_t i = 0; i < rows.size() && !by_cpu; ++i) {
    if (busiest[i].second == 0) busiest[i] = elsewhere[i];
  }
  std::vector<ThreadRow> seen;
  for (size_t i = 0; i < rows.size(); ++i) {
    ThreadRow& row = rows[i];
    if (row.samples == 0) continue;
    const profile::Thread& thread = profile.threads()[i];
    row.id = profile::ThreadId(static_cast<uint32_t>(i + 1));
    row.name = view::thread_label(thread);
    row.tid = thread.tid;
    if (thread.process && thread.process.value <= profile.processes().size())
      row.pid = profile.process(thread.process).pid;
    if (busiest[i].second != 0) {
      row.busiest = view::function_label(profile, analysis.functions[busiest[i].second - 1].frame).name;
    }
    seen.push_back(std::move(row));
  }
  std::stable_sort(seen.begin(), seen.end(),
                   [](const ThreadRow& a, const ThreadRow& b) { return busy_rank(a) > busy_rank(b); });
  return seen;
}

// `threads`: all of them, the busiest first.
std::vector<ProcessRow> process_rows(const Profile& profile, const std::vector<ThreadRow>& threads) {
  const Nanoseconds until = profile::seen_until(profile);
  const auto gaps = profile::gaps(profile);
  std::map<uint32_t, ProcessRow> rows;
  for (const ThreadRow& thread : threads) {
    const profile::ProcessId id = profile.thread(thread.id).process;
    if (!id || id.value > profile.processes().size()) continue;
    ProcessRow& row = rows[id.value];
    row.cpu += thread.cpu;
    row.samples += thread.samples;
    ++row.threads;
    if (row.busiest.empty()) row.busiest = thread.busiest;
  }
  std::vector<ProcessRow> seen;
  for (auto& [id, row] : rows) {
    const profile::Process& process = profile.process(profile::ProcessId(id));
    row.id = profile::ProcessId(id);
    row.pid = process.pid;
    row.namespace_pid = process.namespace_pid;
    row.container = meta_of(profile, "container", process);
    row.service = view::own_service(profile, row.id);
    row.control_group = meta_of(profile, "control_group", process);
    if (process.parent && process.parent->value <= profile.processes().size())
      row.parent = profile.process(*process.parent).pid;
    row.command_line = process.command();
    const Nanoseconds end = process.end != 0 ? process.end : until;
    row.recorded =
        std::max<Nanoseconds>(0, end - process.start - profile::gap_within(gaps, process.start, end));
    row.how_ended = process.how_ended;
    seen.push_back(std::move(row));
  }
  std::stable_sort(seen.begin(), seen.end(),
                   [](const ProcessRow& a, const ProcessRow& b) { return a.cpu > b.cpu; });
  return seen;
}

// `processes`: all of them, the busiest first.
std::vector<ProgramRow> program_rows(const Profile& profile, const std::vector<ProcessRow>& processes) {
  std::map<std::string, size_t> known;
  std::vector<ProgramRow> rows;
  for (const ProcessRow& process : processes) {
    const std::string name = view::program_name(profile.process(process.id));
    const auto [at, fresh] = known.try_emplace(name, rows.size());
    if (fresh) {
      rows.emplace_back();
      rows.back().name = name;
      rows.back().busiest = process.busiest;
    }
    ProgramRow& row = rows[at->second];
    ++row.processes;
    row.recorded += process.recorded;
    row.cpu += process.cpu;
    row.samples += process.samples;
    row.threads += process.threads;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProgramRow& a, const ProgramRow& b) { return a.cpu > b.cpu; });
  return rows;
}

std::vector<FileLines> file_lines(const Profile& profile, const Analysis& analysis) {
  struct Sums {
    int64_t self = 0;
    std::map<int32_t, LineWeight> lines;
  };
  std::map<std::string, Sums> files;
  for (const Entry& entry : analysis.lines) {
    const profile::Frame& frame = profile.frame(entry.frame);
    if (frame.file.empty()) continue;
    Sums& sums = files[frame.file];
    sums.self += entry.self.weight;
    LineWeight& line = sums.lines[entry.line];
    line.self += entry.self.weight;
    // Functions that share a line (a lambda and the function that contains it) may be on one stack: use the
    // larger total.
    line.total = std::max(line.total, entry.total.weight);
  }
  std::vector<FileLines> rows;
  for (auto& [file, sums] : files) rows.push_back({file, sums.self, {sums.lines.begin(), sums.lines.end()}});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const FileLines& a, const FileLines& b) { return a.self > b.self; });
  if (rows.size() > kMaximumFiles) rows.resize(kMaximumFiles);
  return rows;
}

// What the report is about.
void put_head(Report& report, const Profile& profile, const ReportOptions& options) {
  report.title = short_title_of(profile);
  report.recordings = options.recordings;
  report.containers = containers_of(profile);
  report.services = view::service_words(profile);
  report.weight = options.choices.weight;
  report.weight_title = view::weight_title(profile, report.weight);
  report.event = view::shown_event(profile).name;
  report.show = options.choices.show;
  report.left_out = view::waiting_for_work(profile, options.choices);
}

// Functions and lines.
void put_places(Report& report, const Profile& profile, const Analysis& analysis,
                const ReportOptions& options) {
  const auto by_place = [&](const Entry& e) { return place_share(profile, e).weight; };
  for (const Entry& entry : analysis.functions) report.functions_seen += entry.total.weight > 0;
  for (const Entry& entry : analysis.lines) report.lines_seen += by_place(entry) > 0;
  for (const Entry* entry : heaviest(analysis.functions, options.limit, by_place))
    report.functions.push_back(function_row(profile, analysis, *entry, place_share(profile, *entry)));
  for (const Entry* entry : heaviest(analysis.functions, options.limit, [&](const Entry& e) {
         return is_python(profile, e) || e.self.weight == e.alone.weight ? 0 : e.self.weight;
       }))
    report.native_functions.push_back(function_row(profile, analysis, *entry, entry->self));
  const auto by_total = [&](const Entry& e) {
    // The interpreter's own C calls itself in every Python function. For native code below Python, the Python
    // functions show where the time is.
    const bool says_little = e.common != 0 || is_only_beneath_python(profile, e) ||
                             (!options.choices.all_frames && view::is_interpreter(profile.frame(e.frame)));
    return says_little ? 0 : e.total.weight;
  };
  for (const Entry& entry : analysis.functions) report.totals_seen += by_total(entry) > 0;
  for (const Entry* entry : heaviest(analysis.functions, options.limit, by_total))
    report.totals.push_back(function_row(profile, analysis, *entry, entry->self));
  std::map<uint32_t, const Entry*> common;
  for (const Entry& entry : analysis.functions) {
    if (entry.common != 0 && entry.total.weight > 0) common[entry.common] = &entry;
  }
  for (const auto& [rank, entry] : common)
    report.common.push_back(function_row(profile, analysis, *entry, place_share(profile, *entry)));
  for (const Entry* entry : heaviest(analysis.lines, options.limit, by_place)) {
    const auto label = view::line_label(profile, entry->frame);
    report.lines.push_back({label.name, label.whole_name(), label.file, entry->line,
                            estimate_of(place_share(profile, *entry), analysis),
                            estimate_of(entry->total, analysis), entry->samples, native_of(profile, *entry)});
  }
}

void put_quality(Report& report, const Profile& profile) {
  const auto quality = view::summarize_quality(profile);
  report.measured = quality;
  report.unfinished = profile::unfinished_words(profile);
  report.not_recorded = profile::not_recorded_words(profile);
  report.lacking = profile::lacking(profile);
  report.quality = view::quality_line(quality);
  if (const std::string words = profile::lacking_words(report.lacking); !words.empty())
    report.quality += "; " + words;
  report.warning = view::quality_warning(quality);
}

}  // namespace

Estimate estimate_of(const Share& share, const Analysis& analysis) {
  const double reach =
      analysis.total > 0
          ? reach_of(Amount{double(share.weight), share.variance, analysis.step}) / double(analysis.total)
          : 0;
  return {share.weight, share.share, std::max(0.0, share.share - reach), std::min(1.0, share.share + reach)};
}

double least_share(double share, double samples) {
  constexpr double z = 2.576;
  const double spread = std::sqrt(share * (1 - share) / samples + z * z / (4 * samples * samples));
  return (share + z * z / (2 * samples) - z * spread) / (1 + z * z / samples);
}

Nanoseconds elapsed_of(const Profile& profile, const view::SampleFilter& filter) {
  return elapsed_of(profile.samples(), profile, filter);
}

Nanoseconds elapsed_of(const std::vector<profile::Sample>& samples, const Profile& profile,
                       const view::SampleFilter& filter) {
  constexpr auto kLowest = std::numeric_limits<Nanoseconds>::min();
  Nanoseconds begin = std::numeric_limits<Nanoseconds>::max(), last = kLowest, end = kLowest;
  for (const profile::Sample& sample : samples) {
    const auto part = filter.part_of_everything(sample);
    if (!part.passes) continue;
    begin = std::min(begin, part.start);
    last = std::max(last, part.start);
    end = std::max(end, part.start + part.wall);
  }
  // For formats without times: the length that the recording states, if any.
  if (begin >= last && !profile.meta().contains("start_monotonic_ns"))
    return view::summarize_quality(profile).elapsed;
  return end > begin ? end - begin : 0;
}

Result<RecordingRow> recording_row(const std::string& name, const Profile& profile,
                                   const view::Choices& choices) {
  const auto filter = view::SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);
  RecordingRow row;
  row.name = name;
  row.elapsed = elapsed_of(profile, *filter);
  row.processes = profile.processes().size();
  for (const profile::Sample& sample : profile.samples()) {
    const auto part = filter->part(sample);
    if (!part.passes) continue;
    row.wall += part.wall;
    row.cpu += part.cpu;
    row.samples += static_cast<uint64_t>(part.samples);
  }
  return row;
}

Result<Report> make_report(const Profile& profile, const ReportOptions& options) {
  const auto filter = view::SampleFilter::make_judging(profile, options.choices);
  if (!filter) return fail(filter);
  // In parallel to the analysis, which takes longer.
  auto waits = std::async([&] { return find_waits(profile, options.choices, {}, options.limit); });
  auto analysis = analyse(profile, options.choices, Identity::exact);
  if (!analysis) return fail(analysis);
  put_code_beneath(profile, *filter, *analysis);

  Report report;
  put_head(report, profile, options);
  report.total = analysis->total;
  report.samples = analysis->samples;
  report.elapsed = elapsed_of(profile, *filter);
  put_places(report, profile, *analysis, options);
  report.threads = thread_rows(profile, *filter, *analysis, options.choices);
  report.threads_seen = report.threads.size();
  report.processes = process_rows(profile, report.threads);
  report.processes_seen = report.processes.size();
  report.not_examined = profile::descendants(profile);
  if (options.choices.by.program) report.programs = program_rows(profile, report.processes);
  report.programs_seen = report.programs.size();
  report.waits = waits.get();
  // Of one trace, only its own threads are left: which others held the GIL, or worked for the loop, is not
  // known.
  const bool is_trace = options.choices.trace.has_value();
  const auto gil_waiters = is_trace ? std::vector<view::GilWaiter>() : view::gil_waiters(profile, *filter);
  report.gil_waits_seen = gil_waiters.size();
  report.gil_waits = gil_wait_rows(profile, gil_waiters, report.threads, options.limit);
  const profile::WaitTargetGroups wait_targets(profile);
  const auto ended = view::ended_waits(profile, *filter, wait_targets);
  report.ended_waits_seen = ended.size();
  report.ended_waits = find_ended_waits(profile, ended, wait_targets, options.limit);
  if (!is_trace) report.loops = loop_rows(profile, *filter, options.shortest_stall, options.tasks);
  if (options.tasks != nullptr) report.awaits = await_rows(profile, *filter, *options.tasks, options.limit);
  if (!is_trace) report.busy_pools = pool_rows(profile, *filter);
  report.signals = signal_rows(profile, kMostSignals);
  report.by_endpoint = options.choices.by.endpoint;
  report.endpoints = endpoint_rows(profile, options);
  if (options.tasks != nullptr)
    report.requests = view::slow_requests(profile, *options.tasks, options.choices);
  if (report.requests.size() > options.limit) report.requests.resize(options.limit);
  // Each has several lines.
  report.most_requests = (options.limit + 2) / 3;
  report.traces = view::find_traces(profile, *filter, options.tasks, kMostTraces);
  report.waits_exact = view::waits_are_exact(profile);
  report.files = file_lines(profile, *analysis);
  put_quality(report, profile);
  report.missing_names = view::modules_without_names(profile);
  report.findings = find_findings(profile, options.choices, *analysis, report, gil_waiters, options.tasks);
  if (report.threads.size() > options.limit) report.threads.resize(options.limit);
  if (report.processes.size() > options.limit) report.processes.resize(options.limit);
  if (report.programs.size() > options.limit) report.programs.resize(options.limit);
  report.endpoints_seen = limit_endpoints(report.endpoints, options.limit);
  return report;
}

}  // namespace phlox::report
