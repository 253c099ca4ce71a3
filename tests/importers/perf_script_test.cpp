#include "phlox/importers/perf_script.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "phlox/importers/registry.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/sampled_events.h"
#include "support/imported.h"

namespace phlox::importers {
namespace {

using test::import_text;
using test::Imported;

constexpr const char* kText =
    "# captured on: today\n"
    "python3 -X dev  4711/4712 [001]  3305.705454:    1001001 cpu-clock:pppH: \n"
    "\t    7f0011223344 PyObject_Call+0x24 (/usr/bin/python3.11)\n"
    "\t    7f0011220000 py::main:/srv/app.py+0x8 (/tmp/perf-4711.map)\n"
    "\tffffffff81001000 do_syscall_64+0x3b ([kernel.kallsyms])\n"
    "\t            4000 [unknown] (/opt/lib x.so (deleted))\n"
    "\n"
    "python3 4711 3305.706455123: cycles:u: \n"
    "\t    7f0011223399 PyObject_Call+0x79 (/usr/bin/python3.11)\n";

TEST(PerfScript, samples_and_their_frames_are_read) {
  const Imported in = import_text(import_perf_script, kText);
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"PyObject_Call", "main", "do_syscall_64", "0x4000"}));
  EXPECT_EQ(in.stack(1), std::vector<std::string>{"PyObject_Call"});
  const auto& first = in.profile.samples()[0];
  EXPECT_EQ(first.wall, 1'001'001);
  EXPECT_EQ(first.start + first.wall, 3305'705'454'000);
  EXPECT_EQ(first.cpu_number, 1);
  EXPECT_EQ(in.profile.thread(first.thread).tid, 4712);
  EXPECT_EQ(in.profile.thread(first.thread).name, "python3 -X dev");
  EXPECT_EQ(in.profile.process(in.profile.thread(first.thread).process).pid, 4711);
  // Cycles have no known time.
  EXPECT_EQ(in.profile.samples()[1].wall, 0);
  EXPECT_EQ(in.profile.samples()[1].start, 3305'706'455'123);
  EXPECT_TRUE(in.outcome.warnings.empty());
  EXPECT_EQ(profile::sampled_events(in.profile),
            (std::vector<profile::SampledEvent>{{"cpu-clock:pppH", profile::Unit::nanoseconds},
                                                {"cycles:u", profile::Unit::count}}));
  EXPECT_EQ(in.profile.samples()[1].event, 2);
}

TEST(PerfScript, periods_are_exact_and_those_that_are_cut_are_said) {
  const Imported cycles =
      import_text(import_perf_script, "app 7 3305.5: 9007199254740993 cycles: \n\t 10 f+0x1 (/a)\n");
  EXPECT_EQ(cycles.profile.samples()[0].value, 9'007'199'254'740'993);
  const Imported clock =
      import_text(import_perf_script, "app 7 9000.5: 7200000000000 cpu-clock: \n\t 10 f+0x1 (/a)\n");
  EXPECT_EQ(clock.profile.samples()[0].wall, 3600 * kSecond);
  EXPECT_EQ(clock.outcome.warnings.size(), 1u);
}

TEST(PerfScript, what_perf_does_not_know_is_one_marker) {
  const Imported in =
      import_text(import_perf_script,
                  "a 1 3.0: 1 cpu-clock: \n\t 7f01 f+0x1 (/a)\n\t 12 [unknown] ([unknown])\n\n"
                  "a 1 4.0: 1 cpu-clock: \n\t 7f01 f+0x1 (/a)\n\t 99 [unknown] ([unknown])\n");
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"f", "(an address at which perf knows of nothing)"}));
  EXPECT_EQ(in.profile.stacks().size(), 2u);
}

TEST(PerfScript, kinds_of_frames_are_known_by_their_module) {
  const Imported in = import_text(import_perf_script, kText);
  const auto kind = [&](std::string_view name) {
    for (const auto& frame : in.profile.frames()) {
      if (frame.qualified_name == name) return frame.kind;
    }
    return profile::FrameKind::marker;
  };
  EXPECT_EQ(kind("PyObject_Call"), profile::FrameKind::native);
  EXPECT_EQ(kind("main"), profile::FrameKind::python);
  EXPECT_EQ(kind("do_syscall_64"), profile::FrameKind::kernel);
  EXPECT_EQ(in.profile.modules().back().path, "/opt/lib x.so (deleted)");
}

