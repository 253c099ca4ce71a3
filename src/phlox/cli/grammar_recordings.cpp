// The commands that read recordings: report, diff, query, export, view, import, label.
#include <fmt/format.h>

#include "phlox/cli/grammar.h"
#include "phlox/exporters/registry.h"

namespace phlox::cli {

void Grammar::describe_report() {
  CommandBuilder b = command("report", "print where the time of a recording went", "[options] FILE...");
  text().examples = {{"phlox report app.phlox", "hot functions and lines, threads, findings"},
                     {"phlox report --source --state running app.phlox",
                      "the source, with the share of running time of each line"},
                     {"phlox report monday.phlox tuesday.phlox", "one report about both"},
                     {"phlox report --json app.phlox", "for a program to read"}};
  auto& a = line.report;
  b.positionals("FILE", a.files,
                {.text = "a recording; if you give several, one report about all of them", .file = true});
  b.value("--top", a.top, {.value = "N", .text = "the number of rows in a table (default 15)"});
  b.value(
      "--stall", a.stall,
      {.value = "DURATION",
       .text = "report an event loop that does not wait for events for this long as a stall (default 50ms)"});
  b.flag("--json", a.json, "print JSON, as docs/json/ describes it");
  b.flag("--markdown", a.markdown, "print Markdown");
  b.flag("--source", a.source, "print the source of the hot files, with the share of each line");
  b.input(a.input);
  b.view(a.view, true);
}

void Grammar::describe_diff() {
  CommandBuilder b = command("diff", "compare recordings: did a change help?",
                             "[options] BEFORE AFTER, or BEFORE... -- AFTER...");
  text().examples = {
      {"phlox diff before.phlox after.phlox",
       "do these two recordings differ, by how many seconds, and where"},
      {"phlox diff a1 a2 a3 a4 a5 -- b1 b2 b3 b4 b5",
       "would other runs differ too? A test with several runs of each version, recorded in turn"},
      {"phlox diff before.phlox after.phlox -o diff.html", "one page with both, and with what differs"},
      {"phlox diff before.phlox after.phlox --fail-if 'total(json.loads) > +10%'",
       "fail in CI (exit status 3)"}};
  auto& a = line.diff;
  b.positionals(
      "FILE", a.files,
      {.text = "two recordings, or several for each side, with -- between the sides", .file = true});
  b.value("-o,--output", a.output,
          {.value = "FILE",
           .text = "write a page with both recordings (.html) or a differential flame graph (.svg)",
           .file = true});
  b.force(a.force);
  b.value("--top", a.top, {.value = "N", .text = "the number of rows in a table (default 15)"});
  b.flag("--json", a.json, "print JSON, as docs/json/ describes it");
  b.flag("--markdown", a.markdown, "print Markdown");
  b.values("--fail-if", a.fail_if,
           {.value = "CONDITION",
            .text = "exit with status 3 if this is true of the whole 99 % interval: 'total(NAME) > +10%' (of "
                    "its time), 'self(NAME) > 5%' (of AFTER), 'total > +2s'; exit with status 4 if NAME is "
                    "in none of the recordings; may be repeated"});
  b.value("--per", a.per,
          {.value = "WHAT",
           .text = "compare the time of a run, or of a second of recording (default: run, if every recording "
                   "covers a whole run: phlox record -- PROGRAM)",
           .choices = {"run", "second"}});
  b.value("--margin", a.margin,
          {.value = "PERCENT",
           .text = "report only differences above this share of a function's time, and above a tenth of this "
                   "share of the whole (default 10)"});
  b.input(a.input);
  b.view(a.view, true, false);
}

void Grammar::describe_query() {
  CommandBuilder b = command("query", "ask a recording with SQL", "[options] FILE SQL");
  text().examples = {
      {"phlox query app.phlox 'SELECT * FROM function_total ORDER BY wall_s DESC LIMIT 20'",
       "functions by the time of all that they called"},
      {"phlox query app.phlox \"SELECT name, sql FROM sqlite_schema\"", "which tables there are"},
      {"phlox query --json app.phlox 'SELECT tid, name FROM thread'", "for a program to read"}};
  auto& a = line.query;
  b.positional("FILE", a.file, {.text = "a recording", .file = true});
  b.positional("SQL", a.sql, {.text = "one SELECT in SQLite's SQL; docs/recording.md has the tables"});
  b.value("--rows", a.rows, {.value = "N", .text = "the most rows to print (default 1000)"});
  b.flag("--json", a.json, "print JSON, as docs/json/ describes it");
  text().more =
      "The recording is only read: anything but SELECT is refused, and so are functions that reach beyond "
      "the rows. A query ends after 10 seconds, and the answer after --rows rows or 4 MB; phlox says so. The "
      "file may come from anybody.";
}

void Grammar::describe_export() {
  CommandBuilder b = command("export", "write a recording in another format", "[options] FILE");
  text().examples = {{"phlox export app.phlox -f svg -o app.svg", "the flame graph, for a browser"},
                     {"phlox export app.phlox --by line,thread --state running,runnable -o app.svg",
                      "lines grouped by thread, only busy time"},
                     {"phlox export app.phlox -f collapsed | grep parse",
                      "one line for each stack, for flame graph scripts and grep"}};
  auto& a = line.export_;
  b.positional("FILE", a.file, {.text = "a recording", .file = true});
  std::vector<std::string> names;
  std::string kinds;
  for (const auto& format : exporters::formats()) {
    names.emplace_back(format.name);
    kinds += fmt::format("{}{}: {}", kinds.empty() ? "" : "; ", format.name, format.description);
  }
  b.value("-f,--format", a.format,
          {.value = "FORMAT",
           .text = kinds + " (default: by the extension of -o, else collapsed)",
           .choices = names});
  b.value("-o,--output", a.output,
          {.value = "FILE", .text = "the file to write (default, or -: standard output)", .file = true});
  b.force(a.force);
  b.value("--title", a.title, {.value = "TEXT", .text = "the title of a picture or page"});
  b.page_size(a.page_size);
  b.source(a.source);
  b.value(
      "--native-names", a.view.native_names,
      {.value = "FORM",
       .text =
           "how to name functions of C++ and Rust. full: with namespaces and template arguments (default, "
           "except in pictures); short: without (a picture shows the full name when you point at it)",
       .choices = {"full", "short"}});
  b.input(a.input);
  b.view(a.view, true);
}

void Grammar::describe_view() {
  CommandBuilder b = command("view", "show a recording in the browser", "[options] FILE");
  text().examples = {{"phlox view app.phlox", "write app.phlox.html, and open it where there is a desktop"},
                     {"phlox view app.phlox -o /srv/www/app.html", "write it where others find it"}};
  auto& a = line.view;
  b.positional("FILE", a.file, {.text = "a recording", .file = true});
  b.value("-o,--output", a.output,
          {.value = "FILE", .text = "the file to write (default: FILE.html)", .file = true});
  b.force(a.force);
  b.value("--title", a.title, {.value = "TEXT", .text = "the title of the page"});
  b.page_size(a.page_size);
  b.source(a.source);
  b.input(a.input);
  b.view(a.view, true);
  text().more =
      "The page is one file that needs no network and no server; you can mail it and keep it. The choices of "
      "the view say what goes into the page; in the page you can choose again. It begins with what --show "
      "and --weight say.";
}

void Grammar::describe_import() {
  CommandBuilder b = command("import", "turn another tool's file into a recording", "[options] FILE");
  text().examples = {
      {"phlox import perf.data -o app.phlox", "what perf record wrote"},
      {"perf record -o - -F 999 --call-graph dwarf -- python3 app.py | phlox import - -o app.phlox",
       "the same without a file in between"},
      {"phlox import perf.data --sysroot /mnt/server", "from a machine whose files are elsewhere"}};
  auto& a = line.import_;
  b.positional("FILE", a.file, {.text = "the file, or - for standard input", .file = true});
  b.value("-o,--output", a.output,
          {.value = "FILE",
           .text = "the file to write (default: the file's name with .phlox added)",
           .file = true});
  b.input(a.input);
  text().more =
      "report, diff, view and export also read such a file directly. What a format does not know stays "
      "empty.";
}

void Grammar::describe_label() {
  CommandBuilder b = command("label", "give names to spans of a recording's time", "RECORDING FILE");
  text().examples = {
      {"phlox label app.phlox tests.tsv", "which test ran when, from a file"},
      {"phlox report --label 'test_slow|test_big' app.phlox", "then: the time of some labels"},
      {"phlox export --by label app.phlox -o tests.svg", "and all of the time, label by label"}};
  auto& a = line.label;
  b.positional("RECORDING", a.recording, {.text = "a finished recording", .file = true});
  b.positional(
      "FILE", a.file,
      {.text = "START, END and TEXT on each line, separated by tabs; in nanoseconds of CLOCK_MONOTONIC",
       .file = true});
  text().more =
      "A label may name a test, a request or a phase: what the program knows and its stacks do not show. "
      "Where two overlap, the one that began last counts. pytest --phlox writes labels by itself.";
}

}  // namespace phlox::cli
