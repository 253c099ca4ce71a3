#include "phlox/report/endpoint_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "phlox/profile/wait_target.h"
#include "phlox/profile/web_routes.h"
#include "phlox/report/await_error.h"
#include "phlox/report/await_groups.h"
#include "phlox/report/endpoint_parts.h"
#include "phlox/report/estimate.h"
#include "phlox/report/finding_limits.h"
#include "phlox/report/json_rows.h"
#include "phlox/report/sample_crossings.h"
#include "phlox/view/await_time.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/system_calls.h"

namespace phlox::report {
namespace {

using profile::Profile;
using view::Endpoints;
using view::WaitClass;

// One place for each endpoint by number, [0] for none, and a last one for stacks that were not read.
struct Sum {
  int64_t weight = 0, cpu = 0;
  Nanoseconds gil = 0, no_cpu = 0, waiting = 0, await = 0, ready = 0;
  double tasks = 0;
  ChangeSum changes;
  uint64_t samples = 0;
  using Wait =
      std::tuple<WaitClass, int16_t, uint32_t>;  // with the system call, and a group of WaitTargetGroups
  std::map<Wait, Nanoseconds> waits;
  std::map<std::pair<std::string, std::string>, Nanoseconds> awaits;  // by kind and class
  EndpointPartSums parts;
};

class Adding {
 public:
  Adding(const Profile& profile, const ReportOptions& options)
      : profile_(profile),
        options_(options),
        endpoints_(profile, options.tasks),
        wait_targets_(profile),
        sums_(endpoints_.size() + 2),
        chosen_(sums_.size(), true) {
    if (options.choices.endpoint_regex)
      chosen_ = view::chosen_endpoints(profile, endpoints_, *options.choices.endpoint_regex);
  }

  std::vector<EndpointRow> rows() {
    const auto filter = view::SampleFilter::make_judging(profile_, options_.choices);
    if (!filter || endpoints_.size() == 0) return {};
    add_samples(*filter);
    if (options_.tasks != nullptr) add_tasks(*options_.tasks);
    find_errors(*filter);
    std::vector<EndpointRow> rows;
    for (uint32_t number = 1; number <= endpoints_.size(); ++number) {
      EndpointRow one = row(number);
      if (one.samples > 0 || one.await > 0) rows.push_back(std::move(one));
    }
    if (rows.empty()) return rows;
    // Await time is wall time, of tasks.
    const auto rank = [&](const EndpointRow& row) {
      return row.total.weight + (options_.choices.weight == view::Weight::wall ? row.await : 0);
    };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const EndpointRow& a, const EndpointRow& b) { return rank(a) > rank(b); });
    for (const uint32_t number : {Endpoints::kNone, Endpoints::kNotRead}) {
      EndpointRow one = row(number);
      if (one.samples > 0 || one.await > 0) rows.push_back(std::move(one));
    }
    return rows;
  }

 private:
  size_t place(uint32_t number) const { return number == Endpoints::kNotRead ? sums_.size() - 1 : number; }

  void add_samples(const view::SampleFilter& filter) {
    view::WaitClasses classes(profile_);
    for (const profile::Sample& sample : profile_.samples()) {
      const auto part = filter.part_of_everything(sample);
      if (!part.passes) continue;
      Sum& sum = sums_[place(endpoints_.of(sample))];
      if (view::is_shown(part.doing, options_.choices.show)) {
        sum.weight += part.weight;
        analysis_.total += part.weight;
        begin_ = std::min(begin_, part.start);
        last_ = std::max(last_, part.start);
      }
      sum.cpu += part.cpu;
      all_cpu_ += part.cpu;
      sum.samples += static_cast<uint64_t>(part.samples);
      const WaitClass waits =
          part.doing == view::Doing::waiting_for_work ? WaitClass::none : classes.of(sample);
      sum.parts.add(profile_, endpoints_.place(sample.stack), sample, part.cpu, waits, part.wall);
      if (waits == WaitClass::none) continue;
      if (waits == WaitClass::gil) {
        sum.gil += part.wall;
      } else if (waits == WaitClass::cpu) {
        sum.no_cpu += part.wall;
      } else {
        sum.waiting += part.wall;
        sum.waits[{waits, sample.system_call, wait_targets_.of(sample.wait_target)}] += part.wall;
      }
    }
  }