TEST(PerfScript, it_is_recognised_and_nothing_else_is) {
  const auto name_of = [](std::string_view text) {
    MemoryInput input(std::as_bytes(std::span(text)));
    const Format* format = recognise(input);
    return format == nullptr ? std::string_view() : format->name;
  };
  EXPECT_EQ(name_of(kText), "perf-script");
  EXPECT_EQ(name_of("a;b 3\n"), "collapsed");
  EXPECT_EQ(name_of("plain words\n"), "");
}

// perf script of a recording without -g.
constexpr const char* kWithoutCalls =
    "  swapper     0 [001]  5000.100000:          1 cycles:P:  ffffffff81000010 native_write_msr+0x4 "
    "([kernel.kallsyms])\n"
    "   python 12345 [000]  5000.200000:     250000 cycles:P:      55d0c0a01010 "
    "_PyEval_EvalFrameDefault+0x12 (/usr/bin/python3.11)\n"
    "   python 12345 [000]  5000.300000:     350000 cycles:P:      55d0c0a02010 unicode_hash+0x12 "
    "(/usr/bin/python3.11)\n";

TEST(PerfScript, without_a_call_graph_each_sample_has_its_one_frame) {
  const Imported in = import_text(import_perf_script, kWithoutCalls);
  ASSERT_EQ(in.profile.samples().size(), 3u);
  EXPECT_EQ(in.stack(0), std::vector<std::string>{"native_write_msr"});
  EXPECT_EQ(in.stack(2), std::vector<std::string>{"unicode_hash"});
  EXPECT_EQ(in.profile.samples()[2].value, 350'000);
  EXPECT_TRUE(recognise_perf_script(std::as_bytes(std::span(std::string_view(kWithoutCalls)))));
  // What a tracepoint prints is no frame.
  const Imported trace =
      import_text(import_perf_script, "a 1 [000] 3.0: sched:sched_waking: comm=b pid=2 (b)\n");
  EXPECT_TRUE(trace.stack(0).empty());
}

TEST(PerfScript, processes_last_from_their_first_sample_to_their_last) {
  const Imported in = import_text(import_perf_script, kWithoutCalls);
  const auto& python = in.profile.process(in.profile.thread(in.profile.samples()[2].thread).process);
  EXPECT_EQ(python.start, 5000'200'000'000);
  EXPECT_EQ(python.end, 5000'300'000'000);
}

TEST(PerfScript, a_process_has_the_name_of_its_first_thread) {
  const Imported in = import_text(import_perf_script,
                                  "worker 10/11 [000] 3.0: 1 cycles: 12 f+0x1 (/a)\n"
                                  "server 10/10 [000] 4.0: 1 cycles: 12 f+0x1 (/a)\n");
  ASSERT_EQ(in.profile.processes().size(), 1u);
  EXPECT_EQ(in.profile.processes()[0].executable, "server");
}

TEST(PerfScript, source_lines_belong_to_the_frame_above) {
  const Imported in = import_text(
      import_perf_script,
      "app 12345 [000]  5000.200000:     250000 cycles:P: \n"
      "\t    55d0c0a01010 inner+0x10 (/opt/app)\n  app.c:10\n"
      "\t    55d0c0a01018 middle+0x8 (/opt/app)\n  ??:0\n"
      "\t    55d0c0a01020 main+0x20 (/opt/app)\n  ./a b/app.c:20 (discriminator 2)\n\n"
      "app 12345 [000] 5000.300000: 1 cycles:P: 55d0c0a01010 inner+0x10 (/opt/app)\n  app.c:11\n");
  EXPECT_TRUE(in.outcome.warnings.empty());
  ASSERT_EQ(in.stack(0), (std::vector<std::string>{"inner", "middle", "main"}));
  const auto frame = [&](size_t sample) {
    return in.profile.frame(in.profile.stack(in.profile.samples()[sample].stack).frame);
  };
  EXPECT_EQ(frame(0).file, "app.c");
  EXPECT_EQ(frame(0).line, 10);
  EXPECT_EQ(frame(1).line, 11);
  EXPECT_EQ(in.profile.frames()[0].file, "./a b/app.c");
}

// perf script --show-mmap-events --show-switch-events.
TEST(PerfScript, records_that_are_no_samples_are_none) {
  const Imported in =
      import_text(import_perf_script,
                  "app 1/1 [000] 3.0: PERF_RECORD_MMAP2 1/1: [0x7f00(0x1000) @ 0 08:01 1 2]: r-xp /bin/app\n"
                  "app 1/1 [000] 4.0: 10 cycles: \n\t 12 f+0x1 (/bin/app)\n\n"
                  "app 1/1 [000] 5.0: PERF_RECORD_SWITCH OUT\n");
  EXPECT_EQ(in.outcome.samples, 1u);
  EXPECT_EQ(profile::sampled_events(in.profile),
            (std::vector<profile::SampledEvent>{{"cycles", profile::Unit::count}}));
  EXPECT_TRUE(in.outcome.warnings.empty());
}

// -F comm,pid,tid,ip,sym,dso and with period and event: stackcollapse-perf.pl needs no time.
TEST(PerfScript, samples_may_have_no_time) {
  constexpr std::string_view kLines =
      "[ perf record: Woken up 1 times to write data ]\n"
      "Web Content  4711/4712 \n\t 7f00 PyObject_Call+0x24 (/usr/bin/python3)\n\t 55 main (/bin/app)\n\n"
      "python3 4711/4713 [002] 250000 cycles:u: \n\t 55 main (/bin/app)\n\n"
      "python3 4714  55 other+0x1 (/bin/app)\n";
  const Imported in = import_text(import_perf_script, kLines);
  ASSERT_EQ(in.profile.samples().size(), 3u);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"PyObject_Call", "main"}));
  EXPECT_EQ(in.profile.threads()[0].name, "Web Content");
  EXPECT_EQ(in.profile.threads()[0].tid, 4712);
  EXPECT_EQ(in.profile.samples()[1].value, 250'000);
  EXPECT_EQ(in.stack(2), std::vector<std::string>{"other"});
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
  EXPECT_TRUE(recognise_perf_script(std::as_bytes(std::span(kLines))));
  EXPECT_FALSE(recognise_perf_script(std::as_bytes(std::span(std::string_view("main 12\n\nwork 13\n")))));
}

TEST(PerfScript, what_else_f_asks_for_is_no_part_of_names) {
  const Imported in = import_text(
      import_perf_script,
      "app  1/2 [001] U  3.0:  1001 cpu-clock:     7fffdeadbeef     55 add+0x3 (/bin/app)\n"
      "app  1/2 [001]  3.1:  1001 cpu-clock:  7fffdeadbeef ffffffff81000010 irq+0x3 ([kernel.kallsyms])\n"
      "app  1/2 [001]  3.1:  1001 cpu-clock: ffffffff81000010 feedface ([kernel.kallsyms])\n"
      "app  1/2 [001]  3.2:  1001 cpu/mem-loads/P:   7fffdeadbeef 5080021 N/A|SNP N/A   33     55 operator "
      "new(unsigned long)+0x3 (/opt/a (b)/app)\n");
  ASSERT_EQ(in.profile.samples().size(), 4u);
  EXPECT_EQ(in.stack(0), std::vector<std::string>{"add"});
  EXPECT_EQ(in.stack(1), std::vector<std::string>{"irq"});
  EXPECT_EQ(in.stack(2), std::vector<std::string>{"feedface"});
  EXPECT_EQ(in.stack(3), std::vector<std::string>{"operator new(unsigned long)"});
  EXPECT_EQ(in.profile.threads().size(), 1u);
  EXPECT_EQ(in.profile.threads()[0].tid, 2);
  EXPECT_EQ(in.profile.modules().back().path, "/opt/a (b)/app");
}

// -F without event, without dso, without either: the period, the event and the address are in columns.
TEST(PerfScript, without_a_call_graph_f_may_leave_out_the_event_and_the_module) {
  const auto leaf = [](std::string_view line) {
    const Imported in = import_text(import_perf_script, std::string(line) + "\n" + std::string(line) + "\n");
    EXPECT_EQ(in.profile.samples().size(), 2u) << line;
    EXPECT_TRUE(in.outcome.warnings.empty()) << line;
    EXPECT_LE(profile::sampled_events(in.profile).size(), 1u) << line;
    EXPECT_TRUE(recognise_perf_script(std::as_bytes(std::span(line)))) << line;
    return in.stack(1);
  };
  const std::vector<std::string> expected = {"work"};
  EXPECT_EQ(leaf("         python3  9788/9788  27969.193460:      7fa6aeb98866 work (/lib/a.so)"), expected);
  EXPECT_EQ(leaf("         python3  9788/9788  27969.193460:            401136 work (/lib/a.so)"), expected);
  EXPECT_EQ(leaf(" 9788 27969.193460:      7fa6aeb98866 work"), expected);
  EXPECT_EQ(leaf("27969.193460:      7fa6aeb98866 work+0x10"), expected);
  EXPECT_EQ(leaf("         python3  9788 27969.193460: cpu-clock:pppH:            401136 work+0x10"),
            expected);
  EXPECT_EQ(leaf("         python3  9788 27969.193460:   10101010 cycles:      7fa6aeb98866 work"), expected);
  EXPECT_EQ(leaf("   python3  9788 27969.1: cycles:      7fffdeadbeef     7fa6aeb98866 work"), expected);
  EXPECT_EQ(leaf("   python3  9788 27969.1: cycles:      7fffdeadbeef ffffffff81000010 work"), expected);
  EXPECT_EQ(leaf("         python3  9788/9788       7fa6aeb98866 work (/lib/a.so)"), expected);
  EXPECT_EQ(leaf("         python3  9788 27969.193460:      7fa6aeb98866"),
            std::vector<std::string>{"(an address without a name)"});
  const Imported period = import_text(
      import_perf_script, "   python3  9788 27969.193460:   10101010      7fa6aeb98866 work (/lib/a.so)\n");
  EXPECT_EQ(period.stack(0), expected);
  EXPECT_EQ(period.profile.samples()[0].value, 10'101'010);
}

// dd, bc, cc and ed are names of programs and hexadecimal numbers.
TEST(PerfScript, a_program_whose_name_is_a_number_has_samples_of_its_own) {
  for (const char* time : {" [000]  5000.100000:        100 cycles:", ""}) {
    const std::string text = fmt::format(
        "              dd    10{0}      55d0c0a01010 copy+0x2 (/bin/dd)\n"
        "              dd    10{0}      55d0c0a01020 fill+0x2 (/bin/dd)\n"
        "              bc    11{0}      55d0c0a01010 add+0x2 (/bin/bc)\n",
        time);
    const Imported in = import_text(import_perf_script, text);
    ASSERT_EQ(in.profile.samples().size(), 3u) << text;
    EXPECT_EQ(in.stack(1), std::vector<std::string>{"fill"});
    EXPECT_EQ(in.stack(2), std::vector<std::string>{"add"});
  }
}

// Where perf finds no line, it prints a file and an address; -F +srccode prints the line itself.
TEST(PerfScript, source_lines_without_a_place_are_recognised) {
  const Imported in =
      import_text(import_perf_script,
                  "app 1 [000] 3.0: 1 cycles: \n\t 12 f+0x1 (/bin/app)\n  app[12]\n"
                  "\t ffffffff81000010 irq ([kernel.kallsyms])\n  [kernel.kallsyms][ffffffff81000010]\n"
                  "\t 13 main (/bin/app)\n  main.c:10\n|10      return work();\n\n");
  EXPECT_TRUE(in.outcome.warnings.empty());
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"f", "irq", "main"}));
}

