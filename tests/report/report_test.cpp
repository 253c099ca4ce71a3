#include "phlox/report/report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "phlox/profile/counters.h"
#include "phlox/profile/cpu_shortage.h"
#include "phlox/profile/unfinished.h"
#include "phlox/report/json_text.h"
#include "phlox/report/table.h"
#include "report/schema.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using namespace phlox::profile;
using namespace phlox::view;
using test::ProfileMaker;

constexpr Nanoseconds kMs = 1'000'000;

// Two workers that want the GIL, a main thread that waits for a lock.
void fill(ProfileMaker& maker, Sink& sink) {
  sink.emit_meta("machine", "x86_64");
  const ThreadId main = maker.thread("MainThread"), a = maker.thread("worker-a"),
                 b = maker.thread("worker-b");
  auto blocked = [&](ThreadId thread, const char* stack, Nanoseconds wall, GilState gil) {
    maker.put(maker.blocked(thread, stack, wall, 202, gil));
  };
  for (int i = 0; i < 100; ++i) {
    blocked(main, "main:5;threading.py/join:10;threading.py/wait:20", 10 * kMs, GilState::none);
    maker.add(a, "run:7;crunch:30", 6 * kMs);
    blocked(a, "run:7;crunch:30", 4 * kMs, GilState::waits);
    blocked(b, "run:7;parse:40", 6 * kMs, GilState::waits);
    maker.add(b, "run:7;parse:41;json/decoder.py/decode:12", 4 * kMs);
  }
}

Report report_of(const Profile& profile, const ReportOptions& options = {}) {
  auto report = make_report(profile, options);
  EXPECT_TRUE(report);
  return report ? *report : Report{};
}

class ReportOf : public testing::Test {
 protected:
  void SetUp() override { fill(maker, profile); }
  Profile profile;
  ProfileMaker maker{profile};
};

TEST_F(ReportOf, functions_are_ranked) {
  const Report report = report_of(profile);
  EXPECT_EQ(report.total, 3000 * kMs);
  EXPECT_EQ(report.elapsed, 1000 * kMs);
  ASSERT_GE(report.functions.size(), 4u);
  EXPECT_EQ(report.functions[0].name, "wait");
  EXPECT_EQ(report.functions[0].self.weight, 1000 * kMs);
  EXPECT_EQ(report.functions[1].name, "crunch");
  EXPECT_EQ(report.totals[0].name, "wait");
  EXPECT_EQ(report.totals[0].total.weight, 1000 * kMs);
  ASSERT_EQ(report.common.size(), 3u);
  EXPECT_EQ(report.common[0].name, "run");
  EXPECT_EQ(report.common[0].total.weight, 2000 * kMs);
  EXPECT_EQ(report.common[2].name, "join");
  for (const FunctionRow& row : report.functions) {
    EXPECT_LE(row.self.low, row.self.share);
    EXPECT_GE(row.self.high, row.self.share);
  }
  EXPECT_EQ(report.lines[0].line, 20);
}

TEST_F(ReportOf, choices_apply) {
  ReportOptions options;
  options.choices.weight = Weight::cpu;
  options.limit = 1;
  const Report report = report_of(profile, options);
  EXPECT_EQ(report.functions.size(), 1u);
  EXPECT_EQ(report.functions[0].name, "crunch");
  EXPECT_DOUBLE_EQ(report.functions[0].self.share, 0.6);
  options.choices.thread_regex = "(";
  EXPECT_FALSE(make_report(profile, options));
}

TEST_F(ReportOf, threads_say_what_they_did) {
  const Report report = report_of(profile);
  ASSERT_EQ(report.threads.size(), 3u);
  const ThreadRow& a = report.threads[0];
  EXPECT_EQ(a.name, "Thread worker-a (4712)");
  EXPECT_EQ(a.wall, 1000 * kMs);
  EXPECT_EQ(a.cpu, 600 * kMs);
  EXPECT_EQ(a.states.running, 600 * kMs);
  EXPECT_EQ(a.states.gil_waits, 400 * kMs);
  EXPECT_EQ(a.states.idle, 0);
  EXPECT_EQ(a.busiest, "crunch");
  EXPECT_EQ(report.threads[2].states.idle, 1000 * kMs);
}

TEST_F(ReportOf, waits_say_for_what_and_where) {
  const Report report = report_of(profile);
  ASSERT_EQ(report.waits.size(), 3u);
  EXPECT_EQ(report.waits[0].what, "futex");
  EXPECT_EQ(report.waits[0].name, "wait");
  EXPECT_EQ(report.waits[0].line, 20);
  EXPECT_EQ(report.waits[1].what, "the GIL");
  EXPECT_EQ(report.waits[1].name, "parse");
  EXPECT_EQ(report.waits[1].wall, 600 * kMs);
}

