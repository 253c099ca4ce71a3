#include "phlox/doctor/checkup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace phlox::doctor {
namespace {

using sampler::SchedulingClass;

// A process that everything is granted for.
Findings granted() {
  Findings f;
  f.pid = 4711;
  f.retry = "record -p 4711";
  f.host.perf_paranoid = 1;
  f.state.emplace();
  f.state->pid = 4711;
  f.state->status.name = "python3";
  f.state->status.state = 'S';
  f.state->command_line = "python3 app.py";
  f.python = "CPython 3.12.1";
  f.cpus.wanted = {0, 1, 2, 3};
  f.scheduling = SchedulingClass::real_time;
  f.schedstat = f.system_call = f.events = f.kernel_events = f.kernel_names = true;
  f.most_events = 256;
  f.modules = 3;
  return f;
}

Findings without_bpf() {
  Findings f = granted();
  f.no_kernel_capture =
      Error{ErrorKind::permission, "the kernel takes no program from this user", "sudo phlox"};
  return f;
}

Check row_of(const Findings& f, const std::string& name) {
  const auto rows = checks_of(f);
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Check& row) { return row.name == name; });
  EXPECT_NE(found, rows.end()) << name;
  return found == rows.end() ? Check{} : *found;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Checkup, everything_granted_is_good) {
  const Findings f = granted();
  for (const Check& row : checks_of(f)) {
    EXPECT_TRUE(row.grade == Grade::works || row.grade == Grade::fact) << row.name << ": " << row.found;
    EXPECT_TRUE(row.hints.empty()) << row.name;
  }
  const Plan plan = plan_of(f, 114);
  EXPECT_EQ(plan.forecast, Forecast::good);
  EXPECT_EQ(plan.mode, "in the kernel (BPF)");
}

TEST(Checkup, without_the_kernel_mode_the_next_one_is_good) {
  const Plan plan = plan_of(without_bpf(), 114);
  EXPECT_EQ(plan.forecast, Forecast::good);
  EXPECT_EQ(plan.mode, "same CPU (real time)");
}

TEST(Checkup, what_is_refused_is_said_once_in_records_words) {
  Findings f = granted();
  f.memory = {EACCES, EPERM, EACCES};
  f.refused = Error{ErrorKind::permission, "cannot read memory of process 4711: because",
                    "sudo phlox record -p 4711"};
  EXPECT_EQ(row_of(f, "memory").grade, Grade::fails);
  EXPECT_EQ(row_of(f, "memory").found, f.refused->message);
  EXPECT_EQ(row_of(f, "memory").hints, std::vector<std::string>{f.refused->hint});
  EXPECT_EQ(plan_of(f, 114).forecast, Forecast::none);
  EXPECT_EQ(plan_of(f, 114).line,
            "phlox record -p 4711 would fail with status 114: cannot read memory of process 4711: because");
}

TEST(Checkup, the_ordinary_class_leans) {
  Findings f = without_bpf();
  f.scheduling = SchedulingClass::ordinary;
  f.real_time = EPERM;
  EXPECT_EQ(plan_of(f, 114).forecast, Forecast::fair);
  EXPECT_TRUE(holds(plan_of(f, 114).why, "biased"));
  f.scheduling = SchedulingClass::short_slice;
  EXPECT_EQ(plan_of(f, 114).forecast, Forecast::good);
}

TEST(Checkup, a_refused_cpu_is_read_by_stops_or_unproved) {
  Findings f = without_bpf();
  f.cpus.refused = {2, 3};
  f.cpus.error = EINVAL;
  EXPECT_EQ(plan_of(f, 114).forecast, Forecast::fair);
  EXPECT_EQ(plan_of(f, 114).mode, "same CPU (real time), ptrace stop where that CPU is refused");
  EXPECT_TRUE(holds(row_of(f, "CPUs").found, "may not use 2-3 of its CPUs 0-3"));
  f.cpus.refused = f.cpus.wanted;
  EXPECT_EQ(plan_of(f, 114).mode, "ptrace stop (the program's CPUs are refused)");
  f.stop = EPERM;
  EXPECT_EQ(plan_of(f, 114).forecast, Forecast::poor);
  EXPECT_EQ(plan_of(f, 114).mode, "hands off (unproved) (the program's CPUs are refused)");
  f.stop = 0;
  f.state->status.tracer = 17;
  EXPECT_EQ(plan_of(f, 114).forecast, Forecast::poor);
}

