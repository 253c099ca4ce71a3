#include "phlox/cli/agent_metrics.h"

#include <fmt/format.h>

#include <functional>
#include <string_view>

namespace phlox::cli {
namespace {

double in_seconds(Nanoseconds time) {
  return static_cast<double>(time) * 1e-9;
}

std::string quoted_label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

void head(std::string& text, std::string_view name, std::string_view type, std::string_view help) {
  text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

struct TargetMetric {
  std::string_view name, type, help;
  std::function<uint64_t(const AgentOutput::TargetCounts&)> value;
};

}  // namespace

std::string metrics_text(const AgentNumbers& n) {
  std::string text;
  const auto one = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    head(text, name, type, help);
    text += fmt::format("{} {}\n", name, value);
  };
  one("phlox_agent_samples_total", "counter", "Samples of threads.", n.samples);
  one("phlox_agent_samples_rejected_total", "counter",
      "Samples rejected because the stack changed while it was read.", n.rejected);
  one("phlox_agent_samples_lost_total", "counter", "Samples lost because a buffer was full.", n.lost);
  one("phlox_agent_intervals_total", "counter", "Intervals that were turned into profiles.", n.intervals);
  one("phlox_agent_processes", "gauge", "Processes being recorded.", n.processes);
  one("phlox_agent_kept_rows", "gauge", "Frames, stacks, threads and processes kept in memory.", n.kept_rows);
  one("phlox_agent_taken_seconds_total", "counter", "CPU time that sampling took from the programs.",
      in_seconds(n.taken));
  const TargetMetric kOfTargets[] = {
      {"phlox_agent_sent_total", "counter", "Pushes that the server accepted.",
       [](auto& t) { return t.sent; }},
      {"phlox_agent_sent_bytes_total", "counter", "Bytes in these pushes.",
       [](auto& t) { return t.sent_bytes; }},
      {"phlox_agent_failures_total", "counter", "Attempts that failed.", [](auto& t) { return t.failures; }},
      {"phlox_agent_rejected_profiles_total", "counter", "Profiles in these pushes that the server rejected.",
       [](auto& t) { return t.rejected; }},
      {"phlox_agent_lost_total", "counter", "Pushes that were lost.",
       [](auto& t) { return t.outbox.lost(); }},
      {"phlox_agent_buffered", "gauge", "Pushes that wait on disk.", [](auto& t) { return t.outbox.items; }},
      {"phlox_agent_buffered_bytes", "gauge", "Bytes in these pushes.",
       [](auto& t) { return t.outbox.bytes; }},
  };
  for (const TargetMetric& metric : kOfTargets) {
    head(text, metric.name, metric.type, metric.help);
    for (const auto& target : n.targets)
      text += fmt::format("{}{{target=\"{}\"}} {}\n", metric.name, quoted_label(target.shown),
                          metric.value(target));
  }
  one("process_cpu_seconds_total", "counter", "CPU time of the agent.", in_seconds(n.cpu));
  one("process_resident_memory_bytes", "gauge", "Memory of the agent.", n.memory);
  return text;
}

}  // namespace phlox::cli