TEST(Report, waits_say_for_which_file) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  profile.emit(WaitTargetId(1), {WaitTargetKind::socket, "10.0.0.5:5432", ""});
  profile.emit(WaitTargetId(2), {WaitTargetKind::client, "127.0.0.1:8000", "10.0.0.9"});
  profile.emit(WaitTargetId(3), {WaitTargetKind::client, "127.0.0.1:8000", "10.0.0.10"});
  profile.emit(WaitTargetId(4), {WaitTargetKind::time, "", ""});
  const auto wait = [&](int16_t call, uint32_t wait_target, Nanoseconds wall) {
    Sample sample = maker.sample(thread, "main:5;query:9", wall);
    sample.cpu = 0;
    sample.cpu_state = CpuState::blocked;
    sample.system_call = call;
    sample.wait_target = WaitTargetId(wait_target);
    maker.put(sample);
  };
  constexpr int16_t kRecv = 45, kSelect = 23;
  for (int i = 0; i < 20; ++i) {
    wait(kRecv, 1, 50 * kMs);
    wait(kRecv, 2, 10 * kMs);
    wait(kRecv, 3, 10 * kMs);
    wait(kRecv, 0, 5 * kMs);
    wait(kSelect, 4, 1 * kMs);
  }
  const Report report = report_of(profile);
  ASSERT_EQ(report.waits.size(), 4U);
  EXPECT_EQ(report.waits[0].wait_target_kind, "socket");
  EXPECT_EQ(report.waits[0].wait_target, "10.0.0.5:5432");
  EXPECT_EQ(report.waits[1].wall, 400 * kMs) << "two clients";
  EXPECT_EQ(report.waits[2].wait_target_kind, "");
  const std::string text = report_text(report);
  for (const char* words : {"a socket, 10.0.0.5:5432 (recvfrom)",
                            "a socket, a client of 127.0.0.1:8000 (recvfrom)", "  a socket (recvfrom)",
                            "  sleep (select)", "most of it in recvfrom (10.0.0.5:5432) called by query"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  EXPECT_NE(report_json(report).find("\"wait_target\": \"a client of 127.0.0.1:8000\""), std::string::npos);
}

TEST_F(ReportOf, a_wait_that_took_no_time_has_no_row) {
  Sample sample = maker.sample(maker.thread("MainThread"), "main:5;nap:8", 0);
  sample.cpu_state = CpuState::blocked;
  sample.system_call = 230;
  maker.put(sample);
  EXPECT_EQ(report_of(profile).waits.size(), 3u);
}

TEST_F(ReportOf, findings_name_waiters_and_holders_of_the_gil) {
  const Report report = report_of(profile);
  const Finding* gil = nullptr;
  for (const Finding& finding : report.findings) {
    if (finding.kind == "gil_wait" && gil == nullptr) gil = &finding;
  }
  ASSERT_NE(gil, nullptr);
  EXPECT_EQ(
      gil->text,
      "Thread worker-b (4713) spends 60.0 % of its wall time waiting for the GIL, which Thread worker-a "
      "(4712) held for 100.0 % of that time, mostly in crunch");
  EXPECT_EQ(gil->numbers[0], (std::pair<std::string, double>("wall_share", 0.6)));
}

TEST_F(ReportOf, each_waiter_for_the_gil_has_its_holders) {
  const Report report = report_of(profile);
  ASSERT_EQ(report.gil_waits.size(), 2u);
  const GilWaitRow& b = report.gil_waits[0];
  EXPECT_EQ(b.thread, "Thread worker-b (4713)");
  EXPECT_EQ(b.wall, 600 * kMs);
  EXPECT_DOUBLE_EQ(b.share, 0.6);
  EXPECT_EQ(b.name + ":" + std::to_string(b.line), "parse:40");
  EXPECT_EQ(b.holder, "Thread worker-a (4712)");
  ASSERT_EQ(b.holders.size(), 1u);
  EXPECT_EQ(b.holders[0].name + ":" + std::to_string(b.holders[0].line), "crunch:30");
  EXPECT_FALSE(report.waits_exact);
  const std::string text = report_text(report);
  const size_t table = text.find("Waits for the GIL, and which thread held it\n  From samples");
  ASSERT_NE(table, std::string::npos) << text;
  EXPECT_NE(text.find("Thread worker-b (4713)  600 ms       60.0 %  parse (app.py:40)   100.0 %  Thread "
                      "worker-a (4712)  crunch (app.py:30)",
                      table),
            std::string::npos)
      << text;
  EXPECT_NE(report_markdown(report).find("## Waits for the GIL"), std::string::npos);
}

TEST_F(ReportOf, a_choice_of_the_waiter_leaves_its_holder) {
  ReportOptions options;
  options.choices.thread_regex = "worker-b";
  const Report report = report_of(profile, options);
  ASSERT_EQ(report.gil_waits.size(), 1u);
  EXPECT_EQ(report.gil_waits[0].holder, "Thread worker-a (4712)");
  EXPECT_DOUBLE_EQ(report.gil_waits[0].holder_share, 1);
}

TEST(Report, waits_inside_the_kernel_are_exact) {
  Profile profile;
  ProfileMaker maker(profile);
  maker.add(maker.thread("MainThread"), "main:1", 100 * kMs);
  EXPECT_FALSE(report_of(profile).waits_exact);
  Process process = profile.process(ProcessId(1));
  for (const char* more : {"", ", with native frames, the kernel's too"}) {
    process.mode = std::string(kInTheKernel) + more;
    profile.emit(ProcessId(1), process);
    EXPECT_TRUE(report_of(profile).waits_exact) << more;
  }
}

TEST_F(ReportOf, findings_name_the_hot_function_and_line) {
  const Report report = report_of(profile);
  std::string texts;
  for (const Finding& finding : report.findings) texts += finding.text + "\n";
  EXPECT_NE(
      texts.find("60.0 % of the CPU time is spent in crunch itself (/app/app.py:1), 60.0 % in line 30\n"),
      std::string::npos)
      << texts;
  EXPECT_EQ(texts.find("one line"), std::string::npos) << texts;
  for (size_t i = 1; i < report.findings.size(); ++i)
    EXPECT_GE(report.findings[i - 1].weight, report.findings[i].weight);
}

// Fifteen of fifteen rows were how a server starts and gets to its handlers.
TEST(Report, what_all_stacks_have_in_common_is_named_and_not_listed) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId main = maker.thread("MainThread"), worker = maker.thread("worker");
  std::string boot;
  for (int i = 0; i < 20; ++i) boot += "boot" + std::to_string(i) + ":" + std::to_string(i + 1) + ";";
  for (int i = 0; i < 100; ++i) {
    maker.add(main, boot + "serve:1;view_a:2;query:3", 6 * kMs);
    maker.add(main, boot + "serve:2;view_b:2;query:3", 4 * kMs);
    maker.add(worker, "bootstrap:1;run:2;job:3", 1 * kMs);
    maker.add(worker, "bootstrap:1;run:2;clean:3", 1 * kMs);
  }
  maker.add(main, "boot0:9;import:2", 5 * kMs);  // as it began
  const Report report = report_of(profile);
  ASSERT_EQ(report.common.size(), 23u);
  EXPECT_EQ(report.common[0].name, "boot0");
  EXPECT_EQ(report.common[20].name, "serve");
  EXPECT_EQ(report.common[22].name, "run");
  ASSERT_GE(report.totals.size(), 5u);
  EXPECT_EQ(report.totals[0].name, "query");
  EXPECT_EQ(report.totals[1].name, "view_a");
  EXPECT_NE(report_text(report).find("Not listed, since all stacks that begin there go through them: boot0, "
                                     "boot1, boot2, boot3 and 19 more"),
            std::string::npos)
      << report_text(report);
}

