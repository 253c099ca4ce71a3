#include "phlox/cli/record_words.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/process/process_state.h"
#include "phlox/process/process_tree.h"
#include "phlox/selection/pythons.h"

namespace phlox::cli {

view::QualitySummary quality_of(const sampler::Progress& p) {
  profile::Profile numbers;
  profile::Process process;
  process.mode = p.mode;
  process.end = p.sampled_time;
  numbers.emit(profile::ProcessId(1), process);
  sampler::put_process_counters(numbers, profile::ProcessId(1), p);
  sampler::put_recorder_counters(numbers, p);
  return view::summarize_quality(numbers);
}

std::array<std::string, 5> progress_lines(const sampler::Progress& p) {
  const std::string time = fmt::format("{:.1f} s", static_cast<double>(p.elapsed) * 1e-9);
  const std::string head = fmt::format("recording {}", time);
  const std::string samples = fmt::format(
      "{}{}, {} samples", head, p.processes > 1 ? fmt::format(", {} processes", p.processes) : "", p.samples);
  const std::string rate = fmt::format("{}, {:.0f} Hz{}", samples, p.rate_hz,
                                       p.asked_rate_hz > 0 ? fmt::format(" of {:g}", p.asked_rate_hz) : "");
  const std::string rejected = fmt::format("{}, {} rejected", rate, p.rejected());
  const double share =
      p.samples > 0 ? 100.0 * static_cast<double>(p.rejected()) / static_cast<double>(p.samples) : 0.0;
  const std::string end = "  Ctrl-C ends it";
  return {fmt::format("{} ({:.2f} %){}", rejected, share, end), rejected + end, samples + end, head + end,
          time + end};
}

std::string none_runs(const selection::Selection& selection) {
  constexpr size_t kMost = 5, kLongest = 60;
  python::Recogniser recogniser;
  std::string there;
  size_t more = 0;
  for (const selection::PythonProcess& one :
       selection::find_pythons(process::read_processes(), recogniser).found) {
    if (one.pid == ::getpid()) continue;
    if (++more > kMost) continue;
    there += fmt::format("{}{} ({})", there.empty() ? "" : ", ", one.pid, shortened(one.command, kLongest));
  }
  if (more > kMost) there += fmt::format(" and {} more (phlox list)", more - kMost);
  const std::string& words = selection.words();
  if (words.empty()) return "no Python that you may read is running here";
  return fmt::format("no Python {} is running; {}", words,
                     there.empty() ? "no Python that you may read runs here at all" : "here run " + there);
}

std::string newcomers_words(const std::vector<Newcomer>& fresh) {
  constexpr size_t kMostIds = 6, kLongestOfSeveral = 60;
  const auto said = [](const Newcomer& one, size_t most) { return shortened(one.title, most); };
  const bool is_one = std::all_of(fresh.begin(), fresh.end(), [&](const Newcomer& one) {
    return said(one, kLongestCommandSaid) == said(fresh.front(), kLongestCommandSaid);
  });
  const std::string more =
      fresh.size() > kMostIds ? fmt::format(" and {} more", fresh.size() - kMostIds) : "";
  std::vector<std::pair<std::string, std::string>> groups;  // command line as printed, and its ids
  for (size_t i = 0; i < std::min(fresh.size(), kMostIds); ++i) {
    const std::string title = said(fresh[i], is_one ? kLongestCommandSaid : kLongestOfSeveral);
    auto at =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == title; });
    if (at == groups.end()) at = groups.insert(groups.end(), {title, {}});
    at->second += fmt::format("{}{}", at->second.empty() ? "" : ", ", fresh[i].pid);
  }
  // Processes without a command line come first, so that they do not seem to share the next one's.
  std::stable_partition(groups.begin(), groups.end(), [](const auto& group) { return !group.first.empty(); });
  std::string text = fmt::format("recording process{} ", fresh.size() == 1 ? "" : "es");
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& [title, ids] = groups[i];
    text += (i == 0 ? "" : ", ") + ids + (is_one ? more : "");
    if (!title.empty()) text += fmt::format(" ({})", title);
  }
  return text + (is_one ? "" : more);
}

std::string newcomers_words(const std::vector<pid_t>& fresh) {
  std::vector<Newcomer> all;
  for (const pid_t pid : fresh) {
    const auto state = process::read_process_state(pid);
    all.push_back({pid, state ? state->title() : ""});
  }
  return newcomers_words(all);
}

}  // namespace phlox::cli
