#include "phlox/importers/perf_data.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <tuple>

#include "phlox/importers/registry.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/view/frame_labels.h"
#include "phlox/view/shown_event.h"
#include "support/imported.h"
#include "support/perf_builder.h"

namespace phlox::importers {
namespace {

using test::Imported;
using test::PerfBuilder;
using test::PerfBytes;

constexpr uint64_t kChain = PerfBuilder::kPlain | PERF_SAMPLE_CALLCHAIN;
constexpr uint64_t kDump = kChain | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
constexpr auto kUserContext = static_cast<uint64_t>(PERF_CONTEXT_USER);
constexpr auto kKernelContext = static_cast<uint64_t>(PERF_CONTEXT_KERNEL);
constexpr int kMillisecond = 1'000'000;

Imported import(const std::vector<std::byte>& bytes, const std::string& sysroot = "/nonexistent") {
  return test::import_bytes(import_perf_data, bytes, sysroot);
}

PerfBytes chain(std::initializer_list<uint64_t> words) {
  PerfBytes b;
  b.put(uint64_t{words.size()});
  for (const uint64_t word : words) b.put(word);
  return b;
}

TEST(PerfData, a_sample_of_a_clock_counts_for_its_period) {
  PerfBuilder perf;
  perf.clock().add(PerfBuilder::comm(7, 7, "app")).add(PerfBuilder::comm(7, 8, "worker"));
  perf.add(PerfBuilder::sample(7, 8, 5 * kMillisecond, 0x401000));
  const Imported in = import(perf.build());
  ASSERT_EQ(in.profile.samples().size(), 1u);
  const profile::Sample& sample = in.profile.samples()[0];
  EXPECT_EQ(sample.start, 4 * kMillisecond);
  EXPECT_EQ(sample.wall, kMillisecond);
  EXPECT_EQ(sample.cpu, kMillisecond);
  EXPECT_EQ(sample.samples, 1u);
  EXPECT_EQ(sample.cpu_number, 3);
  EXPECT_EQ(sample.cpu_state, profile::CpuState::running);
  ASSERT_EQ(in.profile.threads().size(), 1u);
  EXPECT_EQ(in.profile.threads()[0].tid, 8);
  EXPECT_EQ(in.profile.threads()[0].kernel_name, "worker");
  EXPECT_EQ(in.profile.processes()[0].pid, 7);
}

TEST(PerfData, chains_are_kept_as_recorded) {
  PerfBuilder perf;
  perf.clock(kChain);
  perf.add(PerfBuilder::mmap(7, 0x400000, 0x10000, 0, "/app"));
  perf.add(PerfBuilder::sample(7, 7, 100, 0x401000, chain({kUserContext, 0x401000, 0x402000, 0x403000})));
  const Imported in = import(perf.build());
  // Return addresses are looked up inside the call. The file cannot be had: it is taken to lie as on disk.
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"0x1000", "0x1fff", "0x2fff"}));
  EXPECT_EQ(in.profile.samples()[0].quality, profile::Quality::ok);
  EXPECT_EQ(in.profile.modules().at(0).path, "/app");
}

TEST(PerfData, frames_of_the_kernel_are_inside_those_of_the_user) {
  PerfBuilder perf;
  perf.clock(kChain);
  perf.add(PerfBuilder::sample(
      7, 7, 100, 0xffffffff81001000,
      chain({kKernelContext, 0xffffffff81001000, 0xffffffff81002000, kUserContext, 0x401000}), 101,
      PERF_RECORD_MISC_KERNEL));
  const Imported in = import(perf.build());
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"0xffffffff81001000", "0xffffffff81001fff", "0x401000"}));
  EXPECT_EQ(in.profile.frames().front().kind, profile::FrameKind::kernel);
  EXPECT_EQ(in.profile.frames().back().kind, profile::FrameKind::native);
}

TEST(PerfData, a_chain_as_long_as_the_recorder_allowed_is_marked) {
  PerfBuilder perf;
  perf.event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, kChain).sample_max_stack = 2;
  perf.add(PerfBuilder::sample(7, 7, 100, 0x401000, chain({kUserContext, 0x401000, 0x402000})));
  const Imported in = import(perf.build());
  EXPECT_EQ(in.profile.samples()[0].quality, profile::Quality::cut);
  EXPECT_EQ(in.stack(0).size(), 3u);
}