TEST(Report, a_function_that_works_itself_is_listed_though_all_stacks_have_it) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId main = maker.thread("MainThread");
  for (int i = 0; i < 50; ++i) {
    maker.add(main, "main:1", 1 * kMs);
    maker.add(main, "main:2;help:1", 9 * kMs);
  }
  const Report report = report_of(profile);
  EXPECT_TRUE(report.common.empty());
  EXPECT_EQ(report.totals[0].name, "main");
}

TEST(Report, the_busy_one_of_three_hundred_threads_is_in_the_table) {
  Profile profile;
  profile.emit_meta("machine", "x86_64");
  ProfileMaker maker(profile);
  for (int i = 0; i < 300; ++i) {
    const ThreadId thread = maker.thread("t" + std::to_string(i));
    const std::string worker = "run:1;/lib/concurrent/futures/thread.py/_worker:2";
    maker.put(i == 250 ? maker.sample(thread, worker + ";crunch", 1000 * kMs)
                       : maker.blocked(thread, worker, 1000 * kMs, 202));
  }
  ReportOptions options;
  options.choices.show = Show::work;
  const Report report = report_of(profile, options);
  EXPECT_EQ(report.threads[0].name, "Thread t250 (4961)");
  EXPECT_EQ(report.threads_seen, 300u);
  EXPECT_EQ(report.total, 1000 * kMs);
  const std::string text = report_text(report);
  EXPECT_NE(text.find("Left out: 299 s of waiting for something to do, in 299 of 300 threads: 299 in _worker "
                      "(thread.py) (--show everything has it)"),
            std::string::npos)
      << text;
  EXPECT_NE(report_summary(report).find("299 of 300 threads"), std::string::npos);
}

TEST(Report, most_of_next_to_nothing_is_no_finding) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  for (int i = 0; i < 50; ++i) {
    Sample sample = maker.sample(thread, "main:1;fetch:9", 100 * kMs);
    sample.cpu = 20'000;
    sample.cpu_state = CpuState::blocked;
    sample.gil_state = GilState::none;
    maker.put(sample);
  }
  for (const Finding& finding : report_of(profile).findings)
    EXPECT_NE(finding.kind, "hot_function") << finding.text;
}

TEST(Report, threads_that_wait_for_the_same_holder_are_one_finding) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId holder = maker.thread("holder");
  for (int i = 0; i < 100; ++i) maker.add(holder, "run:7;crunch:30", 10 * kMs);
  for (int waiter = 0; waiter < 3; ++waiter) {
    Sample sample = maker.sample(maker.thread("waiter"), "run:7;want:1", 1000 * kMs);
    sample.cpu = 0;
    sample.cpu_state = CpuState::blocked;
    sample.gil_state = GilState::waits;
    maker.put(sample);
  }
  size_t count = 0;
  for (const Finding& finding : report_of(profile).findings) count += finding.kind == "gil_wait";
  EXPECT_EQ(count, 1u);
}

// A thread for each request: each of them held it for a moment.
TEST(Report, of_many_that_held_the_gil_in_turn_none_is_named_by_a_finding) {
  Profile profile;
  ProfileMaker maker(profile);
  Sample sample = maker.sample(maker.thread("waiter"), "run:7;want:1", 1000 * kMs);
  sample.cpu = 0;
  sample.cpu_state = CpuState::blocked;
  sample.gil_state = GilState::waits;
  maker.put(sample);
  for (int i = 0; i < 10; ++i) {
    Sample held = maker.sample(maker.thread("request-" + std::to_string(i)), "run:7;serve:1", 90 * kMs);
    held.start += i * 100 * kMs;
    maker.put(held);
  }
  const auto findings = report_of(profile).findings;
  const auto gil = std::find_if(findings.begin(), findings.end(),
                                [](const Finding& finding) { return finding.kind == "gil_wait"; });
  ASSERT_NE(gil, findings.end());
  EXPECT_EQ(gil->text, "Thread waiter (4711) spends 100.0 % of its wall time waiting for the GIL");
}

TEST(Report, a_warning_is_not_said_again_as_a_finding) {
  Profile profile;
  ProfileMaker maker(profile);
  maker.add(maker.thread("MainThread"), "main:1", 100 * kMs);
  Report report = report_of(profile);
  report.warning = "many stacks could not be read";
  report.findings.insert(report.findings.begin(), {"rejected", 1, report.warning, {}, {}});
  const std::string text = report_text(report);
  EXPECT_EQ(text.find(report.warning), text.rfind(report.warning)) << text;
}

// A thread that runs half of a second and waits for a CPU the other half.
std::string why_no_cpu(const CpuUse& use, const std::vector<profile::Descendant>& started = {}) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("worker");
  for (int i = 0; i < 50; ++i) {
    maker.add(thread, "run:7;crunch:30", 10 * kMs);
    Sample queued = maker.sample(thread, "run:7;crunch:30", 10 * kMs);
    queued.cpu = 0;
    queued.cpu_state = CpuState::runnable;
    maker.put(queued);
  }
  put_cpu_use(profile, use);
  profile::put_descendants(profile, started);
  if (use.cpus > 0) profile.emit_meta("cpus", std::to_string(use.cpus));
  for (const Finding& finding : report_of(profile).findings) {
    if (finding.kind == "cpu_wait") return finding.text.substr(finding.text.find(": ") + 2);
  }
  return "";
}