TEST(Checkup, no_schedule_counts_prove_nothing) {
  Findings f = without_bpf();
  f.schedstat = false;
  EXPECT_EQ(plan_of(f, 114).forecast, Forecast::poor);
  EXPECT_TRUE(holds(plan_of(f, 114).mode, "unproved"));
}

TEST(Checkup, a_trial_that_rejects_much_is_not_good) {
  Findings f = granted();
  f.trial.emplace();
  f.trial->mode = "same CPU (real time)";
  f.trial->samples = 100;
  f.trial->rejected_moved = 5;
  EXPECT_EQ(plan_of(f, 114).forecast, Forecast::fair);
  EXPECT_TRUE(holds(plan_of(f, 114).line, "100 samples were tried, 5 rejected"));
  f.trial->rejected_moved = 1;
  EXPECT_EQ(plan_of(f, 114).forecast, Forecast::good);
}

TEST(Checkup, native_frames_come_from_the_mode_that_a_recording_would_use) {
  Findings f = granted();
  EXPECT_EQ(row_of(f, "--native").found,
            "would use: in the kernel (BPF), with native frames, the kernel's too");
  f = without_bpf();
  EXPECT_EQ(row_of(f, "--native").found,
            "would use: same CPU (real time), native frames by perf events, the kernel's too");
  EXPECT_EQ(row_of(f, "--native").grade, Grade::works);
  f.events = false;
  EXPECT_EQ(row_of(f, "--native").found, "would use: ptrace stop of running threads, with native frames");
  EXPECT_EQ(row_of(f, "--native").grade, Grade::partly);
  f.stop = EPERM;
  EXPECT_TRUE(holds(row_of(f, "--native").found, "native frames of blocked threads only"));
}

TEST(Checkup, kernel_frames_without_names) {
  Findings f = granted();
  f.kernel_names = false;
  f.host.kptr_restrict = 2;
  EXPECT_TRUE(holds(row_of(f, "kernel frames").found, "kernel.kptr_restrict 2"));
  f.kernel_events = false;
  EXPECT_TRUE(holds(row_of(f, "kernel frames").found, "CAP_PERFMON"));
  EXPECT_EQ(row_of(f, "kernel frames").hints.size(), 1u);
}

TEST(Checkup, missing_names_are_listed_up_to_a_few) {
  Findings f = granted();
  f.modules = 10;
  for (int i = 0; i < 7; ++i) {
    symbols::MissingNames names;
    names.module = "/lib/lib" + std::to_string(i) + ".so";
    names.no_symbols = i < 2;
    names.no_lines = true;
    f.missing.push_back({profile::ModuleId(static_cast<uint32_t>(i + 1)), nullptr, names});
  }
  EXPECT_TRUE(holds(row_of(f, "symbols").found, "8 of 10 files"));
  EXPECT_TRUE(holds(row_of(f, "lines").found, "3 of 10 files"));
  ASSERT_EQ(row_of(f, "lines").hints.size(), 6u);
  EXPECT_EQ(row_of(f, "lines").hints.back(), "and 2 more (--json lists them)");
}

TEST(Checkup, a_quota_of_ours_holds_us_back) {
  Findings f = granted();
  f.groups.quota = 0.5;
  f.groups.periods = 100;
  f.groups.throttled = 12;
  EXPECT_EQ(row_of(f, "control groups").grade, Grade::partly);
  EXPECT_TRUE(holds(row_of(f, "control groups").found, "at most 0.5 CPUs, throttled in 12 of 100 periods"));
}

TEST(Checkup, of_the_host_alone_nothing_of_a_process_is_said) {
  Findings f = granted();
  f.pid = 0;
  f.state.reset();
  for (const Check& row : checks_of(f))
    EXPECT_TRUE(row.name != "process" && row.name != "Python" && row.name != "files" &&
                row.name != "symbols");
  EXPECT_EQ(plan_of(f, 114).forecast, Forecast::good);
}

}  // namespace
}  // namespace phlox::doctor