  void add_tasks(const profile::TaskRows& tasks) {
    std::map<profile::ProcessId, Nanoseconds> spans;
    for (const profile::TaskCensus& census : tasks.censuses) spans[census.process] += census.span;
    const CensusError error = census_error(profile_, tasks);
    await_error_is_known_ = error.is_known;
    for (const profile::TaskTime& time : tasks.times) {
      if (!time.loop || time.state == profile::TaskState::running) continue;
      const size_t at = place(endpoints_.of(time.stack));
      if (!chosen_[at]) continue;
      Sum& sum = sums_[at];
      if (time.state == profile::TaskState::ready) {
        sum.ready += time.time;
        continue;
      }
      sum.await += time.time;
      sum.changes.add(ChangeSum::bins_of(tasks, time, error));
      sum.awaits[{time.kind, time.awaited}] += time.time;
      const Nanoseconds span = spans[tasks.loops[time.loop.value - 1].process];
      if (span > 0) sum.tasks += double(time.time) / double(span);
    }
  }

  // As for functions (analysis.cpp): one node for each endpoint.
  void find_errors(const view::SampleFilter& filter) {
    const auto nodes = static_cast<uint32_t>(sums_.size() + 1);
    Tree tree;
    Items items;
    tree.parent.assign(nodes, 0);
    tree.line.assign(nodes, 0);
    for (uint32_t node = 0; node < nodes; ++node) tree.frame.push_back(node);
    tree.function = tree.owner = items.function = tree.frame;
    items.line = tree.line;
    items.functions = nodes - 1;
    std::vector<uint32_t> node_of(profile_.stacks().size() + 1);
    for (uint32_t i = 0; i < node_of.size(); ++i)
      node_of[i] = static_cast<uint32_t>(place(endpoints_.of(profile::StackId(i)))) + 1;
    Crossings crossings = crossings_of(profile_, filter, node_of);
    analysis_.step = crossings.step();
    const auto in_time = crossings.in_time();
    variances_ = sampling_variances(tree, items, in_time, crossings.interval()).functions.total;
  }

  EndpointRow row(uint32_t number) const {
    const Sum& sum = sums_[place(number)];
    EndpointRow row;
    name(row, number);
    row.total = estimate_of(share(sum, variances_[place(number) + 1]), analysis_);
    row.cpu = sum.cpu;
    if (row.kind == EndpointKind::endpoint) row.parts = sum.parts.rows(profile_);
    row.cpu_share = time_share(sum.cpu, all_cpu_);
    std::tie(row.gil, row.no_cpu, row.waiting, row.await) =
        std::tie(sum.gil, sum.no_cpu, sum.waiting, sum.await);
    std::tie(row.ready, row.tasks, row.samples) = std::tie(sum.ready, sum.tasks, sum.samples);
    if (sum.await > 0 && await_error_is_known_) {
      const auto half = std::llround(quantile(kMissing, 0) * std::sqrt(sum.changes.variance()));
      row.await_low = std::max<Nanoseconds>(0, sum.await - half);
      row.await_high = sum.await + half;
    }
    const auto longer = [](const auto& a, const auto& b) { return a.second < b.second; };
    if (const auto most = std::max_element(sum.waits.begin(), sum.waits.end(), longer);
        most != sum.waits.end()) {
      const auto& [waits, call, group] = most->first;
      row.waits_for = view::wait_words(waits, view::system_call_name(call, view::machine_of(profile_)),
                                       group == 0 ? "" : wait_targets_[group].words);
      row.waits_for_time = most->second;
    }
    if (const auto most = std::max_element(sum.awaits.begin(), sum.awaits.end(), longer);
        most != sum.awaits.end()) {
      row.awaits_for = view::awaited_by_task_words(most->first.first, most->first.second);
      row.awaits_for_time = most->second;
    }
    return row;
  }

  // Formats without times do not show which samples are neighbours.
  Share share(const Sum& sum, double variance) const {
    const double part = time_share(sum.weight, analysis_.total);
    const bool timed = last_ > begin_ || profile_.meta().contains("start_monotonic_ns");
    return {sum.weight, part, timed ? variance : analysis_.step * double(sum.weight) * (1 - part)};
  }

  void name(EndpointRow& row, uint32_t number) const {
    if (number == Endpoints::kNone || number == Endpoints::kNotRead) {
      row.kind = number == Endpoints::kNone ? EndpointKind::none : EndpointKind::not_read;
      row.name = row.full = view::endpoint_label(profile_, endpoints_, number);
      return;
    }
    const view::Endpoint& endpoint = endpoints_[number];
    const auto label = view::function_label(profile_, endpoint.frame);
    std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
    row.full = label.whole_name();
    row.routes = view::endpoint_routes(profile_, endpoints_, number);
    row.framework = endpoint.framework;
    row.certain = endpoint.certain;
  }

  const Profile& profile_;
  const ReportOptions& options_;
  Endpoints endpoints_;
  profile::WaitTargetGroups wait_targets_;
  std::vector<Sum> sums_;
  std::vector<bool> chosen_;
  int64_t all_cpu_ = 0;
  bool await_error_is_known_ = false;
  Nanoseconds begin_ = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds last_ = std::numeric_limits<Nanoseconds>::min();
  Analysis analysis_;  // only what estimate_of() needs
  std::vector<double> variances_;
};