TEST(Report, says_why_threads_had_no_cpu) {
  EXPECT_EQ(why_no_cpu({}), "the machine or the container's quota is short of CPUs");
  const CpuGroup group{"/docker/abc", 0.5, 10, 9, 450 * kMs};
  EXPECT_EQ(why_no_cpu({{group}, 600 * kMs, 1400 * kMs, 0}),
            "the quota of 0.5 CPUs of control group /docker/abc was used up in 9 of 10 periods");
  const CpuGroup idle{"/docker/abc", 4, 10, 0, 0};
  EXPECT_EQ(why_no_cpu({{idle}, 1900 * kMs, 100 * kMs, 0}),
            "other programs used 70.0 % of the CPUs, the recorded processes 25.0 %");
  EXPECT_EQ(why_no_cpu({{}, 550 * kMs, 0, 0}),
            "there are more such threads than CPUs; the recorded processes used 90.9 % of the CPUs");
  // One thread does not need more than two CPUs, and others used one.
  EXPECT_EQ(why_no_cpu({{}, 1000 * kMs, 0, 0, 2, 2}),
            "other programs used 50.0 % of the CPUs, the recorded processes 50.0 %");
  EXPECT_EQ(why_no_cpu({{}, 1000 * kMs, 400 * kMs, 600 * kMs}),
            "the host of this virtual machine gave 30.0 % of its CPUs to others");
  EXPECT_EQ(why_no_cpu({{}, 1000 * kMs, 1000 * kMs, 0}),
            "the CPUs were idle 50.0 % of the recording; are these threads bound to some of them (taskset, "
            "cpuset)?");
  CpuUse half{{}, 1000 * kMs, 1000 * kMs, 0, 4, 1};
  EXPECT_EQ(why_no_cpu(half),
            "the CPUs were idle 50.0 % of the recording, but these threads may run on only 1 of 4 (taskset, "
            "cpuset)");
  half.allowed = 4;
  EXPECT_EQ(
      why_no_cpu(half),
      "the CPUs were idle 50.0 % of the recording: there was CPU time to spare, but not where or when these "
      "threads needed it");
}

TEST(Report, what_the_program_itself_started_is_no_other_program) {
  const profile::Descendant one{4712, 4711, 0, 1, 700 * kMs, false, "sh -c 'while :; do :; done'"};
  profile::Descendant two = one;
  two.pid = 4713;
  EXPECT_EQ(why_no_cpu({{}, 1900 * kMs, 100 * kMs, 0}, {one, two}),
            "processes that the program itself started used 70.0 % of the CPUs, the recorded ones 25.0 %: 2 "
            "processes sh -c "
            "'while :; do :; done' (1.40 s)");
  // Strangers used more.
  EXPECT_EQ(why_no_cpu({{}, 3000 * kMs, 100 * kMs, 0}, {one}),
            "other programs used 58.1 % of the CPUs, the recorded processes 16.1 %");
}

TEST(Report, lists_what_recorded_processes_started) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  for (int i = 0; i < 10; ++i) maker.add(thread, "main:1", 100 * kMs);
  put_descendants(profile, {{4712, 4711, 0, 1, 700 * kMs, true, "ffmpeg -i a.mp4"}});
  const Report report = report_of(profile);
  const auto finding = std::find_if(report.findings.begin(), report.findings.end(),
                                    [](const Finding& f) { return f.kind == "other_processes"; });
  ASSERT_NE(finding, report.findings.end());
  EXPECT_EQ(finding->text,
            "processes that it started used 700 ms of CPU time, 0.70 CPUs, and are not in the recording: "
            "ffmpeg -i a.mp4 (700 ms)");
  EXPECT_NE(report_text(report).find("4711  700 ms  ffmpeg -i a.mp4"), std::string::npos)
      << report_text(report);
}

// The first finding of a program that runs for 1 ms in 100, and waits with this stack.
std::string said_of_waiting(const std::string& frames, int16_t call, const std::string& missing = {}) {
  Profile profile;
  if (!missing.empty()) profile.emit_meta(std::string(profile::kCouldNotBeRead), missing);
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  for (int i = 0; i < 50; ++i) {
    maker.add(thread, "main:1;work:2", 1 * kMs);
    maker.put(maker.blocked(thread, frames, 99 * kMs, call));
  }
  const Report report = report_of(profile);
  return report.findings.empty() ? "" : report.findings[0].text;
}

// A thread that is not in the recording may be the one that works.
TEST(Report, a_program_is_not_called_waiting_if_threads_are_missing) {
  EXPECT_EQ(said_of_waiting("main:1;fetch:9", 45, "12 threads of process 4711 are not in the recording")
                .find("waits more than it works"),
            std::string::npos);
}

TEST(Report, a_waiting_program_is_called_one) {
  const std::string waits =
      "the program waits more than it works: it used 1.0 % of a CPU, and Thread MainThread (4711) was "
      "blocked 99.0 % of its time";
  EXPECT_EQ(said_of_waiting("main:1;fetch:9", 45),
            waits + ", most of it in recvfrom called by fetch (/app/app.py:9)");
  // The function that wanted it is next to that of the library.
  EXPECT_EQ(said_of_waiting("main:1;fetch:9;/usr/lib/python3.12/threading.py/wait:355", 202),
            waits +
                ", most of it in futex called by wait (/usr/lib/python3.12/threading.py:355), called from "
                "fetch (/app/app.py:9)");
  // A wait whose stack was not read has no place that could be named.
  EXPECT_EQ(said_of_waiting("(a wait whose stack was not read)", 202),
            waits + " (for 99.0 % it is not known whether it had something to do)");
}

