#include <fmt/format.h>

#include <algorithm>

#include "phlox/cli/commands.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/process_of.h"
#include "phlox/cli/values.h"
#include "phlox/doctor/checkup.h"
#include "phlox/doctor/findings.h"
#include "phlox/report/json_text.h"

namespace phlox::cli {
namespace {

std::string text_of(const std::vector<doctor::Check>& checks, const doctor::Plan& plan) {
  size_t name = 0;
  for (const doctor::Check& row : checks) name = std::max(name, row.name.size());
  std::string out;
  bool facts = false;
  for (const doctor::Check& row : checks) {
    // Rows that ask for action come before the first fact.
    if (row.grade == doctor::Grade::fact && !std::exchange(facts, true)) out += "\n";
    out += fmt::format("{:<6}  {:<{}}  {}\n", doctor::word_of(row.grade), row.name, name, row.found);
    for (const std::string& hint : row.hints) out += fmt::format("{:<{}}hint: {}\n", "", 10 + name, hint);
  }
  return out + "\n" + plan.line + "\n";
}

std::string json_of(const doctor::Findings& findings, const std::vector<doctor::Check>& checks,
                    const doctor::Plan& plan, int status) {
  using report::JsonText;
  return JsonText::document([&](JsonText& json) {
    json.integer("version", 1);
    json.text("kind", "doctor");
    if (findings.pid != 0) json.integer("pid", findings.pid);
    json.objects("checks", checks, [&](const doctor::Check& row) {
      json.text("name", row.name);
      json.text("grade", row.grade == doctor::Grade::fact ? "fact" : doctor::word_of(row.grade));
      json.text("found", row.found);
      json.texts("hints", row.hints);
    });
    json.objects("missing_names", findings.missing, [&](const naming::NativeRows::Missing& row) {
      json.text("module", row.names.module);
      json.text("build_id", row.names.build_id);
      json.truth("functions", row.names.no_symbols);
      json.truth("lines", row.names.no_lines);
      json.text("why", row.names.why);
      json.text("advice", row.names.advice);
    });
    json.object("record", [&] {
      json.text("forecast", doctor::word_of(plan.forecast));
      json.text("mode", plan.mode);
      json.text("why", plan.why);
      json.integer("status", status);
      if (findings.trial) {
        json.count("samples", findings.trial->samples);
        json.count("rejected", findings.trial->rejected());
        json.count("unproved", findings.trial->unproved);
      }
      json.text("line", plan.line);
    });
  });
}

Result<int> run_doctor(const CommandLine& line, Talk& talk) {
  const DoctorArguments& arguments = line.doctor;
  std::optional<pid_t> pid;
  if (auto checked = check_container(!arguments.pid.empty(), arguments.container); !checked)
    return fail(checked);
  if (!arguments.pid.empty()) {
    auto parsed = process_of(line, arguments.pid, arguments.container);
    if (!parsed) return fail(parsed);
    pid = *parsed;
  }
  NativeArguments native;
  native.debug_paths = arguments.debug_paths;
  const doctor::Findings findings = doctor::find(pid, debug_search_of(native));
  const auto checks = doctor::checks_of(findings);
  const int status = findings.refused ? exit_status(findings.refused->kind) : kSuccess;
  const doctor::Plan plan = doctor::plan_of(findings, status);
  auto output = OutputFile::open("-", {.text = true});
  if (!output) return fail(output);
  (*output)->stream() << (arguments.json ? json_of(findings, checks, plan, status) : text_of(checks, plan));
  if (auto committed = (*output)->commit(); !committed) return fail(committed);
  if (findings.refused && arguments.json) talk.detail(findings.refused->message);
  return status;
}

}  // namespace

int doctor(const CommandLine& line, Talk& talk) {
  const auto done = run_doctor(line, talk);
  if (done) return *done;
  talk.error(done.error());
  return exit_status(done.error().kind);
}

}  // namespace phlox::cli
