#include "phlox/exporters/recording_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <limits>
#include <string_view>
#include <utility>

#include "phlox/base/number_words.h"
#include "phlox/base/text.h"
#include "phlox/exporters/words.h"
#include "phlox/profile/counters.h"
#include "phlox/profile/kept.h"
#include "phlox/profile/unfinished.h"
#include "phlox/view/await_time.h"
#include "phlox/view/chosen_trace.h"
#include "phlox/view/empty_view.h"
#include "phlox/view/shown_event.h"
#include "phlox/view/work.h"

namespace phlox::exporters {
namespace {

std::string date_words(int64_t unix_ns) {
  std::time_t seconds = unix_ns / kSecond;
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min);
}

// In seconds however late it is, as --time takes it: "500 ms", "7,500 s".
std::string moment_words(Nanoseconds moment) {
  return moment < 100 * kSecond ? time_words(moment)
                                : count_words(static_cast<uint64_t>(moment / kSecond)) + " s";
}

std::string state_names(uint8_t states) {
  constexpr std::pair<view::StateChoice, std::string_view> kNames[] = {
      {view::StateChoice::running, "running"},
      {view::StateChoice::runnable, "runnable"},
      {view::StateChoice::blocked, "blocked"},
      {view::StateChoice::gil_holds, "holding the GIL"},
      {view::StateChoice::gil_waits, "waiting for the GIL"},
      {view::StateChoice::idle, "idle"}};
  std::string names;
  for (const auto& [state, name] : kNames) {
    if (!(states & static_cast<uint8_t>(state))) continue;
    names += (names.empty() ? "" : " or ") + std::string(name);
  }
  return names;
}

}  // namespace

bool is_unfinished(const profile::Profile& profile) {
  return profile::is_unfinished(profile);
}

int64_t recording_start_time(const profile::Profile& profile) {
  auto found = profile.meta().find("start_unix_ns");
  int64_t start = 0;
  if (found != profile.meta().end()) {
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), start);
  }
  return start;
}

std::string recording_title(const profile::Profile& profile) {
  if (profile.processes().empty()) return "Empty recording";
  const profile::Process& first = profile.processes().front();
  std::string title = first.command();
  if (title.empty())
    title = first.pid == 0 ? "A process that is not known" : fmt::format("Process {}", first.pid);
  if (profile.processes().size() > 1) title += fmt::format(" and {} more", profile.processes().size() - 1);
  return title;
}

std::string recording_facts(const profile::Profile& profile) {
  std::string text;
  if (!profile.processes().empty()) {
    const profile::Process& first = profile.processes().front();
    if (!first.python_version.empty()) text += "Python " + first.python_version + ", ";
    if (first.pid != 0) text += fmt::format("pid {}, ", first.pid);
  }
  Nanoseconds elapsed = 0;
  for (const profile::Counter& counter : profile.counters()) {
    if (counter.name == profile::counters::kElapsed) elapsed = std::max(elapsed, counter.value);
  }
  const auto threads =
      std::count_if(profile.threads().begin(), profile.threads().end(),
                    [](const profile::Thread& thread) { return !view::is_unknown_thread_of_loop(thread); });
  text += fmt::format("{} {}", threads, threads == 1 ? "thread" : "threads");
  if (elapsed > 0) text += " over " + weight_words(elapsed, view::Weight::wall);
  if (int64_t start = recording_start_time(profile); start > 0) text += ", " + date_words(start);
  if (auto host = profile.meta().find("host"); host != profile.meta().end()) text += " on " + host->second;
  return text;
}

std::string choices_words(const profile::Profile& profile, const view::Choices& choices) {
  std::string text;
  if (choices.states != 0) text += ", only while " + state_names(choices.states);
  if (choices.thread_regex) text += ", only threads /" + *choices.thread_regex + "/";
  if (choices.endpoint_regex) text += ", only endpoints /" + *choices.endpoint_regex + "/";
  if (choices.trace)
    text += fmt::format(", only {} {}", view::is_span(profile, *choices.trace) ? "span" : "trace",
                        *choices.trace);
  if (choices.pid) text += fmt::format(", only pid {}", *choices.pid);
  bool ends = choices.to != std::numeric_limits<Nanoseconds>::max();
  if (choices.from > 0) text += " from " + moment_words(choices.from);
  if (ends) text += " up to " + moment_words(choices.to);
  return text;
}

std::string recording_subtitle(const profile::Profile& profile, const view::Choices& choices) {
  std::string text =
      fmt::format("{}. Widths: {}", recording_facts(profile), view::weight_title(profile, choices.weight));
  if (choices.show == view::Show::computing || choices.show == view::Show::waiting)
    text += fmt::format(", only {}", view::show_name(choices.show));
  return text + choices_words(profile, choices) + ".";
}

std::vector<std::string> quality_lines(const profile::Profile& profile, const view::QualitySummary& quality) {
  std::vector<std::string> lines = {displayable(view::quality_line(quality))};
  if (auto words = profile::lacking_words(profile::lacking(profile)); !words.empty())
    lines.push_back(std::move(words));
  if (auto unfinished = profile::unfinished_words(profile); !unfinished.empty())
    lines.push_back(std::move(unfinished));
  if (const std::string words = profile::not_recorded_words(profile); !words.empty())
    lines.push_back(displayable(words));
  return lines;
}

FlamePicture make_picture(const profile::Profile& profile, const view::Choices& choices, view::CallTree tree,
                          const ExportOptions& options) {
  FlamePicture picture;
  picture.title = displayable(options.title.empty() ? recording_title(profile) : options.title);
  picture.subtitle = displayable(recording_subtitle(profile, choices));
  view::QualitySummary quality = view::summarize_quality(profile);
  picture.quality = quality_lines(profile, quality);
  const auto empty = view::why_empty(profile, choices);
  picture.warning = displayable(empty ? "Nothing to show: " + *empty : view::quality_warning(quality));
  picture.weight = choices.weight;
  picture.show = choices.show;
  picture.left_out = displayable(view::left_out_words(view::waiting_for_work(profile, choices)));
  picture.tree = std::move(tree);
  make_displayable(picture.tree, choices.by.line);
  picture.pruned = prune(picture.tree, picture.before, kMaximumNodes);
  return picture;
}

}  // namespace phlox::exporters
