#include "phlox/doctor/checkup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/process/cpu_list.h"
#include "phlox/process/permission.h"
#include "phlox/sampler/observe/plan.h"

namespace phlox::doctor {
namespace {

using sampler::SchedulingClass;

constexpr size_t kMostModulesNamed = 5;  // modules named in a row
// Share of samples; a higher one causes a warning (view::QualitySummary::needs_warning).
constexpr double kManyRejected = 0.01;

std::string error_words(int error) {
  return fmt::format("errno {}: {}", error, std::strerror(error));
}

std::vector<std::string> some(const std::string& hint) {
  return hint.empty() ? std::vector<std::string>() : std::vector<std::string>{hint};
}

// The row for something that a recording needs and the process denies.
Check refused_row(std::string name, const Error& refused) {
  return {std::move(name), Grade::fails, refused.message, some(refused.hint)};
}

bool may_stop(const Findings& f) {
  return f.stop == 0 && !(f.state && f.state->traced());
}

// The plan of a recording with these wishes.
sampler::Plan plan_with(const Findings& f, const sampler::Wishes& wishes) {
  using Cpus = sampler::Rights::Cpus;
  const size_t out = f.cpus.refused.size() + f.cpus.kept_free.size();
  sampler::Rights rights;
  rights.kernel = !f.no_kernel_capture;
  rights.proof = f.schedstat;
  rights.stops = may_stop(f);
  rights.events = f.events;
  rights.kernel_events = f.kernel_events;
  rights.scheduling = f.scheduling;
  rights.cpus = out == 0 ? Cpus::all : out < f.cpus.wanted.size() ? Cpus::some : Cpus::none;
  return sampler::plan_for(rights, wishes);
}

Check process_row(const Findings& f) {
  if (!f.state) return refused_row("process", *f.refused);
  Check row{"process", Grade::works, "", {}};
  constexpr size_t kLongestTitle = 60;
  row.found = fmt::format("{}: user {}, {} thread{}", shortened(f.state->title(), kLongestTitle),
                          process::describe_user(f.state->status.uid.effective), f.state->status.threads,
                          f.state->status.threads == 1 ? "" : "s");
  for (const std::string& remark : process::remarks_on(*f.state)) {
    row.grade = Grade::partly;
    row.hints.push_back(remark);
  }
  return row;
}

Check memory_row(const Findings& f) {
  Check row{"memory", Grade::works, "", {}};
  const std::string whose = f.pid == 0 ? " a process of this user that phlox did not start" : " it";
  if (!f.memory.readable()) {
    if (f.refused) return refused_row("memory", *f.refused);
    return {"memory", Grade::fails, "cannot be read: " + error_words(f.memory.maps), {}};
  }
  if (f.memory.call == 0) {
    row.found = "process_vm_readv can read" + whose;
  } else {
    row.grade = Grade::partly;
    row.found = fmt::format("process_vm_readv is refused ({}); /proc/PID/mem can read{}, more slowly",
                            error_words(f.memory.call), whose);
  }
  if (f.pid == 0) {
    row.found += f.host.has(process::Capability::sys_ptrace)
                     ? "; processes of other users can be read too (CAP_SYS_PTRACE)"
                     : "; processes of other users cannot be read";
    if (!f.host.has(process::Capability::sys_ptrace)) row.hints.push_back("sudo phlox " + f.retry);
  }
  return row;
}

Check python_row(const Findings& f) {
  if (f.refused && f.memory.readable()) return refused_row("Python", *f.refused);
  if (f.refused) return {"Python", Grade::fails, "unknown, because phlox may not read its memory", {}};
  return {"Python", Grade::works, f.python, {}};
}

Check cpus_row(const Findings& f) {
  Check row{"CPUs", Grade::works, "", {}};
  row.found = fmt::format("phlox may use every CPU that the process may use: {}",
                          process::describe_cpus(f.cpus.wanted));
  if (f.pid == 0) row.found = "phlox may use " + process::describe_cpus(f.cpus.wanted);
  if (f.cpus.wanted.empty()) {
    return {"CPUs", Grade::partly, "the CPUs that its threads may use are not visible", {}};
  }
  if (!f.cpus.refused.empty()) {
    row.grade = Grade::partly;
    row.found = fmt::format(
        "phlox may not use {} of its CPUs {} (sched_setaffinity, {}): a thread that runs there {}",
        process::describe_cpus(f.cpus.refused), process::describe_cpus(f.cpus.wanted),
        error_words(f.cpus.error), may_stop(f) ? "is stopped for microseconds instead" : "is read unproved");
    row.hints.push_back(
        f.groups.cpus.empty()
            ? "run phlox where no filter or control group keeps it off these CPUs: taskset -p $$"
            : fmt::format(
                  "its cpuset leaves phlox {}: run it in the program's own control group, or in the root",
                  process::describe_cpus(f.groups.cpus)));
  } else if (!f.cpus.kept_free.empty()) {
    row.grade = Grade::partly;
    row.found = fmt::format(
        "CPUs {} of it are kept free (isolcpus, nohz_full), and phlox does not go there: a "
        "thread that runs there {}",
        process::describe_cpus(f.cpus.kept_free),
        may_stop(f) ? "is stopped for microseconds instead" : "is read unproved");
  }
  return row;
}

Check real_time_row(const Findings& f) {
  if (f.scheduling == SchedulingClass::real_time)
    return {"real time",
            Grade::works,
            "the sampler has real-time priority (SCHED_FIFO), so it samples on time",
            {}};
  const auto why = process::explain_no_real_time(f.host, f.real_time, f.retry);
  return {"real time", Grade::partly,
          fmt::format("{}: the sampler runs in the {}", why.reason, sampler::describe(f.scheduling)),
          some(why.hint)};
}

Check schedstat_row(const Findings& f) {
  if (f.schedstat)
    return {"proof", Grade::works, "the kernel counts how often a thread is scheduled in (schedstat)", {}};
  return {"proof",
          Grade::partly,
          "the kernel does not count how often a thread is scheduled in (/proc/PID/task/TID/schedstat): no "
          "stack can be proved to be of one moment",
          {"use a kernel with CONFIG_SCHED_INFO, and mount /proc with its default options"}};
}

Check blocked_row(const Findings& f) {
  if (f.system_call)
    return {"waiting", Grade::works, "phlox can read which system call a thread waits in", {}};
  return {"waiting",
          Grade::partly,
          "phlox may not read which system call a thread waits in (/proc/PID/task/TID/syscall)",
          {}};
}

Check events_row(const Findings& f) {
  if (f.events)
    return {
        "perf events", Grade::works, fmt::format("for up to {} running threads at once", f.most_events), {}};
  const auto why = process::explain_no_event(f.host, f.event_refusal, f.retry);
  return {"perf events", Grade::partly, why.reason, some(why.hint)};
}

// The reason is in the rows above: perf events and real-time scheduling.
Check native_row(const Findings& f) {
  const sampler::Plan plan = plan_with(f, {.native = sampler::NativeSource::automatic});
  const bool exact =
      plan.native == sampler::NativeSource::kernel || plan.native == sampler::NativeSource::perf;
  return {"--native", exact ? Grade::works : Grade::partly, "would use: " + sampler::describe(plan), {}};
}

Check kernel_row(const Findings& f) {
  if (f.events && f.kernel_events && f.kernel_names)
    return {"kernel frames", Grade::works, "shown by --native, with their names", {}};
  if (f.events && f.kernel_events) {
    return {
        "kernel frames",
        Grade::partly,
        fmt::format("shown by --native, without names: /proc/kallsyms hides them (kernel.kptr_restrict {})",
                    f.host.kptr_restrict.value_or(0)),
        {f.host.in_container ? "run phlox on the host" : "sudo phlox " + f.retry}};
  }
  return {"kernel frames", Grade::partly,
          std::string(sampler::why_no_kernel_frames(f.events, f.kernel_events)),
          f.events ? some(process::advise_kernel_events(f.host, f.retry)) : std::vector<std::string>()};
}

Check stops_row(const Findings& f) {
  if (f.state && f.state->traced()) {
    return {
        "stops",
        Grade::partly,
        fmt::format("process {} ({}) traces it, and only one process can: phlox stops none of its threads",
                    f.state->status.tracer, f.state->tracer_name),
        {}};
  }
  if (f.stop == 0)
    return {"stops", Grade::works, "ptrace works; phlox uses it only where nothing else works", {}};
  return {"stops", Grade::partly,
          fmt::format("ptrace is refused, even for a child of phlox ({}): a thread that would have to be "
                      "stopped is read unproved",
                      error_words(f.stop)),
          some(f.host.in_container ? "docker run --cap-add SYS_PTRACE, or --security-opt seccomp=unconfined"
                                   : "")};
}

Check files_row(const Findings& f) {
  if (f.files.not_opened.empty())
    return {"files",
            Grade::works,
            fmt::format("phlox can open all {} files whose code the process runs", f.files.opened),
            {}};
  Check row{"files",
            Grade::partly,
            fmt::format("phlox cannot open {} of {} files whose code the process runs:",
                        f.files.not_opened.size(), f.files.opened + f.files.not_opened.size()),
            {}};
  for (size_t i = 0; i < std::min(f.files.not_opened.size(), kMostModulesNamed); ++i)
    row.found += " " + f.files.not_opened[i];
  if (f.files.not_opened.size() > kMostModulesNamed) row.found += " ...";
  if (!f.host.counts(process::Capability::checkpoint_restore) &&
      !f.host.counts(process::Capability::sys_admin))
    row.hints.push_back("root on the host can open deleted files too: sudo phlox " + f.retry);
  return row;
}

Check names_row(const Findings& f, bool symbols) {
  Check row{symbols ? "symbols" : "lines", Grade::works, "", {}};
  size_t lacking = 0;
  for (const auto& missing : f.missing)
    lacking += symbols ? missing.names.no_symbols : missing.names.no_lines;
  const size_t have = f.modules - std::min(lacking, f.modules);
  row.found = symbols ? fmt::format("{} of {} files have a symbol table", have, f.modules)
                      : fmt::format("{} of {} files have debug information", have, f.modules);
  if (lacking == 0) return row;
  row.grade = Grade::partly;
  if (symbols) {
    row.found += "; in the others --native names exported functions only";
    return row;
  }
  row.found += "; in the others --native shows no lines";
  for (const auto& missing : f.missing) {
    if (row.hints.size() == kMostModulesNamed) {
      row.hints.push_back(fmt::format("and {} more (--json lists them)", lacking - kMostModulesNamed));
      break;
    }
    if (missing.names.no_lines) row.hints.push_back(describe(missing));
  }
  return row;
}

Check capabilities_row(const Findings& f) {
  std::string has, lacks;
  for (const process::Capability capability : process::capabilities_of_use()) {
    std::string& list = f.host.has(capability) ? has : lacks;
    list += list.empty() ? "" : ", ";
    list += process::name_of(capability);
  }
  std::string found = has.empty() ? "none that phlox could use" : "has " + has;
  if (!lacks.empty() && !has.empty()) found += "; lacks " + lacks;
  if (!f.host.initial_user_namespace && !has.empty())
    found += "; they belong to a user namespace, so they count only for processes in it";
  return {"capabilities", Grade::fact, found, {}};
}

Check yama_row(const Findings& f) {
  if (!f.host.yama_scope) return {"Yama", Grade::fact, "this kernel has no Yama, or hides it", {}};
  constexpr std::string_view kMeaning[] = {"no restriction", "a process may read only what it started",
                                           "reading needs CAP_SYS_PTRACE",
                                           "no process may read another until the next boot"};
  const int scope = std::clamp(*f.host.yama_scope, 0, 3);
  return {"Yama",
          Grade::fact,
          fmt::format("kernel.yama.ptrace_scope is {}: {}", *f.host.yama_scope,
                      kMeaning[static_cast<size_t>(scope)]),
          {}};
}

Check paranoia_row(const Findings& f) {
  return {"perf paranoia",
          Grade::fact,
          f.host.perf_paranoid ? fmt::format("kernel.perf_event_paranoid is {}", *f.host.perf_paranoid)
                               : "this kernel has no perf events, or hides them",
          {}};
}

Check seccomp_row(const Findings& f) {
  if (f.host.seccomp == 0) return {"seccomp", Grade::fact, "no filter applies to phlox", {}};
  return {"seccomp", Grade::fact, "a filter applies to phlox: the lines above show what it refuses", {}};
}

Check modules_row(const Findings& f) {
  std::string found = f.host.security_modules.empty() ? "phlox cannot see which modules are active"
                                                      : "active: " + f.host.security_modules;
  if (!f.host.label.empty()) found += fmt::format("; phlox has the label {}", f.host.label);
  if (!f.its_label.empty() && f.its_label != f.host.label)
    found += fmt::format("; process {} has the label {}", f.pid, f.its_label);
  return {"security modules", Grade::fact, found, {}};
}

Check namespaces_row(const Findings& f) {
  std::string found = f.host.initial_user_namespace ? "phlox is in the initial user namespace"
                                                    : "phlox is in a user namespace of its own";
  if (f.host.in_container) found += ", probably in a container";
  if (f.state) {
    std::string others;
    for (const auto& [name, other] : {std::pair{"PID", f.state->other_pid_namespace},
                                      {"mount", f.state->other_mount_namespace},
                                      {"user", f.state->other_user_namespace}}) {
      if (other != true) continue;
      others += others.empty() ? name : fmt::format(", {}", name);
    }
    found += others.empty() ? "; the process has the same namespaces, as far as phlox can see"
                            : fmt::format("; the process has namespaces of its own: {}", others);
    const auto& pids = f.state->status.namespace_pids;
    if (f.state->other_pid_namespace == true && !pids.empty())
      found += fmt::format(" (its number there is {})", pids.back());
  }
  return {"namespaces", Grade::fact, found, {}};
}

// "at most 0.5 CPUs, throttled in 12 of 100 periods"
std::string quota_words(const process::ControlGroups& groups) {
  std::string words = groups.quota ? fmt::format("at most {:.3g} CPUs, throttled in {} of {} periods",
                                                 *groups.quota, groups.throttled, groups.periods)
                                   : std::string("no quota");
  if (!groups.cpus.empty()) words += fmt::format(", CPUs {}", process::describe_cpus(groups.cpus));
  return words;
}

Check groups_row(const Findings& f) {
  Check row{"control groups", Grade::fact, "", {}};
  row.found = "phlox: " + quota_words(f.groups);
  if (f.its_groups && f.its_groups->path != f.groups.path)
    row.found += fmt::format("; the process: {} ({})", quota_words(*f.its_groups), f.its_groups->path);
  else if (f.its_groups)
    row.found += "; the process: the same group";
  if (f.groups.quota) {
    row.grade = Grade::partly;
    row.hints.push_back(
        "phlox is throttled when the quota is used up, and then samples late: run it in a "
        "control group without a quota");
  }
  return row;
}

Check bpf_row(const Findings& f) {
  if (!f.no_kernel_capture)
    return {
        "BPF", Grade::works, "samples inside the kernel: exact, with every switch and every new thread", {}};
  return {"BPF", Grade::fact,
          fmt::format("{}, {}; {}", f.bpf == 0 ? "allowed" : "refused (" + error_words(f.bpf) + ")",
                      f.host.has_btf ? "the kernel has type information (BTF)"
                                     : "the kernel has no type information (BTF)",
                      f.no_kernel_capture->message),
          some(f.no_kernel_capture->hint)};
}

std::string trial_words(const sampler::Progress& p) {
  return fmt::format("{} samples were tried, {} rejected{}", p.samples, p.rejected(),
                     p.unproved > 0 ? fmt::format(", {} unproved", p.unproved) : "");
}

struct Judgement {
  sampler::Right lacks;
  Forecast forecast;
  std::string_view why;
};
constexpr Judgement kJudgements[] = {
    {sampler::Right::proof, Forecast::poor, "nothing proves that a stack is of one moment"},
    {sampler::Right::stops, Forecast::poor,
     "nothing proves that a stack is of one moment on CPUs that phlox may not use"},
    {sampler::Right::priority, Forecast::fair,
     "every stack is proved to be of one moment, but samples are biased towards moments at which it waits"},
    {sampler::Right::cpus, Forecast::fair,
     "every stack is proved to be of one moment, but threads are stopped for it"},
};

void judge(const Findings& f, const sampler::Plan& recording, Plan& plan) {
  const auto worst = std::find_if(std::begin(kJudgements), std::end(kJudgements), [&](const Judgement& one) {
    return std::count(recording.lacks.begin(), recording.lacks.end(), one.lacks) > 0;
  });
  plan.forecast = Forecast::good;
  plan.why = recording.holding == sampler::Holding::interrupt
                 ? "every stack is read in the interrupt itself, and no thread is stopped"
                 : "every stack is proved to be of one moment, and no thread is stopped";
  if (worst != std::end(kJudgements)) {
    plan.forecast = worst->forecast;
    plan.why = worst->why;
  }
  if (f.trial && static_cast<double>(f.trial->rejected()) >
                     kManyRejected * static_cast<double>(std::max<uint64_t>(f.trial->samples, 1))) {
    plan.forecast = std::max(plan.forecast, Forecast::fair);
    plan.why += "; many samples were rejected";
  }
}

}  // namespace

std::string_view word_of(Grade grade) {
  constexpr std::string_view kWords[] = {"yes", "partly", "no", ""};
  return kWords[static_cast<size_t>(grade)];
}

std::string_view word_of(Forecast forecast) {
  constexpr std::string_view kWords[] = {"good", "fair", "poor", "none"};
  return kWords[static_cast<size_t>(forecast)];
}

std::vector<Check> checks_of(const Findings& f) {
  std::vector<Check> rows;
  if (f.pid != 0) rows.push_back(process_row(f));
  const bool there = f.pid == 0 || f.state;
  if (there) rows.push_back(memory_row(f));
  if (f.pid != 0 && there) rows.push_back(python_row(f));
  if (there) rows.push_back(cpus_row(f));
  rows.push_back(real_time_row(f));
  if (there) {
    rows.push_back(schedstat_row(f));
    // Both need the right to read the process's memory.
    if (f.memory.readable()) {
      rows.push_back(blocked_row(f));
      rows.push_back(events_row(f));
      rows.push_back(kernel_row(f));
      rows.push_back(native_row(f));
    }
  }
  rows.push_back(stops_row(f));
  if (f.pid != 0 && !f.refused) {
    rows.push_back(files_row(f));
    rows.push_back(names_row(f, true));
    rows.push_back(names_row(f, false));
  }
  for (const auto make : {capabilities_row, yama_row, paranoia_row, seccomp_row, modules_row, namespaces_row,
                          groups_row, bpf_row})
    rows.push_back(make(f));
  return rows;
}

Plan plan_of(const Findings& f, int status) {
  Plan plan;
  if (f.refused) {
    plan.why = f.refused->message;
    plan.line = fmt::format("phlox {} would fail with status {}: {}", f.retry, status, f.refused->message);
    return plan;
  }
  const sampler::Plan recording = plan_with(f, {});
  judge(f, recording, plan);
  plan.mode = f.trial ? f.trial->mode : sampler::describe(recording);
  plan.line = fmt::format("phlox {} would use: {}. That is {}: {}", f.retry, plan.mode,
                          word_of(plan.forecast), plan.why);
  if (f.trial) plan.line += fmt::format(" ({})", trial_words(*f.trial));
  if (!f.trial && !f.trial_failed.empty())
    plan.line += fmt::format(" (a trial took no sample: {})", f.trial_failed);
  return plan;
}

}  // namespace phlox::doctor