TEST(PerfData, a_stack_that_cannot_be_unwound_is_marked_and_never_completed) {
  PerfBuilder perf;
  // bp, sp, ip, bx
  perf.event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, kDump).sample_regs_user =
      1 << 1 | 1 << 6 | 1 << 7 | 1 << 8;
  perf.add(PerfBuilder::mmap(7, 0x400000, 0x10000, 0, "/app"));
  PerfBytes more = chain({});
  more.put(uint64_t{PERF_SAMPLE_REGS_ABI_64}, 0, 0, 0x7ffe0000, 0x401000)
      .put(uint64_t{16}, 0x402000, 0x402000, 16);
  perf.add(PerfBuilder::sample(7, 7, 100, 0x401000, more));
  const Imported in = import(perf.build());
  const auto stack = in.stack(0);
  ASSERT_EQ(stack.size(), 2u);
  EXPECT_EQ(stack[0], "0x1000");
  EXPECT_TRUE(stack[1].starts_with("(")) << stack[1];
  EXPECT_EQ(in.profile.samples()[0].quality, profile::Quality::cut);
}

TEST(PerfData, what_is_no_address_of_any_code_is_one_marker) {
  PerfBuilder perf;
  perf.clock(kChain);
  perf.add(PerfBuilder::mmap(7, 0x400000, 0x10000, 0, "/app", 1));
  for (const uint64_t number : {0x12, 0x7ffe0040})
    perf.add(PerfBuilder::sample(7, 7, 10, 0x401000, chain({kUserContext, 0x401000, number})));
  const Imported in = import(perf.build());
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"0x1000", "(an address at which nothing is mapped)"}));
  EXPECT_EQ(in.profile.stacks().size(), 2u);
}

TEST(PerfData, calls_that_the_processor_kept_become_a_stack) {
  PerfBuilder perf;
  perf.event(PERF_TYPE_HARDWARE, 0, PerfBuilder::kPlain | PERF_SAMPLE_BRANCH_STACK).branch_sample_type =
      PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_HW_INDEX;
  PerfBytes more;
  more.put(uint64_t{2}, 0, /*from, to, flags*/ 0x402000, 0x401000, 0, 0x403000, 0x402f00, 0);
  perf.add(PerfBuilder::sample(7, 7, 100, 0x401010, more));
  EXPECT_EQ(import(perf.build()).stack(0), (std::vector<std::string>{"0x401010", "0x402000", "0x403000"}));
}

TEST(PerfData, what_is_mapped_holds_from_its_record_on) {
  PerfBuilder perf;
  perf.clock(kChain);
  perf.add(PerfBuilder::mmap(7, 0x400000, 0x10000, 0, "/old", 1));
  perf.add(PerfBuilder::sample(7, 7, 10, 0x401000, chain({kUserContext, 0x401000})));
  perf.add(PerfBuilder::mmap(7, 0x400000, 0x10000, 0, "/new", 20));
  perf.add(PerfBuilder::sample(7, 7, 30, 0x401000, chain({kUserContext, 0x401000})));
  // fork, and execve: nothing of it is left.
  perf.add(PerfBuilder::task(PERF_RECORD_FORK, 9, 7, 9, 40));
  perf.add(PerfBuilder::sample(9, 9, 50, 0x401000, chain({kUserContext, 0x401000})));
  perf.add(PerfBuilder::comm(9, 9, "other", 60, PERF_RECORD_MISC_COMM_EXEC));
  perf.add(PerfBuilder::sample(9, 9, 70, 0x401000, chain({kUserContext, 0x401000})));
  const Imported in = import(perf.build());
  ASSERT_EQ(in.profile.samples().size(), 4u);
  const auto module_of = [&](Nanoseconds time) -> std::string {
    for (const auto& sample : in.profile.samples()) {
      if (sample.start + sample.wall != time) continue;
      const auto& frame = in.profile.frame(in.profile.stack(sample.stack).frame);
      return frame.module ? in.profile.modules()[frame.module->value - 1].path : "none";
    }
    return "no sample";
  };
  EXPECT_EQ(module_of(10), "/old");
  EXPECT_EQ(module_of(30), "/new");
  EXPECT_EQ(module_of(50), "/new");
  EXPECT_EQ(module_of(70), "none");
}

