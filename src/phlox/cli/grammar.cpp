#include "phlox/cli/grammar.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <utility>

#include "phlox/exporters/registry.h"

namespace phlox::cli {

Grammar::Grammar() {
  app.set_help_flag();
  app.require_subcommand(0, 1);
  describe_phlox();
  describe_record();
  describe_list();
  describe_dump();
  describe_top();
  describe_report();
  describe_diff();
  describe_view();
  describe_export();
  describe_import();
  describe_pyflame();
  describe_snapshot();
  describe_label();
  describe_doctor();
  describe_rest();
  for (auto& text : texts_) description.commands.push_back(std::move(*text));
}

CommandBuilder Grammar::command(const std::string& name, const std::string& summary,
                                const std::string& synopsis) {
  CLI::App* sub = app.add_subcommand(name, summary);
  sub->set_help_flag();
  sub->fallthrough();
  texts_.push_back(std::make_unique<CommandText>());
  CommandText& text = *texts_.back();
  text.name = name;
  text.summary = summary;
  text.synopsis = synopsis;
  return {*sub, text};
}

void Grammar::describe_phlox() {
  description.phlox.summary = "shows where a running Python program spends its time, without touching it";
  CommandBuilder builder(app, description.phlox);
  builder.flag("-h,--help", line.global.help, "show this help");
  builder.flag("--version", line.global.version, "show the version");
  builder.flag("-q,--quiet", line.global.quiet, "only errors on standard error");
  builder.flag("-v,--verbose", line.global.verbose, "say more: what was found, and how");
}

void Grammar::describe_record() {
  CommandBuilder b = command("record", "record a running or a new Python program",
                             "[options] -p PID | --name REGEX | --all | -- COMMAND [ARGUMENT...]");
  text().examples = {
      {"phlox record -p 4711 -d 10", "ten seconds of a running program, into a .phlox file"},
      {"phlox record -o flame.svg -- python3 app.py --port 80",
       "a new one from its first line to its end, as a flame graph"},
      {"sudo phlox record -r 1000 -p $(pgrep -f worker.py) -o worker.phlox",
       "somebody else's, a thousand times a second"},
      {"phlox record --native -o flame.svg -- python3 train.py", "down to the line of C, C++ or Rust"},
      {"phlox record -o app.html -p 4711 -d 60", "as one page with flame graph, tables and filters"},
      {"sudo phlox record --name 'celery.*worker' -d 60",
       "all workers of this host, also those that come yet"},
  };
  auto& a = line.record;
  b.running_processes("-p,--pid", a.pids,
                      "record this process and the Pythons that it started or starts; may be repeated");
  b.container(a.container);
  b.selection(a.selection);
  b.flag("--no-follow", a.no_follow,
         "record those processes alone and not what they start, or the one program that COMMAND is");
  b.value("-d,--duration", a.duration,
          {{},
           "SECONDS",
           "end the recording after this time (default: Ctrl-C, or the program's end)",
           {},
           false});
  b.value("-r,--rate", a.rate,
          {{},
           "HZ",
           "looks a second (default: up to 200, as --max-overhead allows); max: as fast as it goes",
           {},
           false});
  b.value("-o,--output", a.output,
          {{},
           "FILE",
           "where to; the extension chooses what: .phlox, .svg, .txt or .collapsed, the recording beside it "
           "as FILE.phlox; - is collapsed on standard output, and no recording "
           "(default: a .phlox named after program, process and time)",
           {},
           true});
  b.value("--keep", a.keep,
          {{}, "TIME", "only what is younger stays: 1h, 30m; for recordings of days", {}, false});
  b.value("--max-size", a.max_size,
          {{}, "SIZE", "when the file would be larger, the oldest goes: 200M, 2G", {}, false});
  b.flag("--append", a.append,
         "go on with the recording that FILE is, such as that of a recorder that was killed");
  b.source(a.source);
  b.force(a.force);
  b.value(
      "--max-overhead", a.max_overhead,
      {{},
       "PERCENT",
       "what sampling may take from one CPU of the program before the rate is lowered, or off (default 2)",
       {},
       false});
  b.flag("--hands-off", a.hands_off,
         "read from another CPU only, never on the program's own; stacks are unproved (--way hands-off)");
  b.value("--way", a.way,
          {{},
           "WAY",
           "how to read: from inside the kernel, as root; on the thread's own CPU; by stopping it for "
           "microseconds; hands off. no-kernel: the best of the others (default auto: the first that can be "
           "had)",
           {"auto", "kernel", "same-cpu", "ptrace", "hands-off", "no-kernel"},
           false});
  b.native(a.native);
  b.view(a.view, false);
  text().more =
      "Nothing is changed in the program that is recorded, and by default nothing of it is ever "
      "stopped.\n\n"
      "What a process starts is recorded with it, in one file: the workers of a server, the children of a "
      "pool, tests that run side by side; each is a process of the recording (--by process, --by program, "
      "--pid). "
      "COMMAND, and what has the PID, may be a script, make or a wrapper such as timeout, which are no "
      "Python themselves. With --no-follow one is recorded at a time: the first Python that COMMAND "
      "starts, and when it has ended, the next. --max-overhead holds for each process.\n\n"
      "With --name, --user, --cgroup and --all the Pythons of this host are looked through all the while, "
      "and "
      "who comes later is recorded from then on; so is what they start. Such a recording ends with -d or "
      "Ctrl-C, not with the programs. Several of these narrow each other down; a process with --pid is "
      "recorded in any case. Phlox itself, and what it started, is never taken.\n\n"
      "Ctrl-C (SIGINT) ends the recording properly, a second one at once; so does SIGTERM that of a "
      "running "
      "program. Both do so too where a script put phlox into the background, SIGINT ignored. A program "
      "started by phlox gets the "
      "signals that phlox gets, and its "
      "exit status becomes phlox's. Under sudo it runs as the calling user, who also owns the files.\n\n"
      "With --keep or --max-size it can run for days: what is there is the last of it. SIGUSR1 (of a "
      "program that "
      "phlox started: phlox snapshot) writes what is there to another file, and the recording goes on.\n\n"
      "The choices of the view apply to .svg and .txt outputs only: a .phlox holds everything.";
}

void Grammar::describe_list() {
  command("list", "list the Python processes that are running", "");
  text().examples = {{"phlox list", "which are there, which started which, and which compute"},
                     {"sudo phlox list", "those of other users too"}};
  text().more =
      "Every process with a Python in it is listed, whatever it is called (gunicorn, uwsgi, a program that "
      "embeds one), children beneath their parent. CPU TIME is what it has used since its start: the "
      "worker "
      "to record is often the one that has used most.";
}

void Grammar::describe_dump() {
  CommandBuilder b = command("dump", "print every thread's stack once", "[options] -p PID");
  text().examples = {{"phlox dump -p 4711", "what is it doing right now?"},
                     {"phlox dump --locals -p 4711", "with arguments and local variables"},
                     {"phlox dump --native -p 4711", "down to the line of C, C++ or Rust"},
                     {"phlox dump --json -p 4711", "for a program to read"}};
  auto& a = line.dump;
  b.running_process("-p,--pid", a.pid, "the process");
  b.container(a.container);
  b.flag("--no-follow", a.no_follow, "that process alone, not the Pythons that it started");
  b.flag("--locals", a.locals, "arguments and local variables too (they may hold secrets)");
  b.flag("--json", a.json, "JSON, as docs/json/ describes it");
  b.native(a.native);
  b.flag("--all-frames", a.all_frames,
         "native frames: the interpreter's own C too, which is folded away else");
}

void Grammar::describe_top() {
  CommandBuilder b = command("top", "show where the time goes while a program runs",
                             "[options] -p PID | --name REGEX | FILE | -- COMMAND [ARGUMENT...]");
  text().examples = {
      {"phlox top -p 4711", "functions, lines, threads, processes, each second anew; ? lists keys"},
      {"phlox top -- python3 app.py", "of a new program; what it prints goes to a file"},
      {"phlox top --name gunicorn", "of every Python whose command line matches; --all: of every one"},
      {"phlox top app.phlox", "what another phlox is recording"},
      {"phlox top -n 3 -p 4711 | grep parse", "three times, as text"}};
  auto& a = line.top;
  b.positional("FILE", a.file, {{}, "", "a recording, which may be growing", {}, true});
  b.running_processes("-p,--pid", a.pids,
                      "this process and the Pythons that it started or starts; may be repeated");
  b.container(a.container);
  b.selection(a.selection);
  b.flag("--no-follow", a.no_follow, "that process alone");
  b.value("-r,--rate", a.rate,
          {{}, "HZ", "looks a second (default: up to 200, 2 % of a CPU being the most it takes)", {}, false});
  b.value("--interval", a.interval, {{}, "SECONDS", "between two refreshes (default 1)", {}, false});
  b.value("--window", a.window,
          {{}, "SECONDS", "how much time the first numbers are of (default 5)", {}, false});
  b.value("-n,--count", a.count, {{}, "COUNT", "print so many tables as text, then end", {}, false});
  b.value("--filter", a.filter, {{}, "REGEX", "only rows that match", {}, false});
  b.value("--page", a.page,
          {{},
           "PAGE",
           "what to begin with (default functions)",
           {"functions", "lines", "threads", "processes", "loops"},
           false});
  b.native(a.native);
  text().more =
      "The first two columns are of the last seconds, the next two since the start: the time in a function "
      "itself and with everything it called, as parts of what the threads do. As with report, the waiting "
      "of "
      "threads that have nothing to do is left out; v shows it.\n\n"
      "Where standard output is no terminal, or one that cannot move its cursor (TERM=dumb), a table is "
      "printed "
      "each --interval. NO_COLOR is heeded. w writes what was seen to a recording. A program that phlox "
      "started "
      "runs on when phlox is left with q; Ctrl-C reaches both, and phlox waits for it to end.";
}

void Grammar::describe_report() {
  CommandBuilder b = command("report", "print where the time of a recording went", "[options] FILE...");
  text().examples = {{"phlox report app.phlox", "hot functions and lines, threads, findings"},
                     {"phlox report --source --state running app.phlox",
                      "the source with each line's share of running time"},
                     {"phlox report monday.phlox tuesday.phlox", "one report over both"},
                     {"phlox report --json app.phlox", "for a program to read"}};
  auto& a = line.report;
  b.positionals("FILE", a.files, {{}, "", "a recording; of several one report is made over all", {}, true});
  b.value("--top", a.top, {{}, "N", "so many lines in a table (default 15)", {}, false});
  b.flag("--json", a.json, "JSON, as docs/json/ describes it");
  b.flag("--markdown", a.markdown, "Markdown");
  b.flag("--source", a.source, "the source of the hot files with the share of each line");
  b.input(a.input);
  b.view(a.view, true);
}

void Grammar::describe_diff() {
  CommandBuilder b = command("diff", "compare recordings: did a change help?",
                             "[options] BEFORE AFTER, or BEFORE... -- AFTER...");
  text().examples = {
      {"phlox diff before.phlox after.phlox", "do these two recordings differ, in seconds, and where"},
      {"phlox diff a1 a2 a3 a4 a5 -- b1 b2 b3 b4 b5",
       "would other runs differ too: a test over several runs of both, recorded in turn"},
      {"phlox diff before.phlox after.phlox -o diff.html", "both in one page, and what differs"},
      {"phlox diff before.phlox after.phlox --fail-if 'total(json.loads) > +10%'", "fails (status 3) in CI"}};
  auto& a = line.diff;
  b.positionals("FILE", a.files,
                {{}, "", "two recordings; or several of each side, with -- between the sides", {}, true});
  b.value("-o,--output", a.output,
          {{}, "FILE", "a page with both recordings, .html, or a differential flame graph, .svg", {}, true});
  b.force(a.force);
  b.value("--top", a.top, {{}, "N", "so many lines in a table (default 15)", {}, false});
  b.flag("--json", a.json, "JSON, as docs/json/ describes it");
  b.flag("--markdown", a.markdown, "Markdown");
  b.values(
      "--fail-if", a.fail_if,
      {{},
       "CONDITION",
       "end with status 3 when this holds with its whole 99 % interval: 'total(NAME) > +10%' (of its time), "
       "'self(NAME) > 5%' (of AFTER), 'total > +2s'; with status 4 when no NAME is in any recording; may be "
       "repeated",
       {},
       false});
  b.value("--per", a.per,
          {{},
           "WHAT",
           "compare what a run took, or what it took in a second of recording (default: run, if every "
           "recording is one of a whole run: phlox record -- PROGRAM)",
           {"run", "second"},
           false});
  b.value("--margin", a.margin,
          {{},
           "PERCENT",
           "report differences above this part of a function's own time, and a tenth of it of the whole "
           "(default 10)",
           {},
           false});
  b.input(a.input);
  b.view(a.view, true);
}

void Grammar::describe_export() {
  CommandBuilder b = command("export", "write a recording in another format", "[options] FILE");
  text().examples = {{"phlox export app.phlox -f svg -o app.svg", "the flame graph, for a browser"},
                     {"phlox export app.phlox --by line,thread --state running,runnable -o app.svg",
                      "lines beneath their thread, busy time only"},
                     {"phlox export app.phlox -f collapsed | grep parse",
                      "one line a stack, for flame graph scripts and grep"}};
  auto& a = line.export_;
  b.positional("FILE", a.file, {{}, "", "a recording", {}, true});
  std::vector<std::string> names;
  std::string kinds;
  for (const auto& format : exporters::formats()) {
    names.emplace_back(format.name);
    kinds += fmt::format("{}{}: {}", kinds.empty() ? "" : "; ", format.name, format.description);
  }
  b.value("-f,--format", a.format,
          {{}, "FORMAT", kinds + " (default: by the extension of -o, else collapsed)", names, false});
  b.value("-o,--output", a.output, {{}, "FILE", "where to (default, or -: standard output)", {}, true});
  b.force(a.force);
  b.value("--title", a.title, {{}, "TEXT", "of a picture or a page", {}, false});
  b.page_size(a.page_size);
  b.source(a.source);
  b.value("--native-names", a.view.native_names,
          {{},
           "FORM",
           "functions of C++ and Rust by their full name, with namespaces and template arguments (default, "
           "but for pictures), or by their short one (pictures: the full one when pointed at)",
           {"full", "short"},
           false});
  b.input(a.input);
  b.view(a.view, true);
}

void Grammar::describe_view() {
  CommandBuilder b = command("view", "show a recording in the browser", "[options] FILE");
  text().examples = {{"phlox view app.phlox", "writes app.phlox.html, and opens it where there is a desktop"},
                     {"phlox view app.phlox -o /srv/www/app.html", "to where others find it"}};
  auto& a = line.view;
  b.positional("FILE", a.file, {{}, "", "a recording", {}, true});
  b.value("-o,--output", a.output, {{}, "FILE", "where to (default: FILE.html)", {}, true});
  b.force(a.force);
  b.value("--title", a.title, {{}, "TEXT", "of the page", {}, false});
  b.page_size(a.page_size);
  b.source(a.source);
  b.input(a.input);
  b.view(a.view, true);
  text().more =
      "The page is one file that needs nothing else: no network, no server. It can be mailed and kept. The "
      "choices of the view say what goes in; within the page everything is chosen anew. What --show and "
      "--weight say is what it begins with.";
}

void Grammar::describe_import() {
  CommandBuilder b = command("import", "make a recording of what another tool recorded", "[options] FILE");
  text().examples = {
      {"phlox import perf.data -o app.phlox", "what perf record wrote"},
      {"perf record -o - -F 999 --call-graph dwarf -- python3 app.py | phlox import - -o app.phlox",
       "the same without a file between"},
      {"phlox import perf.data --sysroot /mnt/server", "of a machine whose files lie elsewhere"}};
  auto& a = line.import_;
  b.positional("FILE", a.file, {{}, "", "the file, or - for standard input", {}, true});
  b.value("-o,--output", a.output,
          {{}, "FILE", "where to (default: the file's name with .phlox behind it)", {}, true});
  b.input(a.input);
  text().more =
      "report, diff and export take such a file too, without importing it first. What a format does not "
      "know "
      "stays empty.";
}

void Grammar::describe_pyflame() {
  command("pyflame", "Pyflame's own command line and output",
          "[options] [-p] PID | -t COMMAND [ARGUMENT...]");
  text().examples = {{"phlox pyflame -s 60 -r 0.01 -p 4711 -o prof.txt",
                      "as Pyflame; also when phlox is called by the name pyflame"},
                     {"phlox pyflame -x -t python3 app.py | flamegraph.pl > app.svg",
                      "a new program, without its idle time"}};
  text().more = "phlox pyflame --help lists its options.";
}

void Grammar::describe_snapshot() {
  CommandBuilder b =
      command("snapshot", "copy a recording while it is recorded", "[options] -p RECORDER | FILE");
  text().examples = {
      {"phlox snapshot -p $(pgrep -x phlox) -o incident.phlox", "what a recorder has until now"},
      {"phlox snapshot app.phlox", "the same by its file: app-20261123-093000.phlox"}};
  auto& a = line.snapshot;
  b.value("-p,--pid", a.pid, {{}, "RECORDER", "the process id of a phlox that records", {}, false});
  b.positional("FILE", a.file, {{}, "", "its recording", {}, true});
  b.value("-o,--output", a.output,
          {{}, "FILE", "where to (default: named after the recording and the time)", {}, true});
  text().more =
      "The recorder is not held up. With record --keep 1h, this is how the last hour is kept when "
      "something "
      "happened: phlox record -r 20 --keep 1h --max-size 200M -o app.phlox -p PID, for days.";
}

void Grammar::describe_label() {
  CommandBuilder b = command("label", "give names to stretches of a recording's time", "RECORDING FILE");
  text().examples = {{"phlox label app.phlox tests.tsv", "which test ran when, from a file"},
                     {"phlox report --label 'test_slow|test_big' app.phlox", "then: the time of some"},
                     {"phlox export --by label app.phlox -o tests.svg", "and all of it, label by label"}};
  auto& a = line.label;
  b.positional("RECORDING", a.recording, {{}, "", "a recording that is over", {}, true});
  b.positional(
      "FILE", a.file,
      {{}, "", "START, END and TEXT a line, divided by tabs; nanoseconds of CLOCK_MONOTONIC", {}, true});
  text().more =
      "Labels may be of tests, requests, phases: whatever the program knows and its stacks do not tell. "
      "Where two "
      "overlap, the one that began last counts. pytest --phlox does this by itself.";
}

void Grammar::describe_doctor() {
  CommandBuilder b = command("doctor", "check what recording needs, and what helps", "[options] [-p PID]");
  text().examples = {
      {"phlox doctor", "what this machine lets phlox do"},
      {"phlox doctor -p 4711", "and with this process; the last line says how it would be recorded"},
      {"phlox doctor -p 4711 && phlox record -p 4711", "only where it works"}};
  auto& a = line.doctor;
  b.running_process("-p,--pid", a.pid, "the process that is to be recorded");
  b.container(a.container);
  b.flag("--json", a.json, "JSON, as docs/json/ describes it");
  b.values("--debug-path", a.debug_paths,
           {{}, "FOLDER", "look for separate debug files here first; may be repeated", {}, true});
  text().more =
      "What does no harm is tried, not guessed, and nothing of the process is stopped: it is looked at for "
      "less "
      "than a second as record would, into no file. Its exit status is 0 where record would work, else "
      "that "
      "of record.";
}

void Grammar::describe_rest() {
  CommandBuilder h = command("help", "show the help of a command", "[COMMAND]");
  text().examples = {{"phlox help record", "the same as phlox record --help"}};
  h.positional("COMMAND", line.help.command, {{}, "", "a command", {}, false});
  command("man", "print the manual page", "");
  text().examples = {{"phlox man | man -l -", "read it"},
                     {"phlox man > /usr/local/share/man/man1/phlox.1", "install it"}};
  CommandBuilder c = command("completions", "print the completions of a shell", "SHELL");
  text().examples = {
      {"phlox completions bash > ~/.local/share/bash-completion/completions/phlox", "for bash"},
      {"phlox completions fish > ~/.config/fish/completions/phlox.fish", "for fish"}};
  c.positional("SHELL", line.completions.shell,
               {{}, "", "bash, zsh or fish", {"bash", "zsh", "fish"}, false});
}

}  // namespace phlox::cli
