// Every command, option and text of the command line, described once: for the parser, and at the same time
// for the help, the manual page and the completions. Parses nothing itself (command_line.h).
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "phlox/cli/arguments.h"
#include "phlox/cli/command_builder.h"
#include "phlox/cli/description.h"

namespace phlox::cli {

// A parser bound to one CommandLine, with the options that it knows.
struct Grammar {
  Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  CommandLine line;
  CLI::App app;
  Description description;

 private:
  // A new command, whose options follow.
  CommandBuilder command(const std::string& name, const std::string& summary, const std::string& synopsis);
  CommandText& text() { return *texts_.back(); }  // of the newest command

  void describe_phlox();
  void describe_record();
  void describe_list();
  void describe_dump();
  void describe_top();
  void describe_report();
  void describe_diff();
  void describe_query();
  void describe_export();
  void describe_view();
  void describe_import();
  void describe_pyflame();
  void describe_snapshot();
  void describe_label();
  void describe_doctor();
  void describe_mcp();
  void describe_agent();
  void describe_rest();

  // The subcommands' texts may move while commands are added; they are kept here until all are added.
  std::vector<std::unique_ptr<CommandText>> texts_;
};

}  // namespace phlox::cli