TEST(PerfData, a_process_has_its_parent_its_birth_and_its_end) {
  PerfBuilder perf;
  perf.clock();
  perf.add(PerfBuilder::comm(7, 7, "master"));
  perf.add(PerfBuilder::sample(7, 7, 1'000'010, 0x1000));
  perf.add(PerfBuilder::task(PERF_RECORD_FORK, 9, 7, 9, 1'000'040));
  perf.add(PerfBuilder::task(PERF_RECORD_FORK, 11, 9, 11, 1'000'045));
  perf.add(PerfBuilder::sample(11, 11, 1'000'050, 0x1000));
  perf.add(PerfBuilder::sample(9, 9, 1'000'060, 0x1000));
  perf.add(PerfBuilder::task(PERF_RECORD_EXIT, 11, 9, 12, 1'000'065));  // a thread of it
  perf.add(PerfBuilder::task(PERF_RECORD_EXIT, 11, 9, 11, 1'000'070));
  // Its number is given again.
  perf.add(PerfBuilder::task(PERF_RECORD_FORK, 11, 7, 11, 1'000'080));
  perf.add(PerfBuilder::sample(11, 11, 1'000'090, 0x1000));
  const Imported in = import(perf.build());
  using Row = std::tuple<int32_t, uint32_t, Nanoseconds, Nanoseconds, std::string>;
  std::vector<Row> rows;
  for (const auto& p : in.profile.processes())
    rows.emplace_back(p.pid, p.parent ? p.parent->value : 0, p.start, p.end, p.how_ended);
  EXPECT_EQ(rows, (std::vector<Row>{{7, 0, 1'000'010, 0, ""},
                                    {9, 1, 1'000'040, 0, ""},
                                    {11, 2, 1'000'045, 1'000'070, "exited"},
                                    {11, 1, 1'000'080, 0, ""}}));
}

// This very program, mapped as what `inode` and `host` say.
Imported with_mapped_self(uint64_t inode, std::string_view host) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  struct stat there {};
  EXPECT_EQ(::stat(self.c_str(), &there), 0);
  PerfBuilder perf;
  perf.clock().feature(3, PerfBytes().counted(host).bytes);
  perf.add(PerfBuilder::mmap2(7, 0x400000, 0x10000, 0, self,
                              uint64_t{major(there.st_dev)} << 32 | minor(there.st_dev),
                              there.st_ino + inode));
  perf.add(PerfBuilder::sample(7, 7, kMillisecond, 0x401000));
  return import(perf.build(), "");
}

TEST(PerfData, a_file_with_another_inode_was_not_what_was_mapped) {
  struct utsname here {};
  ASSERT_EQ(::uname(&here), 0);
  const Imported same = with_mapped_self(0, here.nodename);
  EXPECT_TRUE(same.outcome.warnings.empty());
  ASSERT_EQ(same.outcome.modules.size(), 1u);
  EXPECT_EQ(same.outcome.modules[0].open_path, same.outcome.modules[0].path);
  const Imported another = with_mapped_self(1, here.nodename);
  EXPECT_EQ(another.outcome.modules.at(0).open_path, "");
  ASSERT_EQ(another.outcome.warnings.size(), 1u);
  EXPECT_NE(another.outcome.warnings[0].find(another.outcome.modules[0].path), std::string::npos);
  // Inodes of another machine say nothing of the files here.
  EXPECT_NE(with_mapped_self(1, "elsewhere.example").outcome.modules.at(0).open_path, "");
}

