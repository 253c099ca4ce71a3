#include "phlox/sampler/observe/plan.h"

#include <gtest/gtest.h>

namespace phlox::sampler {
namespace {

using Cpus = Rights::Cpus;

Rights everything() {
  return {true, true, true, true, true, SchedulingClass::real_time, Cpus::all};
}

Rights without_kernel() {
  Rights rights = everything();
  rights.kernel = false;
  return rights;
}

std::string mode_of(const Rights& rights, const Wishes& wishes) {
  return describe(plan_for(rights, wishes));
}

TEST(Plan, the_kernel_comes_first_unless_another_mode_or_source_is_asked_for) {
  EXPECT_EQ(mode_of(everything(), {}), "in the kernel (BPF)");
  EXPECT_TRUE(plan_for(everything(), {}).lacks.empty());
  EXPECT_EQ(mode_of(everything(), {Mode::kernel, NativeSource::automatic}),
            "in the kernel (BPF), with native frames, the kernel's too");
  EXPECT_EQ(mode_of(everything(), {Mode::no_kernel, {}}), "same CPU (real time)");
  EXPECT_EQ(mode_of(everything(), {Mode::automatic, NativeSource::ptrace}),
            "ptrace stop of running threads, with native frames");
  EXPECT_TRUE(wants_kernel({Mode::kernel, NativeSource::perf}));
  EXPECT_FALSE(wants_kernel({Mode::same_cpu, {}}));
}

TEST(Plan, without_the_kernel_a_thread_is_held_on_its_cpu) {
  const Plan plan = plan_for(without_kernel(), {});
  EXPECT_EQ(describe(plan), "same CPU (real time)");
  EXPECT_EQ(plan.holding, Holding::its_cpu);
  EXPECT_EQ(plan.elsewhere, std::nullopt);
  EXPECT_EQ(plan.lacks, std::vector{Right::kernel});
  // Nobody asked for it.
  EXPECT_TRUE(plan_for(without_kernel(), {Mode::no_kernel, {}}).lacks.empty());
}

TEST(Plan, what_is_not_granted_is_named_the_best_first) {
  Rights rights = without_kernel();
  rights.scheduling = SchedulingClass::ordinary;
  rights.cpus = Cpus::some;
  rights.proof = rights.stops = false;
  const Plan plan = plan_for(rights, {});
  EXPECT_EQ(plan.lacks,
            (std::vector{Right::kernel, Right::proof, Right::stops, Right::priority, Right::cpus}));
  EXPECT_EQ(describe(plan),
            "same CPU (ordinary class, leans towards moments of waiting; unproved: no schedstat), hands off "
            "(unproved) where that CPU is refused");
  rights.scheduling = SchedulingClass::short_slice;
  rights.proof = rights.stops = true;
  EXPECT_EQ(plan_for(rights, {}).lacks, (std::vector{Right::kernel, Right::cpus}));
}

TEST(Plan, on_a_refused_cpu_a_thread_is_stopped_if_the_mode_and_the_host_allow_it) {
  Rights rights = without_kernel();
  rights.cpus = Cpus::some;
  EXPECT_EQ(mode_of(rights, {}), "same CPU (real time), ptrace stop where that CPU is refused");
  EXPECT_EQ(mode_of(rights, {Mode::same_cpu, {}}),
            "same CPU (real time), hands off (unproved) where that CPU is refused");
  rights.cpus = Cpus::none;
  EXPECT_EQ(mode_of(rights, {}), "ptrace stop (the program's CPUs are refused)");
  rights.stops = false;
  EXPECT_EQ(mode_of(rights, {}), "hands off (unproved) (the program's CPUs are refused)");
  EXPECT_EQ(mode_of(rights, {Mode::ptrace, {}}), "hands off (unproved)");
  EXPECT_EQ(mode_of(everything(), {Mode::ptrace, {}}), "ptrace stop");
  EXPECT_EQ(mode_of(everything(), {Mode::hands_off, {}}), "hands off (unproved)");
}

TEST(Plan, events_hold_running_threads_only_in_the_real_time_class_unless_asked_for) {
  Rights rights = without_kernel();
  const Wishes native{Mode::automatic, NativeSource::automatic};
  EXPECT_EQ(mode_of(rights, native), "same CPU (real time), native frames by perf events, the kernel's too");
  rights.kernel_events = false;
  EXPECT_EQ(mode_of(rights, native), "same CPU (real time), native frames by perf events");
  rights.scheduling = SchedulingClass::short_slice;
  EXPECT_EQ(running_source(NativeSource::automatic, rights), NativeSource::ptrace);
  EXPECT_EQ(running_source(NativeSource::perf, rights), NativeSource::perf);
  rights.events = false;
  EXPECT_EQ(running_source(NativeSource::perf, rights), NativeSource::syscall);
  rights.stops = false;
  for (const auto asked : {NativeSource::automatic, NativeSource::ptrace, NativeSource::syscall})
    EXPECT_EQ(running_source(asked, rights), NativeSource::syscall);
  EXPECT_EQ(mode_of(rights, native),
            "same CPU (ordinary class, short slice), native frames of blocked threads only");
}

TEST(Plan, a_mode_without_stops_takes_no_stops_for_native_frames_either) {
  EXPECT_EQ(asked_source({Mode::same_cpu, NativeSource::automatic}), NativeSource::perf);
  EXPECT_EQ(asked_source({Mode::same_cpu, NativeSource::ptrace}), NativeSource::ptrace);
  EXPECT_EQ(asked_source({Mode::no_kernel, NativeSource::automatic}), NativeSource::automatic);
  EXPECT_EQ(asked_source({Mode::hands_off, {}}), std::nullopt);
  Rights rights = without_kernel();
  rights.events = false;
  EXPECT_EQ(mode_of(rights, {Mode::same_cpu, NativeSource::automatic}),
            "same CPU (real time), native frames of blocked threads only");
}

TEST(Plan, why_there_are_no_frames_of_the_kernel) {
  EXPECT_EQ(why_no_kernel_frames(true, true), "");
  EXPECT_NE(why_no_kernel_frames(true, false).find("CAP_PERFMON"), std::string_view::npos);
  EXPECT_NE(why_no_kernel_frames(false, false).find("only perf events"), std::string_view::npos);
}

}  // namespace
}  // namespace phlox::sampler
