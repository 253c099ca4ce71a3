#include "phlox/process/process_state.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

namespace phlox::process {
namespace {

constexpr std::string_view kStatus =
    "Name:\tpython3 :) \\n\\\\\n"
    "Umask:\t0022\n"
    "State:\tT (stopped)\n"
    "Tgid:\t4711\n"
    "Ngid:\t0\n"
    "Pid:\t4711\n"
    "PPid:\t1\n"
    "TracerPid:\t99\n"
    "Uid:\t1000\t1001\t1002\t1003\n"
    "Gid:\t100\t101\t102\t103\n"
    "Groups:\t4 24 27 \n"
    "NStgid:\t4711\t12\n"
    "NSpid:\t4711\t12\n"
    "Threads:\t3\n"
    "CapPrm:\t000001ffffffffff\n"
    "CapEff:\t0000000000080000\n"
    "NoNewPrivs:\t1\n"
    "Seccomp:\t2\n";

TEST(ParseStatus, takes_every_line_we_use) {
  const auto s = parse_status(kStatus);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->name, "python3 :) \n\\");
  EXPECT_EQ(s->state, 'T');
  EXPECT_EQ(s->process, 4711);
  EXPECT_EQ(s->parent, 1);
  EXPECT_EQ(s->tracer, 99);
  EXPECT_EQ(s->uid, (Ids{1000, 1001, 1002, 1003}));
  EXPECT_EQ(s->gid, (Ids{100, 101, 102, 103}));
  EXPECT_EQ(s->groups, (std::vector<uint32_t>{4, 24, 27}));
  EXPECT_EQ(s->namespace_pids, (std::vector<pid_t>{4711, 12}));
  EXPECT_EQ(s->permitted_capabilities, 0x1ffffffffffU);
  EXPECT_EQ(s->effective_capabilities, 0x80000U);
  EXPECT_TRUE(s->no_new_privileges);
  EXPECT_EQ(s->seccomp, 2);
  EXPECT_EQ(s->threads, 3);
  EXPECT_FALSE(s->kernel_thread);
}

TEST(ParseStatus, text_without_the_essentials_is_refused) {
  EXPECT_FALSE(parse_status(""));
  EXPECT_FALSE(parse_status("Name:\tx\nState:\tR (running)\n"));
  EXPECT_FALSE(parse_status("Name\nState\nTgid\n"));
  EXPECT_FALSE(parse_status("State:\t\nTgid:\t1\n"));
}

// A line of /proc/PID/stat with the given name and flags; fields count up from 4, the start time is 22.
std::string stat_line(const std::string& name, const std::string& flags) {
  std::string text = "4711 (" + name + ") S";
  for (int field = 4; field < 53; ++field) text += " " + (field == 9 ? flags : std::to_string(field));
  return text + "\n";
}

TEST(ParseStat, a_name_of_parentheses_blanks_and_newlines_does_not_shift_the_fields) {
  const auto s = parse_stat(stat_line("a) R 1 (b\n c", "4194304"));
  ASSERT_TRUE(s);
  EXPECT_EQ(s->name, "a) R 1 (b\n c");
  EXPECT_EQ(s->state, 'S');
  EXPECT_EQ(s->parent, 4);
  EXPECT_EQ(s->start_ticks, 22U);
  EXPECT_FALSE(s->kernel_thread());
}

TEST(ParseStat, the_kernel_says_which_threads_are_its_own) {
  EXPECT_TRUE(parse_stat(stat_line("kthreadd", "2129984"))->kernel_thread());
}

TEST(ParseStat, text_that_is_cut_is_refused) {
  const std::string whole = stat_line("python3", "0");
  const size_t enough = whole.find(" 23");
  for (size_t size = 0; size < enough - 2; ++size) EXPECT_FALSE(parse_stat(whole.substr(0, size))) << size;
  EXPECT_FALSE(parse_stat(") ("));
}

TEST(ParseCommandLine, arguments_become_one_line) {
  using namespace std::string_view_literals;
  EXPECT_EQ(parse_command_line("python3\0-c\0print(1)\nprint(2)\0"sv), "python3 -c print(1)\\nprint(2)");
  EXPECT_EQ(parse_command_line("a\x1b[31m\0"sv), "a\\x1b[31m");
  EXPECT_EQ(parse_command_line(""), "");
}

TEST(ParseElfClass, distinguishes_32_from_64_bits) {
  EXPECT_EQ(parse_elf_class("\x7f"
                            "ELF\x01"),
            Bits::bits32);
  EXPECT_EQ(parse_elf_class("\x7f"
                            "ELF\x02"),
            Bits::bits64);
  EXPECT_EQ(parse_elf_class("\x7f"
                            "ELF\x07"),
            Bits::unknown);
  EXPECT_EQ(parse_elf_class("#!/bin"), Bits::unknown);
  EXPECT_EQ(parse_elf_class("\x7f"
                            "ELF"),
            Bits::unknown);
}

ProcessState made_of(char state) {
  ProcessState s;
  s.pid = 4711;
  s.status.state = state;
  s.status.name = "python3";
  s.status.parent = 12;
  return s;
}

TEST(CheckRecordable, a_zombie_a_kernel_thread_and_a_32_bit_program_are_refused_by_name) {
  const auto zombie = check_recordable(made_of('Z'));
  ASSERT_FALSE(zombie);
  EXPECT_EQ(zombie.error().kind, ErrorKind::target_state);
  EXPECT_EQ(zombie.error().message,
            "process 4711 (python3) is a zombie: it has ended, and its parent 12 has not asked how");

  ProcessState kernel = made_of('I');
  kernel.stat.flags = 0x00200040;
  ASSERT_FALSE(check_recordable(kernel));
  EXPECT_EQ(check_recordable(kernel).error().kind, ErrorKind::not_python);

  ProcessState narrow = made_of('S');
  narrow.bits = Bits::bits32;
  narrow.executable = "/usr/bin/python3";
  ASSERT_FALSE(check_recordable(narrow));
  EXPECT_EQ(check_recordable(narrow).error().kind, ErrorKind::target_state);

  EXPECT_TRUE(check_recordable(made_of('T')));
  EXPECT_TRUE(check_recordable(made_of('R')));
}

TEST(RemarksOn, stopped_and_traced_are_said) {
  EXPECT_TRUE(remarks_on(made_of('S')).empty());
  EXPECT_EQ(remarks_on(made_of('T')).size(), 1U);
  ProcessState traced = made_of('t');
  traced.status.tracer = 99;
  traced.tracer_name = "gdb";
  ASSERT_EQ(remarks_on(traced).size(), 1U);
  EXPECT_NE(remarks_on(traced)[0].find("traced by process 99 (gdb)"), std::string::npos);
}

TEST(ReadProcessState, knows_ourselves) {
  const auto s = read_process_state(getpid());
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->status.process, getpid());
  EXPECT_EQ(s->status.parent, getppid());
  EXPECT_EQ(s->status.uid.real, getuid());
  EXPECT_EQ(s->bits, Bits::bits64);
  EXPECT_NE(s->executable.find("process_tests"), std::string::npos);
  EXPECT_FALSE(s->command_line.empty());
  EXPECT_GT(s->stat.start_ticks, 0U);
  EXPECT_EQ(s->other_pid_namespace, false);
  EXPECT_TRUE(check_recordable(*s));
}