// Found by fuzzing: the difference of two such times has no number.
TEST(PerfData, what_has_a_time_beyond_all_time_is_left_out) {
  PerfBuilder perf;
  perf.clock();
  for (const uint64_t time : {uint64_t{1} << 63, uint64_t{5000}, ~uint64_t{0}, (uint64_t{1} << 61) + 1})
    perf.add(PerfBuilder::sample(7, 7, time, 0x401000));
  const Imported in = import(perf.build());
  EXPECT_EQ(in.profile.samples().size(), 1u);
  EXPECT_EQ(in.outcome.warnings, std::vector<std::string>{"3 records made no sense and were left out"});
}

TEST(PerfData, rings_of_several_cpus_are_put_into_order) {
  PerfBuilder perf;
  perf.clock(kChain);
  perf.add(PerfBuilder::sample(7, 7, 30, 0x401000, chain({kUserContext, 0x401000})));
  perf.add(PerfBuilder::mmap(7, 0x400000, 0x10000, 0, "/app", 10)).end_round();
  const Imported in = import(perf.build());
  EXPECT_EQ(in.profile.modules().size(), 1u);
}

TEST(PerfData, switches_show_time_without_samples) {
  PerfBuilder perf;
  auto& clock = perf.event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, kChain);
  clock.context_switch = 1;
  const auto sample = [](uint64_t time, uint64_t ip) {
    return PerfBuilder::sample(7, 7, time, ip, chain({kUserContext, ip}));
  };
  perf.add(PerfBuilder::switched(7, 7, 100, 0));
  perf.add(sample(150, 0x1000)).add(sample(170, 0x2000));
  perf.add(PerfBuilder::switched(7, 7, 180, PERF_RECORD_MISC_SWITCH_OUT));
  perf.add(PerfBuilder::switched(7, 7, 280, 0));
  perf.add(
      PerfBuilder::switched(7, 7, 290, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT));
  perf.add(PerfBuilder::switched(7, 7, 300, 0));
  const Imported in = import(perf.build());
  using Row = std::tuple<Nanoseconds, Nanoseconds, Nanoseconds, profile::CpuState>;  // start, wall, CPU
  std::vector<Row> rows;
  for (const auto& s : in.profile.samples()) rows.emplace_back(s.start, s.wall, s.cpu, s.cpu_state);
  using enum profile::CpuState;
  // The span after the last sample belongs to it, if the switch has no stack.
  EXPECT_EQ(rows, (std::vector<Row>{{100, 50, 50, running},
                                    {150, 30, 30, running},
                                    {180, 100, 0, blocked},
                                    {280, 10, 10, running},
                                    {290, 10, 0, runnable}}));
  EXPECT_EQ(in.profile.samples()[2].system_call, profile::kCallNotRecorded);
  EXPECT_EQ(in.profile.samples()[4].system_call, -1);
}

// A clock with the id 101, and the tracepoint of switches, 102.
PerfBuilder clock_and_switches(uint64_t period, bool by_frequency) {
  PerfBuilder perf;
  perf.clock(kChain | PERF_SAMPLE_RAW);
  auto& switches = perf.event(PERF_TYPE_TRACEPOINT, 311, kChain | PERF_SAMPLE_RAW);
  switches.sample_period = period;
  switches.freq = by_frequency ? 1 : 0;
  perf.feature(12, PerfBytes()
                       .put(uint32_t{2}, uint32_t{8})
                       .put(uint64_t{0})
                       .put(uint32_t{1})
                       .counted("cpu-clock")
                       .put(uint64_t{101})
                       .put(uint64_t{0})
                       .put(uint32_t{1})
                       .counted("sched:sched_switch")
                       .put(uint64_t{102})
                       .bytes);
  return perf;
}

// What a switch of thread 7 to `next` carries.
PerfBytes switch_fields(int64_t state, int32_t next) {
  PerfBytes b;
  b.put(uint32_t{64 + 4}).put(uint64_t{0}).put(uint64_t{0}, uint64_t{0}).put(int32_t{7}, 120).put(state);
  return b.put(uint64_t{0}, uint64_t{0}).put(next, int32_t{120}).put(uint32_t{0});
}

std::vector<std::byte> with_fields(uint64_t time, uint64_t ip, const PerfBytes& fields, uint64_t id) {
  PerfBytes more = chain({kUserContext, ip});
  return PerfBuilder::sample(7, 7, time, ip, more.raw(fields.bytes), id, PERF_RECORD_MISC_USER, 1000);
}

