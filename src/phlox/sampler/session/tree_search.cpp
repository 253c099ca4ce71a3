#include "phlox/sampler/session/tree_search.h"

#include <fmt/format.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "phlox/memory/living_thread.h"
#include "phlox/process/process_tree.h"
#include "phlox/process/text_file.h"
#include "phlox/process/thread_probe.h"
#include "phlox/python/locate.h"

namespace phlox::sampler {
namespace {

// Programs whose forks need no search; a service has one or a few.
constexpr size_t kMostProgramsKnown = 64;
// Only a running process starts a child, but a child whose parent has ended may be given to a sleeping one.
// So sleeping processes are checked too, once in this many checks; if there are many, this fraction of them
// per check.
constexpr size_t kMostSpared = 16, kAskedAtOnce = 3;
// Even if all births on this host are known, all processes are checked once in this many checks.
constexpr size_t kMostQuiet = 128;
// For up to this many new ids, each parent is read, at some 5 us each: cheaper than reading every process's
// children, which takes a file per thread. If more appear between two checks, births are not known.
constexpr size_t kMostNewborn = 64;
// A process that used more than this before it was found did more than its first sample shows.
constexpr Nanoseconds kLongestUnseen = kSecond / 10;
// The kernel counts a running thread's time up to its last tick, of which there are 250 a second or more.
constexpr Nanoseconds kNotCountedYet = kSecond / 250;
// The maximum number of ids that are kept.
constexpr size_t kMostBrief = 100'000;
// PF_KTHREAD of include/linux/sched.h.
constexpr uint64_t kKernelThread = 0x200000;
// An id is assigned before its process can be seen.
constexpr int kMostTries = 3;

// Empty if the process has ended.
std::optional<process::Stat> stat_of(pid_t pid) {
  auto stat = process::read_stat(pid);
  if (!stat) return {};
  const bool first_has_ended = stat->state == 'Z' || stat->state == 'X';
  if (first_has_ended && memory::living_thread(pid) == pid) return {};
  return stat;
}

// The id of a thread is no process.
bool is_process(pid_t pid) {
  const auto status = process::read_status(pid);
  return status && status->process == pid;
}

// Whether the program that runs in it used all of its CPU time (PF_FORKNOEXEC of include/linux/sched.h).
bool has_not_called_exec(pid_t pid) {
  constexpr uint64_t kForkNoExec = 0x40;
  const auto stat = process::read_stat(pid);
  return stat && (stat->flags & kForkNoExec) != 0;
}

// Whether it still runs in its parent's memory: between vfork() and execve(), as when subprocess starts
// programs.
bool shares_memory(pid_t pid, pid_t parent) {
  return parent > 0 && ::syscall(SYS_kcmp, pid, parent, KCMP_VM, 0, 0) == 0;
}

std::string command_line_of(pid_t pid) {
  const auto text = process::read_text(memory::proc_folder(pid) + "/cmdline");
  return text ? process::parse_command_line(*text) : std::string();
}

// The unit of field 22 of /proc/PID/stat, which counts since boot.
Nanoseconds tick() {
  return kSecond / ::sysconf(_SC_CLK_TCK);
}
uint64_t ticks_now() {
  return static_cast<uint64_t>(clock_now(CLOCK_BOOTTIME) / tick());
}

// The time of its birth, by the CPU time that it has used and waited for since; not before the start tick
// that the kernel reports.
std::optional<Nanoseconds> birth_of(pid_t pid, uint64_t start, const process::ProcessClock& clock,
                                    Nanoseconds most_used) {
  const auto used = clock.used();
  const auto waited = process::ThreadProbe(pid, pid).schedstat();
  if (!used || !waited || waited->off() || *used > most_used) return {};
  const Nanoseconds since = *used + static_cast<Nanoseconds>(waited->wait_ns) + kNotCountedYet;
  const Nanoseconds age = clock_now(CLOCK_BOOTTIME) - static_cast<Nanoseconds>(start) * tick();
  return clock_now() - std::min(since, age);
}

}  // namespace

TreeSearch::TreeSearch(const std::vector<pid_t>& roots, bool itself, bool descendants,
                       std::function<bool(pid_t pid)> chosen)
    : itself_(itself), descendants_(descendants), began_(ticks_now()), chosen_(std::move(chosen)) {
  for (const pid_t pid : roots) meet(pid, 0, true);
}

bool TreeSearch::meet(pid_t pid, pid_t parent, bool root) {
  const auto stat = stat_of(pid);
  if (!stat) return false;
  Entry entry(pid);
  entry.start = stat->start_ticks;
  entry.parent = parent;
  entry.root = root;
  entries_.emplace(pid, std::move(entry));
  return true;
}

void TreeSearch::is_known(const Program& program) {
  if (const auto entry = entries_.find(program.pid); entry != entries_.end()) {
    entry->second.given = entry->second.was_given = true;
    entry->second.image = program.image;
  }
  if (known(program.image) != nullptr) return;
  if (known_.size() >= kMostProgramsKnown) known_.erase(known_.begin());
  known_.push_back({program.image, program.interpreter, program.rseq_cpu_offset});
}

const TreeSearch::Known* TreeSearch::known(const Image& image) const {
  // Without the start of its stack, which is visible only with the right to attach, an image cannot be
  // distinguished from others.
  if (image.executable.empty() || image.start_stack == 0) return nullptr;
  const auto found =
      std::find_if(known_.begin(), known_.end(), [&](const Known& k) { return k.image == image; });
  return found == known_.end() ? nullptr : &*found;
}

void TreeSearch::check_again(pid_t pid) {
  const auto entry = entries_.find(pid);
  if (entry == entries_.end()) return;
  entry->second.given = false;
  entry->second.forked = false;
  entry->second.next = 0;
}

size_t TreeSearch::most_spared() const {
  return std::max(kMostSpared, entries_.size() / kAskedAtOnce);
}

// Ids are assigned in order. None: the ids have wrapped around, they are not known, or there are too many.
std::optional<std::vector<pid_t>> TreeSearch::newborn() {
  const auto last = births_.last_id();
  const auto before = std::exchange(last_birth_, last);
  if (!last || !before || *last < *before || *last - *before > kMostNewborn) return {};
  std::vector<pid_t> ids;
  for (uint64_t id = *before + 1; id <= *last; ++id) ids.push_back(static_cast<pid_t>(id));
  return ids;
}

// All processes are checked for a while after births whose parents are not known: the kernel may show only at
// the next tick that a process has run, and sleeping ones are checked in turn.
bool TreeSearch::asks_everybody(bool newborn_known) {
  known_checks_ = newborn_known ? known_checks_ + 1 : 0;
  const bool everybody = known_checks_ <= most_spared() || known_checks_ % kMostQuiet == 0;
  asked_everybody_ += everybody;
  return everybody;
}

void TreeSearch::forget_if_reused(pid_t pid, const process::Stat& stat) {
  const auto known = entries_.find(pid);
  if (known != entries_.end() && known->second.start != stat.start_ticks) forget(known);
}

// Calls `met` with each of them that can be seen by now, once; the others are tried again.
void TreeSearch::each_seen(std::vector<Unseen>& unseen, const std::vector<pid_t>& newborn,
                           const std::function<void(pid_t pid, const process::Stat& stat)>& met) {
  for (const pid_t id : newborn) unseen.push_back({id, 0});
  std::erase_if(unseen, [&](Unseen& one) {
    const auto stat = process::read_stat(one.pid);
    if (!stat) return ++one.tries >= kMostTries;
    forget_if_reused(one.pid, *stat);
    met(one.pid, *stat);
    return true;
  });
}

// Adds those whose parent is known here.
void TreeSearch::meet_newborn(const std::vector<pid_t>& ids) {
  each_seen(unseen_, ids, [this](pid_t pid, const process::Stat& stat) {
    if (!entries_.contains(stat.parent) || entries_.contains(pid)) return;
    if (is_process(pid) && meet(pid, stat.parent, false)) ++born_;
  });
}

// `of_all`: otherwise only those that may still become a Python. For the others it is enough to notice an end
// before another process can have the id.
void TreeSearch::forget_ended(bool of_all) {
  for (auto& [pid, entry] : entries_) {
    entry.has_run = false;
    if (entry.given && !of_all) continue;
    const auto used = entry.clock.used();
    entry.has_run = !used || std::exchange(entry.used, used) != used || entry.spared >= most_spared();
    entry.spared = entry.has_run ? 0 : entry.spared + 1;
  }
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto one = at++;
    // A process that has not run has not ended, and still has its id.
    if (!one->second.has_run) continue;
    const auto stat = stat_of(one->first);
    if (!stat || stat->start_ticks != one->second.start) forget(one);
  }
}

