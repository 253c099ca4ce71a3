#include "phlox/cli/grammar.h"

#include <utility>

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
  describe_query();
  describe_view();
  describe_export();
  describe_import();
  describe_pyflame();
  describe_snapshot();
  describe_label();
  describe_doctor();
  describe_agent();
  describe_mcp();
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
  builder.flag("-q,--quiet", line.global.quiet, "print only errors on standard error");
  builder.flag("-v,--verbose", line.global.verbose, "print more: what was found, and how");
}

void Grammar::describe_list() {
  CommandBuilder b = command("list", "list the Python processes that are running", "[options]");
  text().examples = {{"phlox list", "which Pythons run, which one started which, and which are busy"},
                     {"sudo phlox list", "also those of other users"},
                     {"phlox list --json", "for a program to read"}};
  b.flag("--json", line.list.json, "print JSON, as docs/json/ describes it");
  text().more =
      "Every process that runs a Python is listed, whatever it is called (gunicorn, uwsgi, a program that "
      "embeds Python), with children below their parents. CPU TIME is what a process has used since it "
      "started. The worker to record is often the one that has used most.";
}

void Grammar::describe_doctor() {
  CommandBuilder b =
      command("doctor", "check what recording needs, and say what helps", "[options] [-p PID]");
  text().examples = {
      {"phlox doctor", "what this machine lets phlox do"},
      {"phlox doctor -p 4711",
       "and what it lets phlox do with this process; the last line says how it would be recorded"},
      {"phlox doctor -p 4711 && phlox record -p 4711", "record only if it works"}};
  auto& a = line.doctor;
  b.running_process("-p,--pid", a.pid, "the process to record");
  b.container(a.container);
  b.flag("--json", a.json, "print JSON, as docs/json/ describes it");
  b.values(
      "--debug-path", a.debug_paths,
      {.value = "FOLDER", .text = "first look here for separate debug files; may be repeated", .file = true});
  text().more =
      "Phlox tries what does no harm instead of guessing. It samples the process for less than a second as "
      "record would, without stopping it and without writing a file. The exit status is 0 if record would "
      "work, else the one that record would have.";
}

void Grammar::describe_mcp() {
  CommandBuilder b = command(
      "mcp", "serve the tools of phlox to a program that asks: the Model Context Protocol", "[options]");
  text().examples = {{"claude mcp add phlox -- phlox mcp", "for Claude Code; docs/mcp.md has other clients"},
                     {"phlox mcp --locals", "its dump may also show local variables"}};
  b.flag("--locals", line.mcp.locals, "let dump show local variables, which may hold secrets");
  text().more =
      "A client starts it and speaks to it over standard input and output. Its tools are list, dump, record, "
      "report, query and diff. They run the commands of the same names, with the rights of whoever started "
      "phlox mcp, and each answer names the command. No tool starts a program, writes over a file or reads "
      "with other rights. It ends when its input ends, and finishes recordings before.";
}

void Grammar::describe_rest() {
  CommandBuilder h = command("help", "show the help of a command", "[COMMAND]");
  text().examples = {{"phlox help record", "the same as phlox record --help"}};
  h.positional("COMMAND", line.help.command, {.text = "a command"});
  command("man", "print the manual page", "");
  text().examples = {{"phlox man | man -l -", "read it"},
                     {"phlox man > /usr/local/share/man/man1/phlox.1", "install it"}};
  CommandBuilder c = command("completions", "print the completions of a shell", "SHELL");
  text().examples = {
      {"phlox completions bash > ~/.local/share/bash-completion/completions/phlox", "for bash"},
      {"phlox completions fish > ~/.config/fish/completions/phlox.fish", "for fish"}};
  c.positional("SHELL", line.completions.shell,
               {.text = "bash, zsh or fish", .choices = {"bash", "zsh", "fish"}});
}

}  // namespace phlox::cli