TEST(ReadProcessState, a_thread_is_not_a_process) {
  pid_t tid = 0;
  std::thread([&] {
    tid = gettid();
    const auto s = read_process_state(tid);
    ASSERT_FALSE(s);
    EXPECT_EQ(s.error().kind, ErrorKind::no_such_process);
    EXPECT_NE(s.error().hint.find(std::to_string(getpid())), std::string::npos);
  }).join();
}

TEST(ReadProcessState, there_is_no_such_process) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const auto zombie = read_process_state(child);
  ASSERT_TRUE(zombie);
  EXPECT_TRUE(zombie->zombie());
  waitpid(child, nullptr, 0);
  for (const pid_t pid : {child, 0, -1, 0x7ffffff0}) {
    ASSERT_FALSE(read_process_state(pid));
    EXPECT_EQ(read_process_state(pid).error().kind, ErrorKind::no_such_process);
    EXPECT_EQ(open_pidfd(pid).error().kind, ErrorKind::no_such_process);
  }
}

TEST(ReadThreads, lists_them_with_their_names) {
  std::thread([] {
    pthread_setname_np(pthread_self(), "odd ) name");
    const auto threads = read_threads(getpid());
    ASSERT_GE(threads.size(), 2U);  // the thread sanitizer has one of its own
    EXPECT_EQ(threads.front().tid, getpid());
    const auto own =
        std::find_if(threads.begin(), threads.end(), [](const auto& t) { return t.tid == gettid(); });
    ASSERT_NE(own, threads.end());
    EXPECT_EQ(own->name, "odd ) name");
  }).join();
  EXPECT_TRUE(read_threads(0x7ffffff0).empty());
}

}  // namespace
}  // namespace phlox::process