// Eleven samples, six of which have nearly all of the CPU time.
TEST(Report, a_share_of_a_few_long_runs_is_no_finding) {
  for (const int runs : {1, 20}) {
    Profile profile;
    ProfileMaker maker(profile);
    const ThreadId thread = maker.thread("MainThread");
    for (int run = 0; run < runs; ++run) {
      for (int i = 0; i < 5; ++i) maker.add(thread, "main:1;start:2", 20 * kMs);
      maker.add(thread, "main:1;select:3", 20 * kMs);
      for (int i = 0; i < 5; ++i) maker.add(thread, "main:1;tick:4", kMs / 10);
    }
    bool is_named = false;
    for (const Finding& finding : report_of(profile).findings) {
      if (finding.kind == "hot_function") is_named |= finding.text.find("select") != std::string::npos;
    }
    EXPECT_EQ(is_named, runs == 20) << runs;
  }
}

// Woken from its sleep a thread waits for a CPU there: that is no function it was busy in.
TEST(Report, the_busiest_function_is_the_one_that_used_the_cpu) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread"), sleeper = maker.thread("sleeper");
  for (int i = 0; i < 20; ++i) {
    maker.add(thread, "main:1;work:2", 1 * kMs);
    Sample woken = maker.sample(thread, "main:1;nap:3", 5 * kMs);
    woken.cpu = 0;
    woken.cpu_state = CpuState::runnable;
    maker.put(woken);
    maker.put(maker.blocked(sleeper, "main:1;nap:3", 6 * kMs, 35));
  }
  ReportOptions options;
  options.choices.show = Show::everything;
  const Report report = report_of(profile, options);
  ASSERT_EQ(report.threads.size(), 2u);
  EXPECT_EQ(report.threads[0].busiest, "work");
  EXPECT_EQ(report.threads[1].busiest, "");
  EXPECT_NE(report_text(report).find("-  -\n"), std::string::npos);
}

TEST(Report, intervals_say_from_where_to_where_and_never_leave_what_a_share_can_be) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  for (int i = 0; i < 12; ++i) maker.add(thread, i == 0 ? "main:1;rare:2" : "main:1;often:3", 10 * kMs);
  const std::string text = report_text(report_of(profile));
  EXPECT_EQ(text.find("±"), std::string::npos) << text;
  EXPECT_NE(text.find("0.00 to "), std::string::npos) << text;
  EXPECT_NE(text.find(" to 100 %"), std::string::npos) << text;
}

// As one that was recorded inside the kernel.
void make_exact(Profile& profile) {
  Process process = profile.processes()[0];
  process.mode = std::string(kInTheKernel);
  profile.emit(ProcessId(1), process);
}

// Few samples say little of CPU time, and nothing against waits that the kernel has timed.
TEST(Report, few_samples_do_not_hide_waits_that_are_exact) {
  for (const bool exact : {false, true}) {
    Profile profile;
    profile.emit_meta("machine", "x86_64");
    ProfileMaker maker(profile);
    if (exact) make_exact(profile);
    const ThreadId thread = maker.thread("MainThread");
    maker.add(thread, "main:1;work:2", 30 * kMs);
    for (int i = 0; i < 5; ++i) maker.put(maker.blocked(thread, "main:1;fetch:9", 200 * kMs, 45));
    const Report report = report_of(profile);
    std::string text;
    for (const Finding& finding : report.findings) text += finding.text + "\n";
    EXPECT_EQ(text.find("say nothing about where time goes") != std::string::npos, !exact) << text;
    EXPECT_EQ(text.find("the program waits more than it works") != std::string::npos, exact) << text;
    EXPECT_EQ(text.find("say nothing about where CPU time goes") != std::string::npos, exact) << text;
    EXPECT_EQ(text.find("of the CPU time is spent in"), std::string::npos) << text;
  }
}

TEST(Report, a_place_that_has_less_than_half_of_the_waiting_is_not_called_most_of_it) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  for (int i = 0; i < 50; ++i) {
    maker.add(thread, "main:1;work:2", 1 * kMs);
    maker.put(maker.blocked(thread, "main:1;fetch:9", 40 * kMs, 45));
    maker.put(maker.blocked(thread, "main:1;store:9", 30 * kMs, 45));
    maker.put(maker.blocked(thread, "main:1;ask:9", 29 * kMs, 45));
  }
  const Report report = report_of(profile);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_NE(report.findings[0].text.find(
                "blocked 99.0 % of its time, the longest part in recvfrom called by fetch"),
            std::string::npos)
      << report.findings[0].text;
}

// An event loop between two requests: its waiting there does not show what to make faster.
TEST(Report, a_busiest_thread_that_waits_for_something_to_do_is_said_to) {
  Profile profile;
  profile.emit_meta("machine", "x86_64");
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  const std::string loop = "main;run_forever;/lib/asyncio/base_events.py/_run_once;";
  for (int i = 0; i < 100; ++i) {
    maker.add(thread, loop + "handle", 2 * kMs);
    maker.put(maker.blocked(thread, loop + "/usr/lib/python3.12/selectors.py/select", 98 * kMs, 232));
  }
  ReportOptions options;
  for (const Show show : {Show::work, Show::everything}) {
    options.choices.show = show;
    const Report report = report_of(profile, options);
    const auto found = std::find_if(report.findings.begin(), report.findings.end(),
                                    [](const Finding& f) { return f.kind == "mostly_idle"; });
    ASSERT_NE(found, report.findings.end());
    EXPECT_NE(found->text.find("had nothing to do for 98.0 % of its time; the program used"),
              std::string::npos)
        << found->text;
    EXPECT_EQ(report_text(report).find("waits more than it works"), std::string::npos);
  }
}

