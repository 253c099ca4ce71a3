// One command's options, as grammar*.cpp describe them, and those that several commands share.
#pragma once

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "phlox/cli/arguments.h"
#include "phlox/cli/description.h"
#include "phlox/importers/registry.h"

namespace phlox::cli {

// Adds one option to the parser and to the description at a time, so that they cannot differ.
class CommandBuilder {
 public:
  CommandBuilder(CLI::App& app, CommandText& text) : app_(app), text_(text) {}

  void value(const std::string& names, std::string& into, OptionText words) {
    const std::string all = words.older.empty() ? names : names + "," + words.older;
    add(app_.add_option(all, into, words.text), names, std::move(words));
  }
  void values(const std::string& names, std::vector<std::string>& into, OptionText words) {
    words.repeatable = true;
    add(app_.add_option(names, into, words.text)->expected(1)->take_all()->allow_extra_args(false), names,
        std::move(words));
  }
  void running_process(const std::string& names, std::string& into, std::string text) {
    value(names, into, process_words(std::move(text)));
  }
  void running_processes(const std::string& names, std::vector<std::string>& into, std::string text) {
    values(names, into, process_words(std::move(text)));
  }
  // For the commands with the options above.
  void container(std::string& into) {
    value("--in", into,
          {.value = "CONTAINER",
           .text = "the PID is the container's own: give the container's id, the start of its id, or a "
                   "process in it"});
  }
  void list(const std::string& names, std::string& into, OptionText words, std::vector<std::string> items) {
    words.items = std::move(items);
    value(names, into, std::move(words));
  }
  void flag(const std::string& names, bool& into, std::string text) {
    app_.add_flag(names, into, text);
    text_.options.push_back({.names = split(names), .text = std::move(text)});
  }
  void positional(const std::string& name, std::string& into, OptionText words) {
    app_.add_option(name, into, words.text);
    words.value = name;
    text_.options.push_back(std::move(words));
  }
  void positionals(const std::string& name, std::vector<std::string>& into, OptionText words) {
    app_.add_option(name, into, words.text);
    words.value = name;
    text_.options.push_back(std::move(words));
  }
  // What it records, and where its names are on this host.
  void native_here(NativeArguments& into) {
    flag("--native", into.native,
         "also record frames of C, C++ and Rust, below and between those of Python, and threads that run no "
         "Python");
    values("--debug-path", into.debug_paths,
           {.value = "FOLDER",
            .text = "first look here for separate debug files; may be repeated",
            .file = true});
  }
  void native(NativeArguments& into) {
    native_here(into);
    value("--native-source", into.source,
          {.value = "HOW",
           .text = "how --native reads a running thread. perf: at a CPU-clock event, without a stop; ptrace: "
                   "during a stop of microseconds; syscall: not at all, only blocked threads (default auto: "
                   "the first that this host allows)",
           .choices = {"auto", "perf", "ptrace", "syscall"}});
    flag("--debuginfod", into.debuginfod, "fetch missing debug files from the servers in $DEBUGINFOD_URLS");
  }
  void page_size(std::string& into) {
    value(
        "--max-page-size", into,
        {.value = "MB",
         .text =
             "the largest size of a page; what does not fit is merged, and the page says what (default 24)"});
  }
  void source(bool& into) {
    flag("--source", into,
         "put the program's source files into the page, as they are here now; phlox says how much they add. "
         "Only files that were sampled and have the extension of a source file");
  }
  void force(bool& into) { flag("--force", into, "overwrite FILE even if it is a recording"); }
  void input(InputArguments& into) {
    std::vector<std::string> names;
    std::string kinds;
    for (const auto& format : importers::formats()) {
      names.emplace_back(format.name);
      kinds += fmt::format("{}{}: {}", kinds.empty() ? "" : "; ", format.name, format.description);
    }
    value("--from", into.from,
          {.value = "FORMAT",
           .text = fmt::format(
               "the format of a file that another tool recorded: {} (default: by its content)", kinds),
           .choices = names});
    value("--event", into.event,
          {.value = "NAME",
           .text = "which event to show, in a recording of several (perf.data, pprof), weighted by what it "
                   "counted (default: the first that measures time, else the first)"});
    value("--sysroot", into.sysroot,
          {.value = "FOLDER",
           .text = "look below this folder for the files that another tool's file names, not on this machine",
           .file = true});
    values("--debug-path", into.debug_paths,
           {.value = "FOLDER",
            .text = "for another tool's file: first look here for programs and debug files, by build-id; may "
                    "be repeated",
            .file = true});
    flag("--debuginfod", into.debuginfod,
         "for another tool's file: fetch missing debug files from the servers in $DEBUGINFOD_URLS");
  }
  // Which processes of this host, in addition to those with --pid.
  void selection(selection::Chosen& into) {
    value("--name", into.name,
          {.value = "REGEX",
           .text = "every Python on this host whose command line matches, also those that start later; "
                   "together with --user and --cgroup, those that match all"});
    value("--user", into.user,
          {.value = "USER",
           .text = "every Python of this user (a name or a number), also those that start later"});
    value("--cgroup", into.cgroup,
          {.value = "PATH",
           .text = "every Python in this control group or below it, also those that start later: a path as "
                   "in /proc/PID/cgroup, or the group's folder",
           .file = true});
    flag("--all", into.all, "every Python on this host that may be read");
  }
  void triggers(TriggerArguments& into) {
    values("--on", into.on,
           {.value = "CONDITION",
            .text = "write a recording of the time before and after each moment at which this becomes true: "
                    "stall=200ms, gil=100ms, cpu=90%/10s, cpu-wait=50%/10s, memory=90%, log=FILE:REGEX, "
                    "signal=USR2, http=127.0.0.1:9465, death; may be repeated. -o then names a folder "
                    "(docs/triggers.md)"});
    value("--before", into.before, {.value = "TIME", .text = "with --on: how long before (default 30s)"});
    value("--after", into.after, {.value = "TIME", .text = "with --on: how long after (default 10s)"});
    value("--max-incidents", into.max_incidents,
          {.value = "COUNT", .text = "with --on: write no more than so many in an hour (default 4)"});
    value("--incident-space", into.incident_space,
          {.value = "SIZE",
           .text = "with --on: write no more when the incidents in the folder take this much (default 1G)"});
  }
  // `with_pid`: not for record, whose --pid has another meaning.
  // `with_awaiters`: not for diff, which compares stacks as they were.
  void view(ViewArguments& into, bool with_pid, bool with_awaiters = true) {
    std::vector<OptionText> own;
    own.swap(text_.options);
    list("--by", into.by,
         {.value = "LIST",
          .text = "what a frame is: function (default) or line; and what to group by, at the root: thread, "
                  "process, program (processes with the same command line), label, endpoint (the function "
                  "that a web framework calls for a request); separated by commas"},
         {"function", "line", "thread", "process", "program", "label", "endpoint"});
    value("--show", into.show,
          {.value = "WHAT",
           .text =
               "work (default): computing, and waiting except by threads that have nothing to do; computing; "
               "waiting; everything (default with --state, --thread, --endpoint, --trace, --weight cpu or "
               "await)",
           .choices = {"work", "computing", "waiting", "everything"}});
    samples_to_show(into, with_pid);
    value("--weight", into.weight,
          {.value = "WHAT",
           .text = "what to add up: wall time (default), cpu time, samples, await: the time that tasks of "
                   "event loops waited, or event: what the event of --event counted",
           .choices = {"wall", "cpu", "samples", "await", "event"}});
    flag("--all-frames", into.all_frames,
         "also show the C frames of the interpreter itself, which are hidden otherwise");
    flag("--inherited-frames", into.inherited_frames,
         "for a forked process, also show the frames that its parent had at the fork, before \"(forked "
         "here)\"");
    if (with_awaiters) {
      flag("--no-awaiters", into.no_awaiters,
           "for a task of an event loop, do not show the coroutines that await it, before \"(awaits)\"");
    }
    text_.view_options = std::move(text_.options);
    text_.options = std::move(own);
  }

