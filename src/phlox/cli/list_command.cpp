#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "phlox/cli/commands.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/output_file.h"
#include "phlox/process/process_tree.h"
#include "phlox/report/json_text.h"
#include "phlox/selection/pythons.h"

namespace phlox::cli {
namespace {

struct Row {
  const selection::PythonProcess* process;
  size_t depth;  // below other listed Pythons
};

// Children below their parents, in the order of their ids.
std::vector<Row> in_tree_order(const std::vector<selection::PythonProcess>& processes) {
  std::multimap<pid_t, const selection::PythonProcess*> children;
  std::vector<Row> waiting;
  const auto is_listed = [&](pid_t pid) {
    return std::any_of(processes.begin(), processes.end(),
                       [&](const selection::PythonProcess& p) { return p.pid == pid; });
  };
  for (const selection::PythonProcess& p : processes) {
    if (is_listed(p.parent)) {
      children.emplace(p.parent, &p);
    } else {
      waiting.push_back({&p, 0});
    }
  }
  std::reverse(waiting.begin(), waiting.end());
  std::vector<Row> rows;
  // The processes were not read at one moment: two that name each other as parent would cause an endless
  // loop.
  while (!waiting.empty() && rows.size() < processes.size()) {
    const Row row = waiting.back();
    waiting.pop_back();
    rows.push_back(row);
    const auto [first, last] = children.equal_range(row.process->pid);
    std::vector<Row> own;
    for (auto at = first; at != last; ++at) own.push_back({at->second, row.depth + 1});
    waiting.insert(waiting.end(), own.rbegin(), own.rend());
  }
  return rows;
}

// "0:07", "12:31", "3:02:11", as in ps.
std::string time_words(Nanoseconds time) {
  const int64_t s = time / kSecond;
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string table_of(const std::vector<Row>& rows, size_t width) {
  size_t user = 4, version = 6;
  for (const Row& row : rows) {
    user = std::max(user, row.process->user.size());
    version = std::max(version, row.process->version.size());
  }
  std::string out = fmt::format("{:>7}  {:<{}}  {:<{}}  {:>9}  {}\n", "PID", "USER", user, "PYTHON", version,
                                "CPU TIME", "COMMAND");
  for (const Row& row : rows) {
    const selection::PythonProcess& p = *row.process;
    std::string line = fmt::format("{:>7}  {:<{}}  {:<{}}  {:>9}  {}{}", p.pid, p.user, user,
                                   p.version.empty() ? "?" : p.version, version, time_words(p.cpu_time),
                                   std::string(2 * row.depth, ' '), p.command);
    if (width > 0 && line.size() > width) line.resize(width);
    out += line + "\n";
  }
  return out;
}

std::string json_of(const std::vector<Row>& rows, size_t hidden) {
  return report::JsonText::document([&](report::JsonText& json) {
    json.text("format", "phlox list");
    json.integer("version", 1);
    json.objects("processes", rows, [&](const Row& row) {
      const selection::PythonProcess& p = *row.process;
      json.integer("pid", p.pid);
      json.integer("parent", p.parent);
      json.text("user", p.user);
      json.text("python_version", p.version);
      json.integer("cpu_ns", p.cpu_time);
      json.text("command_line", p.command);
    });
    json.count("not_readable", hidden);
  });
}

}  // namespace

int list(const CommandLine& line, Talk& talk) {
  auto processes = process::read_processes();
  std::erase(processes, ::getpid());
  python::Recogniser recogniser;
  const selection::Pythons pythons = selection::find_pythons(processes, recogniser);
  winsize size{};
  const bool terminal = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 40;
  auto output = OutputFile::open("-", {.text = true});
  const std::vector<Row> rows = in_tree_order(pythons.found);
  const bool as_text = !line.list.json && !rows.empty();
  if (output && line.list.json) (*output)->stream() << json_of(rows, pythons.hidden);
  if (output && as_text) (*output)->stream() << table_of(rows, terminal ? size.ws_col : 0);
  if (line.list.json && talk.wants_text()) talk.text(table_of(rows, 0));
  const auto done = output ? (*output)->commit() : Result<void>(fail(output));
  if (!done) {
    talk.error(done.error());
    return exit_status(done.error().kind);
  }
  if (pythons.found.empty()) talk.note("no Python that you may read is running here");
  if (pythons.hidden > 0) {
    const char* more = ::geteuid() == 0 ? "not by root either" : "all Pythons: sudo phlox list";
    talk.note(fmt::format("{} process{} may not be read; {}", pythons.hidden, pythons.hidden == 1 ? "" : "es",
                          more));
  }
  return kSuccess;
}

}  // namespace phlox::cli