PerfBytes no_fields() {
  return PerfBytes().put(uint32_t{0});
}

TEST(PerfData, a_tracepoint_of_switches_shows_where_a_thread_slept) {
  PerfBuilder perf = clock_and_switches(1, false);
  perf.add(with_fields(10'000, 0x1000, no_fields(), 101));
  perf.add(with_fields(10'400, 0x2000, switch_fields(1, 0), 102));
  // 600 ns of the clock's period were left: it came back at 49'400.
  perf.add(with_fields(50'000, 0x1000, no_fields(), 101));
  Imported in = import(perf.build());
  ASSERT_TRUE(view::show_event(in.profile, ""));
  ASSERT_EQ(in.profile.samples().size(), 4u);
  const auto& slept = in.profile.samples()[2];
  EXPECT_EQ(slept.cpu_state, profile::CpuState::blocked);
  EXPECT_EQ(slept.start, 10'400);
  EXPECT_EQ(slept.wall, 39'000);
  EXPECT_EQ(in.stack(2), std::vector<std::string>{"0x2000"});
  EXPECT_EQ(in.profile.samples()[3].wall, 600);
  // And how often it was switched away, and where.
  ASSERT_TRUE(view::show_event(in.profile, "sched:sched_switch"));
  ASSERT_EQ(in.profile.samples().size(), 1u);
  EXPECT_EQ(in.stack(0), std::vector<std::string>{"0x2000"});
  EXPECT_EQ(in.profile.samples()[0].wall, 0);
}

TEST(PerfData, a_sampled_tracepoint_of_switches_shows_no_sleep) {
  for (const auto& [period, by_frequency] : {std::pair{uint64_t{999}, true}, {uint64_t{100}, false}}) {
    PerfBuilder perf = clock_and_switches(period, by_frequency);
    perf.add(with_fields(10'000, 0x1000, no_fields(), 101));
    perf.add(with_fields(10'400, 0x2000, switch_fields(1, 0), 102));
    // It slept and came back many a time until here, and no sample says so.
    perf.add(with_fields(5'000'000, 0x1000, no_fields(), 101));
    Imported in = import(perf.build());
    ASSERT_TRUE(view::show_event(in.profile, ""));
    ASSERT_EQ(in.profile.samples().size(), 2u);
    for (const profile::Sample& sample : in.profile.samples()) {
      EXPECT_EQ(sample.cpu_state, profile::CpuState::running);
      EXPECT_EQ(sample.cpu, 1000);
      EXPECT_EQ(sample.wall, 1000);
    }
    ASSERT_EQ(in.outcome.warnings.size(), 1u);
    EXPECT_NE(in.outcome.warnings[0].find("--switch-events"), std::string::npos);
    EXPECT_EQ(in.profile.samples_of_others().size(), 1u);
  }
}

TEST(PerfData, each_of_several_events_can_be_shown) {
  PerfBuilder perf;
  perf.event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES);
  perf.clock();
  perf.add(PerfBuilder::sample(7, 7, 10, 0x1000, {}, 101, PERF_RECORD_MISC_USER, 4000))
      .add(PerfBuilder::sample(7, 7, 20, 0x2000, {}, 102));
  const auto bytes = perf.build();
  Imported in = import(bytes);
  EXPECT_TRUE(in.outcome.warnings.empty());
  // The clock is the first one, whatever their order in the file.
  using profile::SampledEvent, profile::Unit;
  EXPECT_EQ(profile::sampled_events(in.profile),
            (std::vector<SampledEvent>{{"cpu-clock", Unit::nanoseconds}, {"cache-misses", Unit::count}}));
  ASSERT_TRUE(view::show_event(in.profile, ""));
  ASSERT_EQ(in.profile.samples().size(), 1u);
  EXPECT_EQ(in.stack(0), std::vector<std::string>{"0x2000"});
  EXPECT_EQ(in.profile.samples()[0].wall, kMillisecond);
  EXPECT_EQ(in.profile.samples()[0].value, 0);
  ASSERT_TRUE(view::show_event(in.profile, "cache-misses"));
  ASSERT_EQ(in.profile.samples().size(), 1u);
  EXPECT_EQ(in.stack(0), std::vector<std::string>{"0x1000"});
  EXPECT_EQ(in.profile.samples()[0].wall, 0);
  EXPECT_EQ(in.profile.samples()[0].value, 4000);

  MemoryInput input(bytes);
  ImportOptions options;
  options.event = "cache-misses";
  profile::Profile profile;
  ASSERT_TRUE(import_perf_data(input, options, profile).has_value());
  EXPECT_EQ(profile::sampled_events(profile).front().name, "cache-misses");
  options.event = "nonsense";
  EXPECT_EQ(import_perf_data(input, options, profile).error().kind, ErrorKind::usage);
}

TEST(PerfData, a_sample_without_a_period_counts_that_of_its_event) {
  PerfBuilder perf;
  perf.event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES,
             PerfBuilder::kPlain & ~uint64_t{PERF_SAMPLE_PERIOD})
      .sample_period = 500;
  perf.add(PerfBuilder::sample(7, 7, 10, 0x1000));
  const Imported in = import(perf.build());
  ASSERT_EQ(in.profile.samples().size(), 1u);
  EXPECT_EQ(in.profile.samples()[0].value, 500);
}

TEST(PerfData, what_is_counted_never_adds_up_to_too_much) {
  PerfBuilder perf;
  perf.event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES);
  for (uint64_t time = 1; time <= 8; ++time)
    perf.add(PerfBuilder::sample(7, 7, time * 10, 0x1000, {}, 101, PERF_RECORD_MISC_USER, ~uint64_t{0}));
  const Imported in = import(perf.build());
  int64_t sum = 0;
  for (const auto& sample : in.profile.samples())
    EXPECT_FALSE(__builtin_add_overflow(sum, sample.value, &sum));
  EXPECT_EQ(sum, std::numeric_limits<int64_t>::max());
}

class PerfMaps : public ::testing::Test {
 protected:
  PerfMaps() : root(std::filesystem::temp_directory_path() / fmt::format("phlox-importers-{}", ::getpid())) {
    std::filesystem::create_directories(root / "tmp");
  }
  ~PerfMaps() override { std::filesystem::remove_all(root); }
  std::filesystem::path root;
};

TEST_F(PerfMaps, trampolines_of_python_become_python_frames) {
  std::ofstream(root / "tmp/perf-7.map") << "700000000000 b py::main:/srv/app.py\n700000000010 b other_jit\n";
  PerfBuilder perf;
  perf.clock(kChain);
  perf.add(PerfBuilder::mmap(7, 0x700000000000, 0x1000, 0, "//anon"));
  perf.add(
      PerfBuilder::sample(7, 7, 10, 0x700000000012, chain({kUserContext, 0x700000000012, 0x700000000008})));
  const Imported in = import(perf.build(), root);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"other_jit", "main"}));
  const auto& frames = in.profile.frames();
  const auto python = std::find_if(frames.begin(), frames.end(),
                                   [](const auto& f) { return f.kind == profile::FrameKind::python; });
  ASSERT_NE(python, frames.end());
  EXPECT_EQ(python->file, "/srv/app.py");
}

// Python 3.12: a child's map has what it compiled itself, and no word of its parent's.
TEST_F(PerfMaps, what_a_parent_compiled_before_the_fork_has_its_name_in_the_child) {
  std::ofstream(root / "tmp/perf-7.map") << "700000000000 10 py::main:/srv/app.py\n";
  std::ofstream(root / "tmp/perf-9.map") << "710000000000 10 py::handle:/srv/app.py\n";
  PerfBuilder perf;
  perf.clock(kChain);
  perf.add(PerfBuilder::mmap(7, 0x700000000000, 0x1000, 0, "//anon"));
  perf.add(PerfBuilder::task(PERF_RECORD_FORK, 9, 7, 9, 10));
  perf.add(PerfBuilder::mmap(9, 0x710000000000, 0x1000, 0, "//anon", 15));
  perf.add(
      PerfBuilder::sample(9, 9, 20, 0x710000000008, chain({kUserContext, 0x710000000008, 0x700000000008})));
  // A child of the child, which has compiled nothing.
  perf.add(PerfBuilder::task(PERF_RECORD_FORK, 11, 9, 11, 30));
  perf.add(
      PerfBuilder::sample(11, 11, 40, 0x710000000008, chain({kUserContext, 0x710000000008, 0x700000000008})));
  const Imported in = import(perf.build(), root);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"handle", "main"}));
  EXPECT_EQ(in.stack(1), (std::vector<std::string>{"handle", "main"}));
}

TEST_F(PerfMaps, what_a_child_mapped_after_the_fork_has_no_name_of_its_parents) {
  std::ofstream(root / "tmp/perf-7.map")
      << "700000000000 10 py::main:/srv/app.py\n720000000000 10 py::late:/srv/app.py\n";
  PerfBuilder perf;
  perf.clock(kChain);
  perf.add(PerfBuilder::mmap(7, 0x700000000000, 0x1000, 0, "//anon"));
  perf.add(PerfBuilder::task(PERF_RECORD_FORK, 9, 7, 9, 10));
  perf.add(PerfBuilder::mmap(7, 0x720000000000, 0x1000, 0, "//anon", 15));
  perf.add(PerfBuilder::mmap(9, 0x720000000000, 0x1000, 0, "//anon", 15));
  perf.add(
      PerfBuilder::sample(9, 9, 20, 0x720000000008, chain({kUserContext, 0x720000000008, 0x700000000008})));
  // execve: nothing of its parent's is left.
  perf.add(PerfBuilder::comm(9, 9, "other", 30, PERF_RECORD_MISC_COMM_EXEC));
  perf.add(PerfBuilder::mmap(9, 0x700000000000, 0x1000, 0, "//anon", 31));
  perf.add(PerfBuilder::sample(9, 9, 40, 0x700000000008, chain({kUserContext, 0x700000000008})));
  const Imported in = import(perf.build(), root);
  const auto first = in.stack(0);
  EXPECT_EQ(first.back(), "main");
  EXPECT_NE(first.front(), "late");
  EXPECT_NE(in.stack(1), (std::vector<std::string>{"main"}));
}

TEST(PerfData, the_thread_that_has_an_idle_cpu_is_called_by_its_name) {
  PerfBuilder perf;
  perf.clock();
  perf.add(PerfBuilder::sample(0, 0, 10, 0xffffffff81001000, {}, 101, PERF_RECORD_MISC_KERNEL));
  const Imported in = import(perf.build());
  ASSERT_EQ(in.profile.threads().size(), 1u);
  EXPECT_EQ(view::thread_label(in.profile.threads()[0]), "Thread swapper");
  EXPECT_EQ(view::process_label(in.profile.processes()[0]), "swapper");
}

TEST(PerfData, losses_are_said) {
  PerfBuilder perf;
  perf.clock();
  PerfBytes lost(PERF_RECORD_LOST);
  lost.put(uint64_t{101}, uint64_t{42});
  perf.add(PerfBuilder::trail(lost, 0, 0, 5).done()).add(PerfBuilder::sample(7, 7, 6, 0x1000));
  auto bytes = perf.build();
  bytes.resize(bytes.size() - 3);
  const Imported in = import(bytes);
  EXPECT_EQ(in.profile.counter("lost"), 42);
  EXPECT_EQ(in.outcome.samples, 0u);
  EXPECT_EQ(in.outcome.warnings.size(), 3u);  // lost, cut, bytes
}

TEST(Registry, a_format_is_recognised_by_its_content) {
  PerfBuilder perf;
  perf.clock();
  const auto bytes = perf.build();
  MemoryInput input(bytes);
  ASSERT_NE(recognise(input), nullptr);
  EXPECT_EQ(recognise(input)->name, "perf");
  MemoryInput nothing({});
  EXPECT_EQ(recognise(nothing), nullptr);
  EXPECT_EQ(find_format("perf")->name, "perf");
  EXPECT_EQ(find_format("nonsense"), nullptr);
}

}  // namespace
}  // namespace phlox::importers
