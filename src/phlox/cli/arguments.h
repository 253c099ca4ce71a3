// The words of a command line, sorted by command, before they are interpreted. command_line.cpp fills it, the
// commands read it. Values are the user's text; arguments of other commands are empty.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/selection/chosen.h"

namespace phlox::cli {

struct GlobalArguments {
  bool quiet = false;
  bool verbose = false;
  bool help = false;
  bool version = false;
};

// The choices of a view, the same for every command that shows a recording.
struct ViewArguments {
  std::string by, show, states, thread, pid, time, weight, label, endpoint, trace;
  std::string native_names;  // only of export
  bool all_frames = false, inherited_frames = false, no_awaiters = false;
};

// Options of commands that read a process.
struct NativeArguments {
  bool native = false, debuginfod = false;
  std::string source;
  std::vector<std::string> debug_paths;
};

// Recordings of incidents.
struct TriggerArguments {
  std::vector<std::string> on;
  std::string before, after, max_incidents, incident_space;
};

struct RecordArguments {
  std::vector<std::string> pids;
  std::string container;
  selection::Chosen selection;
  std::string duration, rate, output, max_overhead, mode;
  std::string keep, max_size, stall, max_pause, ready_fd;
  TriggerArguments triggers;
  bool append = false;
  bool no_follow = false, no_async = false, hands_off = false, force = false, source = false;
  NativeArguments native;
  ViewArguments view;
};

// Options of commands that take a recording: for one that another tool made.
struct InputArguments {
  std::string from, event, sysroot;
  std::vector<std::string> debug_paths;
  bool debuginfod = false;
};

struct ImportArguments {
  std::string file, output;
  InputArguments input;
};

struct ExportArguments {
  std::string file, format, output, title, page_size;
  bool force = false, source = false;
  InputArguments input;
  ViewArguments view;
};

struct ViewCommandArguments {
  std::string file, output, title, page_size;
  bool force = false, source = false;
  InputArguments input;
  ViewArguments view;
};

struct ReportArguments {
  std::vector<std::string> files;
  std::string top, stall;
  bool json = false, markdown = false, source = false;
  InputArguments input;
  ViewArguments view;
};

// Represents the -- of `phlox diff A A -- B B`, so that options may follow it.
inline constexpr std::string_view kSides = "\x1f";

struct DiffArguments {
  // As kSides separates them; without it, the first and the second of two.
  std::vector<std::string> files;
  std::string output, top, per, margin;
  bool json = false, markdown = false, force = false;
  std::vector<std::string> fail_if;
  InputArguments input;
  ViewArguments view;
};

struct DumpArguments {
  std::string pid, container;
  std::string async_tasks;  // "all", or "groups" or empty
  bool json = false, locals = false, all_frames = false, no_follow = false, no_async = false;
  NativeArguments native;
};

struct ListArguments {
  bool json = false;
};

struct QueryArguments {
  std::string file, sql, rows;
  bool json = false;
};

struct McpArguments {
  bool locals = false;
};

struct AgentArguments {
  selection::Chosen selection;
  std::vector<std::string> otlp, otlp_grpc, pyroscope, parca;
  std::string interval, rate, max_overhead, mode;
  std::string buffer, state, header_file, listen, output, keep;
  bool no_async = false;
  NativeArguments native;
  TriggerArguments triggers;
};

struct TopArguments {
  std::vector<std::string> pids;
  selection::Chosen selection;
  std::string file, container, rate, interval, window, count, filter, page;
  bool no_follow = false;
  NativeArguments native;
};

struct SnapshotArguments {
  std::string pid, file, output;
};

struct LabelArguments {
  std::string recording, file;
};

struct DoctorArguments {
  std::string pid, container;
  bool json = false;
  std::vector<std::string> debug_paths;
};

struct HelpArguments {
  std::string command;
};

struct CompletionsArguments {
  std::string shell;
};

struct CommandLine {
  std::string command;  // "record"; empty: none given
  GlobalArguments global;
  RecordArguments record;
  ExportArguments export_;
  ViewCommandArguments view;
  ReportArguments report;
  DiffArguments diff;
  DumpArguments dump;
  TopArguments top;
  SnapshotArguments snapshot;
  ImportArguments import_;
  DoctorArguments doctor;
  LabelArguments label;
  ListArguments list;
  QueryArguments query;
  McpArguments mcp;
  AgentArguments agent;
  HelpArguments help;
  CompletionsArguments completions;
  bool has_program = false;          // "--" was there
  std::vector<std::string> program;  // the words after it
  std::string text;                  // all words, for the recording's meta
  // The command's options by any name: as the user spelled them.
  std::map<std::string, std::string> typed;
};

}  // namespace phlox::cli
