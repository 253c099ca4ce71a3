#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/cli/commands.h"
#include "phlox/cli/destination.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/recordings.h"
#include "phlox/cli/task_rows.h"
#include "phlox/cli/values.h"
#include "phlox/exporters/diff_svg.h"
#include "phlox/exporters/html.h"
#include "phlox/exporters/registry.h"
#include "phlox/profile/unfinished.h"
#include "phlox/report/diff.h"
#include "phlox/view/await_time.h"
#include "phlox/view/empty_view.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/prepared.h"
#include "phlox/view/shown_event.h"
#include "phlox/view/task_endpoints.h"

namespace phlox::cli {
namespace {

using profile::Profile;

struct Files {
  std::vector<std::string> before, after;

  std::vector<std::string> all() const {
    std::vector<std::string> names = before;
    names.insert(names.end(), after.begin(), after.end());
    return names;
  }
};

constexpr size_t kMostFiles = 200;  // all of them are held in memory

Result<Files> files_of(const DiffArguments& a) {
  constexpr const char* kDiffUsage =
      "phlox diff before.phlox after.phlox, or phlox diff a1 a2 a3 -- b1 b2 b3";
  Files files;
  const auto sides = std::find(a.files.begin(), a.files.end(), kSides);
  if (sides == a.files.end()) {
    if (a.files.size() < 2) return fail(ErrorKind::usage, "compare which two recordings?", kDiffUsage);
    if (a.files.size() > 2)
      return fail(ErrorKind::usage, fmt::format("{} recordings, and no -- between the sides", a.files.size()),
                  kDiffUsage);
    return Files{{a.files[0]}, {a.files[1]}};
  }
  files.before.assign(a.files.begin(), sides);
  files.after.assign(sides + 1, a.files.end());
  if (files.before.empty() || files.after.empty())
    return fail(ErrorKind::usage, "no recording on one side of --", kDiffUsage);
  if (std::find(sides + 1, a.files.end(), kSides) != a.files.end())
    return fail(ErrorKind::usage, "more than one --", kDiffUsage);
  if (a.files.size() > kMostFiles)
    return fail(ErrorKind::usage, fmt::format("more than {} recordings", kMostFiles), kDiffUsage);
  return files;
}

Result<void> print(const std::string& text, const std::vector<std::string>& inputs) {
  auto output = OutputFile::open("-", {.inputs = inputs, .text = true});
  if (!output) return fail(output);
  (*output)->stream() << text;
  return (*output)->commit();
}

// One weight for all: time only where all have it, and what an event counted where it is one event.
Result<void> settle_for_all(view::Choices& choices, const DiffArguments& a,
                            const std::vector<std::string>& names, const std::vector<Profile>& profiles) {
  const view::Choices given = choices;
  if (auto settled = settle_weight(choices, a.view, a.input, profiles.front()); !settled) return settled;
  const std::string one = view::shown_event(profiles.front()).name;
  for (size_t i = 1; i < profiles.size(); ++i) {
    view::Choices of_this = given;
    if (auto settled = settle_weight(of_this, a.view, a.input, profiles[i]); !settled) return settled;
    const std::string other = view::shown_event(profiles[i]).name;
    if (choices.weight == of_this.weight && (!view::is_of_event(choices.weight) || one == other)) continue;
    if (!a.view.weight.empty()) {
      return fail(ErrorKind::usage,
                  fmt::format("{} counts {}, {} counts {}", names.front(), one, names[i], other),
                  "--event chooses one that all have; --weight samples compares samples");
    }
    choices.weight = view::Weight::samples;
    return {};
  }
  return {};
}

// Before the recordings themselves (task_rows.h).
Result<std::vector<profile::TaskRows>> read_all_tasks(const std::vector<std::string>& names) {
  std::vector<profile::TaskRows> all;
  for (const std::string& name : names) {
    auto rows = read_task_rows(name);
    if (!rows) return fail(rows);
    all.push_back(*std::move(rows));
  }
  return all;
}

// Side by side: reading a million samples takes half a second. Without leave to start a thread, one by one.
Result<std::vector<Profile>> read_all(const std::vector<std::string>& names, const DiffArguments& a,
                                      Talk& talk) {
  std::vector<Profile> profiles;
  for (size_t i = 0; i < names.size(); i += 2) {
    const bool pair = i + 1 < names.size();
    auto reading = std::async([&] { return read_recording(names[i], a.input, talk); });
    auto second = pair ? read_recording(names[i + 1], a.input, talk) : Result<Profile>(Profile());
    auto first = reading.get();
    if (!first) return fail(first);
    if (!second) return fail(second);
    profiles.push_back(*std::move(first));
    if (pair) profiles.push_back(*std::move(second));
  }
  return profiles;
}

// In place of the threads' time.
Result<void> show_await_time(Profile& profile, const profile::TaskRows& tasks, const view::Choices& choices,
                             const std::string& name, bool is_judged) {
  if (auto added =
          add_await_time(profile, tasks, Weighed::tasks, *exporters::find_format("collapsed"), choices, name);
      !added)
    return added;
  const bool is_known = std::all_of(tasks.times.begin(), tasks.times.end(),
                                    [](const profile::TaskTime& row) { return row.changes.has_value(); });
  if (is_known || !is_judged) return {};
  return fail(ErrorKind::usage,
              fmt::format("--weight await: an older version of Phlox made {}, without what the sampling "
                          "error of await time follows from",
                          name),
              "record it again; phlox diff without --weight compares what tasks await, without a verdict");
}

Result<void> prepare(std::vector<Profile>& profiles, const std::vector<profile::TaskRows>& tasks,
                     const std::vector<std::string>& names, const DiffArguments& a, view::Choices& choices,
                     Talk& talk) {
  if (auto settled = settle_for_all(choices, a, names, profiles); !settled) return settled;
  for (size_t i = 0; i < profiles.size(); ++i) {
    if (const auto nothing = view::why_empty(profiles[i], choices))
      talk.warn(fmt::format("{}: {}", names[i], *nothing));
    if (const auto unfinished = profile::unfinished_words(profiles[i]); !unfinished.empty())
      talk.note(fmt::format("{}: {}", names[i], unfinished));
    view::learn_task_endpoints(profiles[i], tasks[i]);
    if (auto ready = view::prepare_view(profiles[i], choices, inherited_of(a.view)); !ready) return ready;
    if (weighed_by(a.view) == Weighed::tasks) {
      if (auto shown = show_await_time(profiles[i], tasks[i], choices, names[i], names.size() == 2); !shown)
        return shown;
    }
    if (choices.by.endpoint) view::show_endpoints(profiles[i]);
  }
  return {};
}

Result<report::DiffOptions> options_of(const DiffArguments& a) {
  report::DiffOptions options;
  auto choices = choices_of(a.view);
  if (!choices) return fail(choices);
  options.choices = *choices;
  if (!a.top.empty()) {
    const auto top = parse_count("--top", a.top);
    if (!top) return fail(top);
    options.limit = *top;
  }
  if (!a.per.empty()) options.per = a.per == "run" ? report::Per::run : report::Per::second;
  if (!a.margin.empty()) {
    std::string_view text = a.margin;
    if (text.ends_with("%")) text.remove_suffix(1);
    while (text.ends_with(" ")) text.remove_suffix(1);
    double percent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
    if (error != std::errc{} || end != text.data() + text.size() || !(percent >= 0 && percent <= 100))
      return fail(ErrorKind::usage, fmt::format("--margin: '{}' is no percentage from 0 to 100", a.margin),
                  "--margin 5");
    options.margin = percent / 100;
  }
  return options;
}

using WriteDifference = decltype(&exporters::write_diff_svg);

// Where to, and how. None: no picture was asked for.
Result<std::unique_ptr<OutputFile>> open_picture(const DiffArguments& a, const Files& files,
                                                 WriteDifference& write) {
  if (a.output.empty()) return std::unique_ptr<OutputFile>();
  const exporters::Format* format = exporters::find_format_for_file(a.output);
  if (format == nullptr || (format->name != "svg" && format->name != "html")) {
    return fail(ErrorKind::usage, fmt::format("cannot write a difference as '{}'", a.output),
                "a page with both recordings: -o diff.html; a differential flame graph: -o diff.svg");
  }
  if (format->name == "svg" && weighed_by(a.view) == Weighed::tasks)
    return fail(ErrorKind::usage, "--weight await: a differential flame graph has the time of threads only",
                "without -o as text, --markdown or --json; -o diff.html has await time as flame graphs");
  if (files.before.size() + files.after.size() > 2)
    return fail(ErrorKind::usage, "-o compares two recordings, not several",
                "without -o several runs are compared as text, --markdown or --json");
  write = format->name == "svg" ? exporters::write_diff_svg : exporters::write_diff_page;
  return OutputFile::open(a.output, {recording_owner(), files.all(), a.force});
}

// The status: kThreshold when a condition of --fail-if holds, kUnknownFunction when one never can.
Result<int> check(const std::vector<report::Condition>& conditions, const report::Diff& made, Talk& talk) {
  int status = kSuccess;
  for (const report::Condition& condition : conditions) {
    const auto result = report::check_condition(made, condition);
    if (!result) return fail(result);
    if (!result->found) {
      // A gate that can never close.
      talk.error({ErrorKind::usage, fmt::format("--fail-if: {}", result->text),
                  result->alike.empty() ? "functions are named as in phlox report; * stands for anything"
                                        : fmt::format("did you mean {}?", fmt::join(result->alike, ", "))});
      status = kUnknownFunction;
      continue;
    }
    if (result->holds && status == kSuccess) status = kThreshold;
    result->holds ? talk.warn(result->text) : talk.note(result->text);
  }
  return status;
}

Result<std::vector<report::Condition>> conditions_of(const DiffArguments& a) {
  std::vector<report::Condition> conditions;
  for (const std::string& text : a.fail_if) {
    auto condition = report::parse_condition(text);
    if (!condition) return fail(condition);
    conditions.push_back(*std::move(condition));
  }
  return conditions;
}

struct Loaded {
  std::vector<Profile> profiles;  // those before first
  std::vector<profile::TaskRows> tasks;
};

Result<Loaded> load(const Files& files, const DiffArguments& a, view::Choices& choices, Talk& talk) {
  const std::vector<std::string> names = files.all();
  auto tasks = read_all_tasks(names);
  if (!tasks) return fail(tasks);
  auto profiles = read_all(names, a, talk);
  if (!profiles) return fail(profiles);
  for (size_t i = 0; i < names.size(); ++i) {
    if (auto joined = join_task_rows((*tasks)[i], (*profiles)[i], names[i]); !joined) return fail(joined);
  }
  if (auto prepared = prepare(*profiles, *tasks, names, a, choices, talk); !prepared) return fail(prepared);
  return Loaded{*std::move(profiles), *std::move(tasks)};
}

// Two recordings. A picture has one weight, a page has await time too.
Result<void> write_picture(const Files& files, const view::Choices& choices, Loaded& loaded, Weighed weighed,
                           WriteDifference write, OutputFile& picture, Talk& talk) {
  const std::vector<std::string> names = files.all();
  for (size_t i = 0; write == exporters::write_diff_page && i < loaded.profiles.size(); ++i) {
    if (weighed == Weighed::tasks) {
      loaded.profiles[i].show_samples_of(view::kTimeOfThreads);
    } else if (auto added = add_await_time(loaded.profiles[i], loaded.tasks[i], Weighed::threads,
                                           *exporters::find_format("html"), choices, names[i]);
               !added) {
      return added;
    }
  }
  std::vector<std::string> remarks;
  exporters::ExportOptions options;
  options.weigh_awaits = weighed == Weighed::tasks;
  options.remarks = &remarks;
  const Profile &before = loaded.profiles.front(), &after = loaded.profiles[files.before.size()];
  if (auto written = write(before, after, choices, options, picture.stream()); !written) return fail(written);
  for (const std::string& remark : remarks) talk.warn(remark);
  return picture.commit();
}

Result<int> run_diff(const DiffArguments& a, Talk& talk) {
  const auto files = files_of(a);
  if (!files) return fail(files);
  if (a.json && a.markdown)
    return fail(ErrorKind::usage, "--json and --markdown are one choice", "phlox diff --help");
  auto options = options_of(a);
  if (!options) return fail(options);
  const auto conditions = conditions_of(a);
  if (!conditions) return fail(conditions);
  WriteDifference write = nullptr;
  auto picture = open_picture(a, *files, write);
  if (!picture) return fail(picture);
  auto loaded = load(*files, a, options->choices, talk);
  if (!loaded) return fail(loaded);
  report::Profiles before, after;
  for (size_t i = 0; i < loaded->profiles.size(); ++i)
    (i < files->before.size() ? before : after).push_back(&loaded->profiles[i]);
  const auto split = loaded->tasks.begin() + static_cast<ptrdiff_t>(files->before.size());
  options->tasks_before.assign(loaded->tasks.begin(), split);
  options->tasks_after.assign(split, loaded->tasks.end());
  const auto made = report::make_diff(before, after, *options);
  if (!made) return fail(made);
  if (*picture) {
    if (auto written =
            write_picture(*files, options->choices, *loaded, weighed_by(a.view), write, **picture, talk);
        !written)
      return fail(written);
    talk.note(fmt::format("wrote {}", with_size(a.output)));
  }
  // With a picture and no word of another format the picture is what was asked for.
  if (a.json || a.markdown || !*picture) {
    if (a.json && talk.wants_text()) talk.text(report::diff_text(*made));
    const std::string text = a.json       ? report::diff_json(*made)
                             : a.markdown ? report::diff_markdown(*made)
                                          : report::diff_text(*made);
    if (auto printed = print(text, files->all()); !printed) return fail(printed);
  }
  return check(*conditions, *made, talk);
}

}  // namespace

int diff(const CommandLine& line, Talk& talk) {
  const auto done = run_diff(line.diff, talk);
  if (done) return *done;
  talk.error(done.error());
  return exit_status(done.error().kind);
}

}  // namespace phlox::cli
