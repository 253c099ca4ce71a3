#include "phlox/exporters/process_series.h"

#include <array>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "phlox/base/utf8.h"
#include "phlox/exporters/event_trees.h"
#include "phlox/exporters/pprof.h"
#include "phlox/exporters/recording_picture.h"
#include "phlox/exporters/time_kinds.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/part.h"
#include "phlox/view/quality.h"
#include "phlox/view/resource.h"

namespace phlox::exporters {
namespace {

// Attributes that make a series. Others would make too many, or only repeat these.
struct SeriesLabel {
  std::string_view attribute, label;
};
constexpr std::array<SeriesLabel, 9> kSeriesLabelNames = {{
    {"service.name", "service_name"},
    {"service.namespace", "service_namespace"},
    {"service.version", "service_version"},
    {"deployment.environment.name", "deployment_environment"},
    {"host.name", "hostname"},
    {"process.pid", "pid"},
    {"process.runtime.version", "python_version"},
    {"container.id", "container_id"},
    {"k8s.pod.uid", "k8s_pod_uid"},
}};

// As the kinds of times_of().
view::Choices choices_of_kind(view::Choices choices, size_t kind) {
  constexpr std::array<uint8_t, kTimeKinds.size()> kStates = {
      0, 0, static_cast<uint8_t>(view::StateChoice::blocked),
      static_cast<uint8_t>(view::StateChoice::gil_waits), static_cast<uint8_t>(view::StateChoice::runnable)};
  choices.states = kStates[kind];
  choices.weight = kind == 0 ? view::Weight::cpu : view::Weight::wall;
  choices.by.place = true;
  return choices;
}

Result<std::string> pprof_of_process(const profile::Profile& profile, const view::Choices& choices,
                                     double rate_hz, Unnamed unnamed) {
  PprofFacts facts;
  if (unnamed == Unnamed::address) facts.leaves_addresses_of = &profile;
  facts.modules = &profile.modules();
  facts.weight = view::Weight::cpu;
  facts.by_line = choices.by.line;
  facts.endpoint_labels = true;
  facts.start = recording_start_time(profile);
  facts.duration = view::summarize_quality(profile).elapsed;
  if (rate_hz > 0) facts.period = static_cast<int64_t>(static_cast<double>(kSecond) / rate_hz);
  std::optional<view::CallTree> first;
  for (size_t kind = 0; kind < kTimeKinds.size(); ++kind) {
    auto tree = view::build_call_tree(profile, choices_of_kind(choices, kind));
    if (!tree) return fail(tree);
    if (kind == 0) {
      first = *std::move(tree);
    } else {
      facts.others.push_back({{std::string(kTimeKinds[kind]), profile::Unit::nanoseconds}, *std::move(tree)});
    }
  }
  view::Choices of_events = choices;
  of_events.by.place = true;
  auto events = other_events(profile, of_events);
  if (!events) return fail(events);
  for (EventTree& event : *events) facts.others.push_back(std::move(event));
  std::ostringstream out;
  if (auto written = write_pprof(*first, facts, out); !written) return fail(written);
  return std::move(out).str();
}

}  // namespace

Result<std::vector<ProcessSeries>> process_series(const profile::Profile& profile,
                                                  const view::Choices& choices, double rate_hz,
                                                  Unnamed unnamed) {
  std::vector<ProcessSeries> all;
  profile::Profile rooted = profile;
  view::show_endpoints(rooted);
  for (const profile::Profile& part : view::by_process(rooted)) {
    auto pprof = pprof_of_process(part, choices, rate_hz, unnamed);
    if (!pprof) return fail(pprof);
    ProcessSeries& series = all.emplace_back();
    series.pprof = *std::move(pprof);
    // The first part of the types' names: process_cpu:wall:nanoseconds:cpu:nanoseconds.
    series.labels.emplace_back("__name__", "process_cpu");
    for (const view::Attribute& attribute : view::resource_of(part, profile::ProcessId(1))) {
      for (const auto& [key, label] : kSeriesLabelNames) {
        if (attribute.key != key) continue;
        series.labels.emplace_back(
            label, valid_utf8(attribute.number ? std::to_string(*attribute.number) : attribute.text));
      }
    }
  }
  return all;
}

}  // namespace phlox::exporters