void TreeSearch::forget(std::map<pid_t, Entry>::iterator at) {
  const Entry& entry = at->second;
  if (entry.forked && !entry.given) {
    ++brief_.processes;
    if (brief_.ids.size() < kMostBrief) brief_.ids.push_back(at->first);
    brief_.command_line = entry.command_line;
  }
  entries_.erase(at);
}

void TreeSearch::list_others() {
  std::map<pid_t, Other> all;
  for (const pid_t pid : process::read_processes()) {
    if (entries_.contains(pid)) continue;
    auto known = others_.extract(pid);
    if (known)
      all.insert(std::move(known));
    else
      all.try_emplace(pid, pid);
  }
  others_ = std::move(all);
  unmet_.clear();
}

void TreeSearch::meet_others(const std::vector<pid_t>& newborn) {
  each_seen(unmet_, newborn, [this](pid_t pid, const process::Stat&) {
    if (entries_.contains(pid) || !is_process(pid)) return;
    others_.erase(pid);
    others_.try_emplace(pid, pid);
  });
}

// Adds the chosen processes of this host. Others may be chosen later, by execve or when their interpreter
// comes up: one that has run since is checked again, less often the longer it exists. All are listed only
// where births are not known, and now and then: on a host with a hundred processes that takes as long as all
// else.
void TreeSearch::choose(const std::optional<std::vector<pid_t>>& newborn) {
  if (!chosen_) return;
  const bool lists = !newborn || listed_before_ >= kMostQuiet;
  listed_before_ = lists ? 0 : listed_before_ + 1;
  if (lists)
    list_others();
  else
    meet_others(*newborn);
  const Nanoseconds now = clock_now();
  for (auto at = others_.begin(); at != others_.end();) {
    const auto one = at++;
    const pid_t pid = one->first;
    Other& other = one->second;
    if (now < other.next) continue;
    const auto used = other.clock.used();
    if (used && used == other.used) continue;
    const auto stat = process::read_stat(pid);
    if (!stat || entries_.contains(pid)) {
      others_.erase(one);
      continue;
    }
    const bool is_first = !std::exchange(other.used, used.value_or(0));
    if ((stat->flags & kKernelThread) != 0) {
      other.next = std::numeric_limits<Nanoseconds>::max();
    } else if (!chosen_(pid)) {
      other.pause = is_first ? kShortest : std::min(other.pause * 2, kLongest);
      other.next = now + other.pause;
    } else {
      if (meet(pid, stat->parent, true)) ++born_;
      others_.erase(one);
    }
  }
}