std::string tasks_words(double tasks) {
  return tasks >= 1000 ? count_words(static_cast<uint64_t>(tasks + 0.5)) : fmt::format("{:.2f}", tasks);
}

std::string_view kind_of(EndpointKind kind) {
  return kind == EndpointKind::endpoint ? "endpoint" : kind == EndpointKind::none ? "none" : "not_read";
}

std::string note_of(const Report& report) {
  if (report.endpoints.empty())
    return "None. No stack of the recording has a function that a known web framework or task queue calls.";
  std::string note =
      "The time in the function that the framework calls for a request, and in everything that it calls. "
      "Middlewares, parsing, responses and the server are not part of it.";
  const bool all_certain = std::all_of(report.endpoints.begin(), report.endpoints.end(),
                                       [](const EndpointRow& row) { return row.certain; });
  if (!all_certain)
    note +=
        " \"likely\": the framework calls this function, but it may be a middleware, a decorator or a "
        "dependency instead of an endpoint.";
  return note;
}

bool any_routes(const Report& report) {
  return std::any_of(report.endpoints.begin(), report.endpoints.end(),
                     [](const EndpointRow& row) { return !row.routes.empty(); });
}

bool any_awaits(const Report& report) {
  return std::any_of(report.endpoints.begin(), report.endpoints.end(),
                     [](const EndpointRow& row) { return row.await > 0; });
}

// "13.1 s to 15.8 s"; "-": not known.
std::string await_interval_words(const EndpointRow& row) {
  if (row.await_high == 0) return "-";
  return fmt::format("{} to {}", row.await_low > 0 ? time_words(row.await_low) : "0",
                     time_words(row.await_high));
}

std::string words_or_dash(Nanoseconds time) {
  return time > 0 ? time_words(time) : "-";
}

// Those with the most CPU time first: "FastAPI", "Celery and FastAPI", "Celery, FastAPI and Flask".
std::string frameworks_words(const std::vector<EndpointRow>& rows) {
  std::map<std::string, Nanoseconds> cpu;
  for (const EndpointRow& row : rows) {
    if (row.kind == EndpointKind::endpoint) cpu[row.framework] += row.cpu;
  }
  std::vector<std::pair<std::string, Nanoseconds>> sorted(cpu.begin(), cpu.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string words;
  for (size_t i = 0; i < sorted.size(); ++i)
    words += (i == 0 ? "" : i + 1 == sorted.size() ? " and " : ", ") + sorted[i].first;
  return words;
}

}  // namespace

std::vector<EndpointRow> endpoint_rows(const Profile& profile, const ReportOptions& options) {
  return Adding(profile, options).rows();
}

size_t limit_endpoints(std::vector<EndpointRow>& rows, size_t limit) {
  const auto rest = std::find_if(rows.begin(), rows.end(),
                                 [](const EndpointRow& row) { return row.kind != EndpointKind::endpoint; });
  const auto seen = static_cast<size_t>(rest - rows.begin());
  if (seen > limit) rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(limit), rest);
  return seen;
}

Table endpoint_table(const Report& report) {
  const bool awaits = any_awaits(report), routes = any_routes(report);
  Table table;
  table.title = "Endpoints";
  table.note = note_of(report);
  table.columns = {{"share", true},
                   {"99 %", true},
                   {"weight", true},
                   {"CPU", true},
                   {"of all CPU", true},
                   {"waits for GIL", true},
                   {"waits for CPU", true},
                   {"waits otherwise", true},
                   {"mostly for", false, Fit::name}};
  if (awaits) {
    const Column more[] = {{"awaits", true},
                           {"99 %", true},
                           {"ready to run", true},
                           {"tasks at a time", true},
                           {"mostly for", false, Fit::name}};
    table.columns.insert(table.columns.end(), std::begin(more), std::end(more));
  }
  if (routes) table.columns.push_back({"route", false, Fit::name});
  const Column last[] = {{"endpoint", false, Fit::name}, {"where", false, Fit::place}, {"framework"}};
  table.columns.insert(table.columns.end(), std::begin(last), std::end(last));
  size_t endpoints = 0;
  for (const EndpointRow& row : report.endpoints) {
    endpoints += row.kind == EndpointKind::endpoint;
    std::vector<std::string> cells = {share_words(row.total.share),
                                      interval_words(row.total),
                                      weight_words(row.total.weight, report.weight),
                                      words_or_dash(row.cpu),
                                      share_words(row.cpu_share),
                                      words_or_dash(row.gil),
                                      words_or_dash(row.no_cpu),
                                      words_or_dash(row.waiting),
                                      plain(row.waits_for)};
    if (awaits) {
      const std::string more[] = {words_or_dash(row.await), await_interval_words(row),
                                  words_or_dash(row.ready), row.await > 0 ? tasks_words(row.tasks) : "-",
                                  plain(row.awaits_for)};
      cells.insert(cells.end(), std::begin(more), std::end(more));
    }
    if (routes) cells.push_back(plain(profile::routes_words(row.routes)));
    cells.push_back(plain(row.name));
    cells.push_back(row.file.empty() ? "" : location_words(row.file, row.line));
    cells.push_back(row.framework + (row.certain ? "" : ", likely"));
    table.rows.push_back(std::move(cells));
  }
  table.left_out = report.endpoints_seen - endpoints;
  return table;
}