// A callback that waits keeps all others of its loop from running.
TEST(Report, an_event_loop_that_is_blocked_is_a_finding) {
  Profile profile;
  profile.emit_meta("machine", "x86_64");
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  const std::string loop = "main;/lib/asyncio/base_events.py/_run_once;";
  for (int i = 0; i < 100; ++i) {
    maker.add(thread, loop + "/lib/asyncio/events.py/_run;handle", 2 * kMs);
    maker.put(maker.blocked(thread, loop + "/lib/asyncio/events.py/_run;ask:7", 8 * kMs, 45));
    maker.put(maker.blocked(thread, loop + "/usr/lib/python3.12/selectors.py/select", 90 * kMs, 232));
  }
  const Report report = report_of(profile);
  const auto found = std::find_if(report.findings.begin(), report.findings.end(),
                                  [](const Finding& f) { return f.kind == "loop_blocked"; });
  ASSERT_NE(found, report.findings.end());
  EXPECT_EQ(
      found->text,
      "The asyncio event loop of Thread MainThread (4711): idle 90.0 %, running 2.0 %, blocked in calls "
      "8.0 % (longest in ask (app.py:1))");
  ASSERT_EQ(report.threads.size(), 1u);
  EXPECT_EQ(report.threads[0].states.for_work, 9000 * kMs);
  const std::string text = report_text(report);
  EXPECT_NE(text.find("Event loops (parts of each loop's time)"), std::string::npos) << text;
}

// It ran for long, and waited in no call: no other finding says so.
TEST(Report, an_event_loop_that_stalls_on_a_cpu_is_a_finding) {
  Profile profile;
  profile.emit_meta("machine", "x86_64");
  ProfileMaker maker(profile);
  profile::Process process = profile.process(profile::ProcessId(1));
  process.mode = profile::kInTheKernel;
  profile.emit(profile::ProcessId(1), process);
  const ThreadId thread = maker.thread("MainThread");
  const std::string loop = "main;/lib/asyncio/base_events.py/_run_once";
  const auto idle = [&] {
    maker.put(maker.blocked(thread, loop + ";/usr/lib/python3.12/selectors.py/select", 100 * kMs, 232));
  };
  for (int i = 0; i < 10; ++i) {
    idle();
    maker.add(thread, loop, 1 * kMs);
  }
  idle();
  for (int i = 0; i < 60; ++i)
    maker.add(thread, loop + ";/lib/asyncio/events.py/_run;crunch:" + std::to_string(i % 2 + 7), 2 * kMs);
  idle();
  Report report = report_of(profile);
  const auto found = std::find_if(report.findings.begin(), report.findings.end(),
                                  [](const Finding& f) { return f.kind == "loop_stalled"; });
  ASSERT_NE(found, report.findings.end());
  EXPECT_NE(
      found->text.find(". 1 time of 50 ms or more without a wait for events, in one turn or several; it "
                       "took 120 ms at 1.11 s in crunch (app.py:"),
      std::string::npos)
      << found->text;
  const std::string text = report_text(report);
  EXPECT_NE(text.find("Stalls of event loops, the longest first"), std::string::npos) << text;
  EXPECT_NE(report_json(report).find("\"kind\": \"cpu\""), std::string::npos) << report_json(report);
  ReportOptions options;
  options.shortest_stall = 130 * kMs;
  report = report_of(profile, options);
  ASSERT_EQ(report.loops.size(), 1u);
  EXPECT_EQ(report.loops[0].stalls_seen, 0u);
  EXPECT_EQ(report_text(report).find("Stalls of event loops"), std::string::npos);
}

TEST(Report, a_pool_that_waits_in_what_it_was_given_is_a_finding) {
  Profile profile;
  profile.emit_meta("machine", "x86_64");
  ProfileMaker maker(profile);
  maker.thread("MainThread", 4711);
  for (const char* name : {"pool_0", "pool_1"}) {
    const ThreadId thread = maker.thread(name);
    for (int i = 0; i < 50; ++i)
      maker.put(
          maker.blocked(thread, "/lib/concurrent/futures/thread.py/_worker;call_upstream", 20 * kMs, 45));
  }
  const Report report = report_of(profile);
  const auto found = std::find_if(report.findings.begin(), report.findings.end(),
                                  [](const Finding& f) { return f.kind == "pool_busy"; });
  ASSERT_NE(found, report.findings.end());
  EXPECT_EQ(
      found->text,
      "2 of 2 threads of ThreadPoolExecutor (pool_...) were at work 100.0 % of the time, 100.0 % of it in "
      "call_upstream (app.py:1)");
}

TEST(Report, short_of_cpus_garbage_and_imports) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  for (int i = 0; i < 20; ++i) {
    Sample sample =
        maker.sample(thread, "<frozen importlib._bootstrap>/_find_and_load:5;exec_module:6", 10 * kMs);
    sample.collecting = true;
    maker.put(sample);
    sample = maker.sample(thread, "main", 10 * kMs);
    sample.cpu_state = CpuState::runnable;
    maker.put(sample);
  }
  const Report report = report_of(profile);
  std::string kinds;
  for (const Finding& finding : report.findings) kinds += finding.kind + " ";
  for (const char* kind : {"cpu_wait", "garbage_collection", "imports"})
    EXPECT_NE(kinds.find(kind), std::string::npos) << kinds;
}

TEST(Report, imports_of_a_server_that_is_idle_ever_since_are_no_finding) {
  for (const int idle : {0, 100}) {
    Profile profile;
    profile.emit_meta("machine", "x86_64");
    ProfileMaker maker(profile);
    const ThreadId thread = maker.thread("MainThread");
    for (int i = 0; i < 20; ++i)
      maker.add(thread, "<frozen importlib._bootstrap>/_find_and_load:5;exec_module:6", 2 * kMs);
    for (int i = 0; i < idle; ++i)
      maker.put(maker.blocked(
          thread, "main;/lib/asyncio/base_events.py/_run_once;/usr/lib/python3.12/selectors.py/select",
          100 * kMs, 232));
    std::string kinds;
    for (const Finding& finding : report_of(profile).findings) kinds += finding.kind + " ";
    EXPECT_EQ(kinds.find("imports") == std::string::npos, idle > 0) << kinds;
  }
}