void TreeSearch::list() {
  const auto newborn = this->newborn();
  const bool everybody = asks_everybody(newborn.has_value());
  forget_ended(everybody);
  choose(newborn);
  if (!descendants_) return;
  if (newborn) meet_newborn(*newborn);
  if (!everybody) return;
  std::vector<pid_t> parents;
  for (const auto& [pid, entry] : entries_) {
    if (entry.has_run) parents.push_back(pid);
  }
  for (size_t at = 0; at < parents.size(); ++at) {
    for (const pid_t child : process::read_children(parents[at])) {
      if (entries_.contains(child) || !meet(child, parents[at], false)) continue;
      ++born_;
      parents.push_back(child);
    }
  }
}

void note_birth(Program& program, uint64_t start, const process::ProcessClock& clock) {
  constexpr auto kAny = std::numeric_limits<Nanoseconds>::max();
  if (has_not_called_exec(program.pid))
    program.birth = birth_of(program.pid, start, clock, kLongestUnseen);
  else
    program.started = birth_of(program.pid, start, clock, kAny);
}

std::unique_ptr<Program> TreeSearch::try_one(pid_t pid, Entry& entry) {
  Image image = image_of(pid);
  const Nanoseconds now = clock_now();
  const bool as_before = image == entry.image;
  if (const Known* fork = known(image)) {
    if (shares_memory(pid, entry.parent)) return nullptr;
    // Between fork() and execve() it looks like its parent, so it is taken the second time.
    if (!std::exchange(entry.forked, true) || !as_before) {
      entry.command_line = command_line_of(pid);
      entry.image = std::move(image);
      entry.next = 0;
      return nullptr;
    }
    auto program = std::make_unique<Program>(pid, fork->interpreter);
    program->image = std::move(image);
    program->rseq_cpu_offset = fork->rseq_cpu_offset;
    if (entry.start > began_) program->birth = birth_of(pid, entry.start, entry.clock, kLongestUnseen);
    return program;
  }
  entry.forked = false;
  if (as_before && now < entry.next) return nullptr;
  const bool is_other = recogniser_.judge(pid) == python::Recogniser::Verdict::no;
  auto found = is_other ? Result<python::Interpreter>(fail(ErrorKind::not_python, "")) : python::locate(pid);
  if (found) {
    auto program = make_program(pid, *std::move(found), std::move(image));
    if (program && entry.start > began_ && !entry.was_given) note_birth(*program, entry.start, entry.clock);
    return program;
  }
  if (found.error().kind == ErrorKind::permission || found.error().kind == ErrorKind::unsupported_python)
    refused_ = found.error().message;
  const bool coming_up = found.error().kind == ErrorKind::target_state;
  entry.pause = coming_up ? 0 : as_before ? std::min(entry.pause * 2, kLongest) : kShortest;
  entry.next = now + entry.pause;
  entry.image = std::move(image);
  return nullptr;
}

std::vector<TreeSearch::Found> TreeSearch::search(size_t most, const std::atomic<bool>* stop) {
  list();
  std::vector<std::pair<uint64_t, pid_t>> by_age;
  for (const auto& [pid, entry] : entries_) {
    if (!entry.given && (!entry.root || itself_)) by_age.emplace_back(entry.start, pid);
  }
  std::sort(by_age.begin(), by_age.end());
  std::vector<Found> all;
  for (const auto& [start, pid] : by_age) {
    if (all.size() >= most || (stop != nullptr && *stop)) break;
    Entry& entry = entries_.at(pid);
    auto program = try_one(pid, entry);
    if (!program) continue;
    is_known(*program);
    all.push_back({std::move(program), entry.parent});
  }
  return all;
}

std::optional<uint64_t> TreeSearch::quiet_until_after() const {
  const bool quiet = !chosen_ && unseen_.empty() && known_checks_ > most_spared() && !any_left();
  return quiet ? last_birth_ : std::nullopt;
}

bool TreeSearch::any_left() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& row) { return !row.second.given; });
}

}  // namespace phlox::sampler