 private:
  void samples_to_show(ViewArguments& into, bool with_pid) {
    list("--state", into.states,
         {.value = "LIST",
          .text = "only samples in one of these thread states: running, runnable, blocked, gil-holds, "
                  "gil-waits, idle"},
         {"running", "runnable", "blocked", "gil-holds", "gil-waits", "idle"});
    value("--thread", into.thread,
          {.value = "REGEX", .text = "only threads whose name, kernel name or id matches"});
    value("--endpoint", into.endpoint,
          {.value = "REGEX",
           .text = "only the time of requests to endpoints that match: \"read_item (app.py:12)\"; the names "
                   "are in phlox report --by endpoint"});
    if (with_pid) {
      value("--label", into.label,
            {.value = "REGEX", .text = "only the time of labels that match (phlox label, pytest --phlox)"});
    }
    if (with_pid) {
      value("--trace", into.trace,
            {.value = "ID",
             .text = "only the time of this trace (32 hex digits, or the first 8 or more) or this span (16); "
                     "the ids are in phlox report"});
    }
    if (with_pid) value("--pid", into.pid, {.value = "PID", .text = "only this process of the recording"});
    value("--time", into.time,
          {.value = "FROM..TO",
           .text = "only this time range, counted from the start of the recording: 2s..5s, ..500ms, 1.5.."});
  }
  static OptionText process_words(std::string text) {
    OptionText words;
    words.value = "PID";
    words.text = std::move(text);
    words.processes = true;
    return words;
  }
  static std::vector<std::string> split(const std::string& names) {
    std::vector<std::string> parts;
    size_t at = 0;
    for (size_t comma = 0; comma != std::string::npos; at = comma + 1) {
      comma = names.find(',', at);
      parts.push_back(names.substr(at, comma == std::string::npos ? comma : comma - at));
    }
    return parts;
  }
  void add(CLI::Option* option, const std::string& names, OptionText words) {
    if (!words.choices.empty()) {
      option->check([choices = words.choices](const std::string& given) {
        if (std::find(choices.begin(), choices.end(), given) != choices.end()) return std::string();
        return fmt::format("'{}' is none of {}", given, fmt::join(choices, ", "));
      });
    }
    words.names = split(names);
    text_.options.push_back(std::move(words));
  }

  CLI::App& app_;
  CommandText& text_;
};

}  // namespace phlox::cli