void write_endpoints(JsonText& json, const Report& report) {
  json.objects("endpoints", report.endpoints, [&](const EndpointRow& row) {
    json.text("kind", kind_of(row.kind));
    json.text("name", row.full);
    json.text("file", row.file);
    json.integer("line", row.line);
    json.texts("routes", row.routes);
    json.text("framework", row.framework);
    json.truth("certain", row.certain);
    write_estimate(json, "total", row.total);
    json.integer("cpu_ns", row.cpu);
    json.number("cpu_share", row.cpu_share);
    json.integer("gil_waits_ns", row.gil);
    json.integer("cpu_waits_ns", row.no_cpu);
    json.integer("waiting_ns", row.waiting);
    json.text("waits_for", row.waits_for);
    json.integer("waits_for_ns", row.waits_for_time);
    json.integer("await_ns", row.await);
    if (row.await_high > 0) {
      json.integer("await_low_ns", row.await_low);
      json.integer("await_high_ns", row.await_high);
    }
    json.integer("ready_ns", row.ready);
    json.number("tasks_at_a_time", row.tasks);
    json.text("awaits_for", row.awaits_for);
    json.integer("awaits_for_ns", row.awaits_for_time);
    json.count("samples", row.samples);
    write_endpoint_parts(json, row);
  });
}

std::optional<Finding> endpoint_finding(const Report& report) {
  Nanoseconds cpu = 0;
  double share = 0, not_read = 0;
  size_t endpoints = 0;
  const EndpointRow *busiest = nullptr, *waits = nullptr;
  for (const EndpointRow& row : report.endpoints) {
    if (row.kind == EndpointKind::not_read) not_read = row.cpu_share;
    if (row.kind != EndpointKind::endpoint) continue;
    ++endpoints;
    cpu += row.cpu;
    share += row.cpu_share;
    if (busiest == nullptr || row.cpu > busiest->cpu) busiest = &row;
    if (waits == nullptr || row.waited() > waits->waited()) waits = &row;
  }
  if (busiest == nullptr) return {};
  const bool waits_long = time_share(waits->waited(), report.elapsed) >= kWorthSaying;
  if (share < kWorthSaying && !waits_long) return {};
  const auto place = [](const EndpointRow& row) {
    const std::string routes = plain(profile::routes_words(row.routes));
    return fmt::format("{}{}{} ({})", routes, routes.empty() ? "" : " ", plain(row.name),
                       location_words(row.file, row.line));
  };
  const bool is_least = not_read >= kWorthSaying;
  std::string text = fmt::format("{}{} of the CPU time is spent in requests to {} endpoint{} of {}",
                                 is_least ? "at least " : "", share_words(share), endpoints,
                                 endpoints == 1 ? "" : "s", frameworks_words(report.endpoints));
  if (is_least) text += fmt::format(" (of {} it is not known)", share_words(not_read));
  if (busiest->cpu > 0) text += fmt::format(", {} in {}", share_words(busiest->cpu_share), place(*busiest));
  if (waits_long)
    text +=
        fmt::format("; requests to {} waited longest, {} in all", place(*waits), time_words(waits->waited()));
  text += " (--by endpoint lists them all)";
  Numbers numbers = {{"cpu_share", share},
                     {"cpu_ns", double(cpu)},
                     {"endpoints", double(endpoints)},
                     {"busiest_cpu_share", busiest->cpu_share},
                     {"waited_ns", double(waits->waited())}};
  Names names = {{"busiest", busiest->full},
                 {"file", busiest->file},
                 {"waits_longest", waits->full},
                 {"framework", busiest->framework}};
  const double weight = std::min(1.0, time_share(cpu, std::max<Nanoseconds>(report.elapsed, 1)));
  return Finding{"endpoints", weight, std::move(text), std::move(numbers), std::move(names)};
}

}  // namespace phlox::report