TEST(Report, by_program_processes_of_one_command_line_are_one_row) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId threads[] = {maker.thread("a"), maker.thread("b"), maker.thread("c")};
  for (uint32_t i = 0; i < 3; ++i) {
    Process process = profile.process(ProcessId(1));
    process.pid += static_cast<int32_t>(i);
    process.end = process.start + kSecond;
    if (i == 2) process.command_line = "python3 other.py";
    profile.emit(ProcessId(i + 1), process);
    Thread row = profile.thread(threads[i]);
    row.process = ProcessId(i + 1);
    profile.emit(threads[i], row);
    maker.add(threads[i], i == 1 ? "main:1;busy:2" : "main:1;calm:2", (i + 2) * 10 * kMs);
  }
  EXPECT_TRUE(report_of(profile).programs.empty());
  ReportOptions options;
  options.choices.by.program = true;
  const Report report = report_of(profile, options);
  ASSERT_EQ(report.programs.size(), 2u);
  EXPECT_EQ(report.programs[0].name, "python3 app.py");
  EXPECT_EQ(report.programs[0].processes, 2u);
  EXPECT_EQ(report.programs[0].threads, 2u);
  EXPECT_EQ(report.programs[0].cpu, 50 * kMs);
  EXPECT_EQ(report.programs[0].recorded, 2 * kSecond);
  EXPECT_EQ(report.programs[0].busiest, "busy");
  EXPECT_EQ(report.programs[1].name, "python3 other.py");
  const std::string text = report_text(report);
  EXPECT_NE(text.find("\nPrograms, the busiest first"), std::string::npos) << text;
  EXPECT_EQ(text.find("\nProcesses, the busiest first"), std::string::npos) << text;
  EXPECT_EQ(test::schema_violation(report_json(report), "report.schema.json"), "");
}

// This many processes, each with one thread; `collecting`: the collector's part of the second that it works.
std::string said_of_collecting(const std::vector<Nanoseconds>& collecting, Nanoseconds idle = 0) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId first = maker.thread("MainThread");
  for (uint32_t i = 0; i < collecting.size(); ++i) {
    Process process = profile.process(ProcessId(1));
    process.pid = 4711 + static_cast<int32_t>(i);
    profile.emit(ProcessId(i + 1), process);
    const ThreadId thread = i == 0 ? first : maker.thread("MainThread");
    Thread row = profile.thread(thread);
    row.process = ProcessId(i + 1);
    profile.emit(thread, row);
    Sample sample = maker.sample(thread, "main:3", idle);
    sample.cpu_state = CpuState::blocked;
    maker.put(sample);
    for (int k = 0; k < 10; ++k) {
      sample = maker.sample(thread, "main:1", collecting[i] / 10);
      sample.collecting = true;
      maker.put(sample);
      maker.add(thread, "main:2", (kSecond - collecting[i]) / 10);
    }
  }
  for (const Finding& finding : report_of(profile).findings) {
    if (finding.kind != "garbage_collection") continue;
    EXPECT_LE(finding.weight, 1);
    return finding.text;
  }
  return "";
}

TEST(Report, collectors_of_several_processes_are_no_part_of_one_time) {
  const std::string head = "the cyclic garbage collector ran for ";
  EXPECT_EQ(said_of_collecting({400 * kMs}), head + "40.0 % of the recording (400 ms)");
  EXPECT_EQ(said_of_collecting({300 * kMs, 400 * kMs, 300 * kMs}),
            head + "40.0 % of the recording (400 ms) in process 4712, and for 600 ms more in 2 others");
  EXPECT_EQ(said_of_collecting({0, 100 * kMs}), head + "10.0 % of the recording (100 ms) in process 4712");
  EXPECT_EQ(said_of_collecting({20 * kMs, 20 * kMs}), "");
  EXPECT_EQ(said_of_collecting({20 * kMs}), "");
  EXPECT_EQ(said_of_collecting({100 * kMs, 200 * kMs, 100 * kMs}, 9 * kSecond),
            head + "400 ms in 3 processes, 13.3 % of the time that they worked");
}

TEST(Report, a_collector_that_waits_for_a_cpu_does_not_run) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  for (int i = 0; i < 20; ++i) {
    for (const CpuState state : {CpuState::running, CpuState::runnable}) {
      Sample sample = maker.sample(thread, "main:1", 20 * kMs);
      sample.collecting = true;
      sample.cpu_state = state;
      maker.put(sample);
    }
    maker.add(thread, "main:2", 10 * kMs);
  }
  std::string said;
  for (const Finding& finding : report_of(profile).findings) {
    if (finding.kind == "garbage_collection") said = finding.text;
  }
  EXPECT_EQ(said, "the cyclic garbage collector ran for 40.0 % of the recording (400 ms)");
}

TEST_F(ReportOf, plain_text) {
  const std::string text = report_text(report_of(profile));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "python3 app.py (pid 4711): 3.00 s of wall time in 3 threads, 500 samples over 1.00 s");
  for (const char* part : {"\nFindings\n  1. ", "\nHot functions", "\nHot lines", "\nThreads",
                           "\nWhere threads wait", "/app/app.py:30", "99 % interval"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  }
  EXPECT_EQ(text.find(" \n"), std::string::npos) << "no blanks at the end of lines";
  const std::string summary = report_summary(report_of(profile));
  EXPECT_LE(std::count(summary.begin(), summary.end(), '\n'), 7);
}

TEST_F(ReportOf, markdown) {
  const std::string text = report_markdown(report_of(profile));
  EXPECT_NE(text.find("| share | 99 % | weight |"), std::string::npos) << text;
  EXPECT_NE(text.find("| ---: | ---: |"), std::string::npos);
}

