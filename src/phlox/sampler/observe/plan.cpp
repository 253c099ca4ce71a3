#include "phlox/sampler/observe/plan.h"

#include "phlox/profile/model.h"

namespace phlox::sampler {
namespace {

std::string describe_same_cpu(const Plan& plan) {
  std::string text = "same CPU (";
  text += describe(plan.scheduling);
  if (plan.by_perf) text += ", woken by a perf event";
  return text + (plan.proof ? ")" : "; unproved: no schedstat)");
}

std::string describe_holding(const Plan& plan, Holding holding) {
  switch (holding) {
    case Holding::interrupt:
      return std::string(profile::kInTheKernel);
    case Holding::its_cpu:
      return describe_same_cpu(plan);
    case Holding::stop:
      return "ptrace stop";
    case Holding::nothing:
      break;
  }
  return "hands off (unproved)";
}

}  // namespace

bool wants_kernel(const Wishes& wishes) {
  const bool any_source = !wishes.native || wishes.native == NativeSource::automatic;
  return wishes.mode == Mode::kernel || (wishes.mode == Mode::automatic && any_source);
}

std::optional<NativeSource> asked_source(const Wishes& wishes) {
  if (wishes.native == NativeSource::automatic && !may_stop(wishes.mode)) return NativeSource::perf;
  return wishes.native;
}

NativeSource running_source(NativeSource asked, const Rights& rights) {
  const bool automatic = asked == NativeSource::automatic;
  // Events are of use only to a thread that gets its CPU at once; without that, stops are better.
  const bool events =
      automatic ? rights.scheduling == SchedulingClass::real_time : asked == NativeSource::perf;
  if (events && rights.events) return NativeSource::perf;
  if ((automatic || asked == NativeSource::ptrace) && rights.stops) return NativeSource::ptrace;
  return NativeSource::syscall;
}

std::string_view why_no_kernel_frames(bool events, bool kernel_events) {
  if (!events) return "no kernel frames: only perf events tell them";
  if (kernel_events) return "";
  return "no kernel frames: perf events of the kernel are refused (CAP_PERFMON, or "
         "kernel.perf_event_paranoid of 1 or less, would grant them)";
}

Plan plan_for(const Rights& rights, const Wishes& wishes) {
  Plan plan;
  if (wants_kernel(wishes) && rights.kernel) {
    plan.holding = Holding::interrupt;
    plan.proof = plan.kernel_frames = true;
    if (wishes.native) plan.native = NativeSource::kernel;
    return plan;
  }
  const bool on_its_cpu = goes_to_its_cpu(wishes.mode);
  const Holding otherwise = may_stop(wishes.mode) && rights.stops ? Holding::stop : Holding::nothing;
  plan.holding = on_its_cpu && rights.cpus != Rights::Cpus::none ? Holding::its_cpu : otherwise;
  if (on_its_cpu && rights.cpus != Rights::Cpus::all) plan.elsewhere = otherwise;
  plan.scheduling = rights.scheduling;
  plan.proof = rights.proof;
  if (const auto asked = asked_source(wishes)) plan.native = running_source(*asked, rights);
  plan.kernel_frames = plan.native == NativeSource::perf && rights.kernel_events;
  const bool unheld = plan.holding == Holding::nothing || plan.elsewhere == Holding::nothing;
  if (wants_kernel(wishes)) plan.lacks.push_back(Right::kernel);
  if (!rights.proof) plan.lacks.push_back(Right::proof);
  if (unheld && may_stop(wishes.mode)) plan.lacks.push_back(Right::stops);
  if (rights.scheduling == SchedulingClass::ordinary) plan.lacks.push_back(Right::priority);
  if (plan.elsewhere) plan.lacks.push_back(Right::cpus);
  return plan;
}

std::string describe(const Plan& plan) {
  std::string mode = describe_holding(plan, plan.holding);
  if (plan.elsewhere && plan.holding == Holding::its_cpu)
    mode += ", " + describe_holding(plan, *plan.elsewhere) + " where that CPU is refused";
  else if (plan.elsewhere)
    mode += " (the program's CPUs are refused)";
  if (!plan.native) return mode;
  switch (*plan.native) {
    case NativeSource::ptrace:
      return "ptrace stop of running threads, with native frames";
    case NativeSource::perf:
      return mode + ", native frames by perf events" + (plan.kernel_frames ? ", the kernel's too" : "");
    case NativeSource::kernel:
      return mode + ", with native frames, the kernel's too";
    default:
      return mode + ", native frames of blocked threads only";
  }
}

}  // namespace phlox::sampler