TEST(PerfScript, what_perf_says_before_it_is_no_obstacle) {
  constexpr std::string_view kLines =
      "Warning:\nKernel address maps were restricted\n\napp 1 [000] 3.0: 1 cycles: \n\t 12 f+0x1 "
      "(/bin/app)\n\n";
  EXPECT_TRUE(recognise_perf_script(std::as_bytes(std::span(kLines))));
  EXPECT_EQ(import_text(import_perf_script, kLines).outcome.samples, 1u);
}

TEST(PerfScript, cores_of_both_kinds_count_one_event) {
  const Imported in = import_text(import_perf_script,
                                  "a 1 [000] 3.0: 10 cpu_core/cycles/P: 12 f+0x1 (/a)\n"
                                  "a 1 [008] 4.0: 20 cpu_atom/cycles/P: 12 f+0x1 (/a)\n");
  EXPECT_EQ(profile::sampled_events(in.profile),
            (std::vector<profile::SampledEvent>{{"cycles:P", profile::Unit::count}}));
  ASSERT_EQ(in.outcome.warnings.size(), 1u);
  EXPECT_NE(in.outcome.warnings[0].find("cpu_atom/cycles/P and cpu_core/cycles/P"), std::string::npos);
  const Imported arm = import_text(import_perf_script,
                                   "a 1 [000] 3.0: 10 armv8_cortex_a53/cycles/: 12 f+0x1 (/a)\n"
                                   "a 1 [008] 4.0: 20 armv8_cortex_a72/cycles/: 12 f+0x1 (/a)\n"
                                   "a 1 [008] 5.0: 40 cpu/cache-misses/: 12 f+0x1 (/a)\n");
  ASSERT_EQ(profile::sampled_events(arm.profile).size(), 2u);
  EXPECT_EQ(profile::sampled_events(arm.profile)[0].name, "cycles");
  EXPECT_EQ(arm.outcome.warnings.size(), 1u);
}

}  // namespace
}  // namespace phlox::importers