TEST_F(ReportOf, json_is_what_the_schema_says) {
  const std::string json = report_json(report_of(profile));
  EXPECT_EQ(test::schema_violation(json, "report.schema.json"), "") << json;
  // The schema can say no.
  std::string wrong = json;
  wrong.replace(wrong.find("\"version\": 1"), 12, "\"version\": 2");
  EXPECT_NE(test::schema_violation(wrong, "report.schema.json"), "");
  EXPECT_EQ(test::schema_violation(report_json(report_of(Profile{})), "report.schema.json"), "");
}

TEST_F(ReportOf, modules_without_names_are_listed_with_what_would_bring_them) {
  maker.add(maker.thread("main"), "work:1", 9000 * kMs);
  profile.emit(profile::ModuleId(1),
               {"/lib/libm.so.6", "", 0, profile::MissingNames{false, true, "", "lines of m"}});
  profile.emit(profile::ModuleId(2), {"/lib/libz.so.1", "", 0});
  profile.emit(profile::ModuleId(3),
               {"/lib/libc.so.6", "ab", 0, profile::MissingNames{true, true, "", "apt install x"}});
  const Report report = report_of(profile);
  ASSERT_EQ(report.missing_names.size(), 2u);
  EXPECT_EQ(report.missing_names[0].path, "/lib/libc.so.6");
  EXPECT_NE(report_text(report).find("apt install x"), std::string::npos);
  EXPECT_NE(report_markdown(report).find("lines of m"), std::string::npos);
  EXPECT_EQ(test::schema_violation(report_json(report), "report.schema.json"), "");
  EXPECT_EQ(report_text(report_of(Profile{})).find("without names"), std::string::npos);
}

TEST_F(ReportOf, names_from_outside_stay_names) {
  maker.add(maker.thread("evil\x1b[2J\n| x"), "/tmp/\xff\xfe.py/<b>`\xe2\x80\xae;name:3", 9000 * kMs);
  const Report report = report_of(profile);
  const std::string text = report_text(report);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_NE(text.find("evil\\x1b[2J\\x0a| x"), std::string::npos);
  EXPECT_NE(report_markdown(report).find("\\| x"), std::string::npos);
  EXPECT_EQ(test::schema_violation(report_json(report), "report.schema.json"), "");
}

TEST_F(ReportOf, source_is_annotated) {
  const Report report = report_of(profile);
  const std::string text = report_source(report, [](std::string_view file) -> std::optional<std::string> {
    if (file != "/app/app.py") return {};
    std::string source;
    for (int i = 1; i <= 45; ++i) source += "line " + std::to_string(i) + "\n";
    return source;
  });
  EXPECT_NE(text.find("  33.3 %   33.3 %     30  line 30\n"), std::string::npos) << text;
  EXPECT_NE(text.find("29  line 29\n"), std::string::npos);
  EXPECT_EQ(text.find("line 25\n"), std::string::npos);
  EXPECT_NE(text.find("  20.0 %   20.0 %     40  line 40\n"), std::string::npos) << text;
  EXPECT_NE(text.find("(its source cannot be read)"), std::string::npos);
  const std::string other =
      report_source(report, [](std::string_view) { return std::optional<std::string>("one\n"); });
  EXPECT_NE(other.find("line 30 was seen (33.3 %), but the file has 1 lines"), std::string::npos) << other;
}

// Counted stacks of another tool: no process, no thread, no time.
TEST(Report, what_a_format_does_not_have_is_not_reported_as_nothing) {
  Profile profile;
  profile.emit_meta("recorded_by", "another tool");
  profile.emit(profile::ProcessId(1), {});
  profile::Thread thread;
  thread.process = profile::ProcessId(1);
  profile.emit(ThreadId(1), thread);
  profile::Frame frame;
  frame.kind = profile::FrameKind::native;
  frame.function = frame.qualified_name = "work";
  profile.emit(profile::FrameId(1), frame);
  profile.emit(profile::StackId(1), {{}, profile::FrameId(1)});
  Sample sample;
  sample.thread = ThreadId(1);
  sample.stack = profile::StackId(1);
  sample.samples = 12;
  profile.emit(profile::SampleId(1), sample);
  profile.emit({{}, std::string(profile::counters::kSamples), 12});
  ReportOptions options;
  options.choices.weight = view::Weight::samples;
  const std::string text = report_text(report_of(profile, options));
  EXPECT_EQ(text.substr(0, text.find('\n')), "(process not known): 12 samples in 1 thread");
  EXPECT_NE(text.find("  (thread not known)      12  work\n"), std::string::npos) << text;
  EXPECT_EQ(text.find(" 0 s"), std::string::npos) << text;
  EXPECT_EQ(text.find("threads wait"), std::string::npos) << text;
  EXPECT_NE(text.find("12 samples, recorded by another tool"), std::string::npos) << text;
}

TEST(Report, of_nothing_is_no_crash) {
  const Profile profile;
  const Report report = report_of(profile);
  EXPECT_NE(report_text(report).find("No sample of the recording passes"), std::string::npos);
  EXPECT_FALSE(report_markdown(report).empty());
  EXPECT_FALSE(report_summary(report).empty());
}

TEST(JsonText, numbers_are_short_and_text_is_utf8) {
  const std::vector<double> rows = {0.1 + 0.2, std::numeric_limits<double>::quiet_NaN()};
  const std::string text = JsonText::document([&](JsonText& json) {
    json.objects("rows", rows, [&](double row) { json.number("n", row); });
    json.object("o", [&] { json.text("t", "a\xffz\n"); });
  });
  EXPECT_EQ(text,
            "{\n"
            " \"rows\": [{\n   \"n\": 0.3\n  }, {\n   \"n\": null\n  }],\n"
            " \"o\": {\n  \"t\": \"a\xef\xbf\xbdz\\n\"\n }\n"
            "}\n");
}

}  // namespace
}  // namespace phlox::report
