// The experiment behind docs/decisions/0001: repeatedly reads the Python stack of the GIL's holder in one of
// several modes, and reports how many of the stacks were possible. Knows some builds of CPython and the names
// that bench/targets use; it is no profiler. Never writes to its target. Prints one JSON object. Started by
// bench/reading/experiment.py.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "layout.h"
#include "pages.h"

namespace {

using namespace reading;

enum class Mode { same_cpu, ptrace, other_cpu };
enum class Class { fifo, short_slice, plain };
enum class Evidence { rseq, stat, both };
enum class Proof { count, words, none };
enum class Check { none, families, serials };

struct Options {
  pid_t pid = 0;
  uint64_t runtime = 0;
  const Layout* layout = nullptr;
  double rate = 1000;  // 0: as fast as possible, with a pause of 20 us for the target
  uint64_t samples = 1000;
  double seconds = 600;
  Mode mode = Mode::same_cpu;
  Class scheduling = Class::fifo;
  long slice_us = 100;
  Evidence evidence = Evidence::rseq;
  Proof proof = Proof::count;
  Check check = Check::none;
  bool fresh_names = false;  // read every name at every sample
  bool lock = true;
  bool slack = true;
  bool check_anchor = true;
  int attempts = 4;
  int cpu = -1;  // other_cpu, ptrace: the CPU to run on
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "reading: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

int64_t now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

void sleep_until(int64_t when) {
  const timespec t{when / 1'000'000'000, when % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

// ---- The kernel's word about one thread
// ------------------------------------------------------------------------

struct Schedule {
  uint64_t run = 0, count = 0;
  bool operator==(const Schedule&) const = default;
};

struct Thread {
  uint64_t state = 0;    // PyThreadState
  uint64_t pointer = 0;  // pthread_t: glibc's thread pointer
  pid_t tid = 0;
  int schedstat = -1, stat = -1;

  Schedule schedule() const {
    char text[96];
    const ssize_t n = pread(schedstat, text, sizeof(text) - 1, 0);
    if (n <= 0) return {};
    text[n] = 0;
    Schedule result;
    char* rest = nullptr;
    result.run = std::strtoull(text, &rest, 10);
    std::strtoull(rest, &rest, 10);  // time spent waiting for a CPU
    result.count = std::strtoull(rest, &rest, 10);
    return result;
  }
  // Fields 3 and 39 of /proc/PID/task/TID/stat.
  std::pair<char, int> state_and_cpu() const {
    char text[1024];
    const ssize_t n = pread(stat, text, sizeof(text) - 1, 0);
    if (n <= 0) return {'X', -1};
    text[n] = 0;
    const char* field = std::strrchr(text, ')');
    if (field == nullptr) return {'X', -1};
    const char letter = field[2];
    int number = 2;
    for (; *field != 0 && number < 39; ++field) number += *field == ' ';
    return {letter, std::atoi(field)};
  }
  // struct rseq.cpu_id as the kernel wrote it when the thread last returned to user mode on a CPU new to it.
  int rseq_cpu(pid_t pid) const {
    int32_t cpu = -1;
    const uint64_t address = pointer + static_cast<uint64_t>(__rseq_offset) + offsetof(struct rseq, cpu_id);
    iovec local = {&cpu, sizeof(cpu)}, remote = {reinterpret_cast<void*>(address), sizeof(cpu)};
    return process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(cpu) ? cpu : -1;
  }
};

bool asleep(char state) {
  return state == 'S' || state == 'D' || state == 'I';
}

long migrations(pid_t pid, pid_t tid) {
  char path[64], line[256];
  std::snprintf(path, sizeof(path), "/proc/%d/task/%d/sched", pid, tid);
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return -1;
  long result = -1;
  while (std::fgets(line, sizeof(line), file) != nullptr)
    if (std::strncmp(line, "se.nr_migrations", 16) == 0) result = std::atol(std::strchr(line, ':') + 1);
  std::fclose(file);
  return result;
}

// Linux 6.12: an ordinary thread may request a slice of its own; the shorter it is, the sooner it is
// scheduled in.
struct SchedAttr {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

const char* take_class(Class wanted, long slice_us) {
  if (wanted == Class::fifo) {
    const sched_param parameter{1};
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter) == 0) return "fifo";
    wanted = Class::short_slice;
  }
  if (wanted == Class::short_slice) {
    SchedAttr attr{sizeof(SchedAttr), SCHED_OTHER, 0, 0, 0, static_cast<uint64_t>(slice_us) * 1000, 0, 0};
    SchedAttr got{};
    if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0 &&
        syscall(SYS_sched_getattr, 0, &got, sizeof(got), 0) == 0 && got.runtime == attr.runtime)
      return "short slice";
  }
  return "plain";
}

bool move_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

// ---- One stack
// --------------------------------------------------------------------------------------------------

enum class End { base, detached, broken, unreadable };

struct Stack {
  std::vector<uint64_t> codes;     // innermost first
  std::vector<std::string> names;  // with fresh_names
  End end = End::unreadable;
  uint64_t top = 0;  // address of the innermost frame
  bool entered = false;
  uint64_t outer = 0;  // the frame that the first entry frame leads to
  unsigned owner = 0;  // of the last frame visited
};

class Reader {
 public:
  explicit Reader(const Options& options) : options_(options), layout_(*options.layout), pages_(options.pid) {
    pages_.capture();
    uint64_t interpreter = 0;
    if (!pages_.load(options.runtime + layout_.runtime_interpreters_head, interpreter))
      fail("no interpreter");
    gil_ = options.runtime + layout_.runtime_gil;
    if (layout_.minor >= 12 && !pages_.load(interpreter + layout_.interpreter_gil, gil_)) fail("no GIL");
    if (!pages_.load(interpreter + layout_.interpreter_threads_head, first_)) fail("no thread");
    if (options.lock) pages_.lock();
  }

  Pages& pages() { return pages_; }
  // Anchors that turned out to be stale, by the result of the walk from them.
  uint64_t stale_whole = 0, stale_generator = 0, stale_broken = 0;
  uint64_t first_thread() const { return first_; }

  // From the current pages; 0: unknown.
  uint64_t holder() {
    uint64_t state = 0;
    return pages_.load(gil_ + layout_.gil_last_holder, state) ? state : 0;
  }

  Thread* thread(uint64_t state) {
    const auto known = threads_.find(state);
    if (known != threads_.end()) return &known->second;
    Thread thread;
    uint64_t native = 0;
    if (!pages_.load(state + layout_.thread_id, thread.pointer)) return nullptr;
    // Before 3.11 a thread state does not contain it: targets on those versions have one thread.
    native = static_cast<uint64_t>(options_.pid);
    if (layout_.native_thread_id != 0 && !pages_.load(state + layout_.native_thread_id, native))
      return nullptr;
    thread.state = state;
    thread.tid = static_cast<pid_t>(native);
    char path[64];
    std::snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", options_.pid, thread.tid);
    thread.schedstat = open(path, O_RDONLY | O_CLOEXEC);
    std::snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", options_.pid, thread.tid);
    thread.stat = open(path, O_RDONLY | O_CLOEXEC);
    if (thread.schedstat < 0 || thread.stat < 0) return nullptr;
    return &threads_.emplace(state, thread).first->second;
  }

  void walk(const Thread& thread, Stack& stack) {
    stack.codes.clear();
    stack.names.clear();
    stack.end = walk_chain(thread, stack);
    if (options_.fresh_names && stack.end != End::broken)
      for (const uint64_t code : stack.codes) stack.names.push_back(name(code));
  }

  std::string name(uint64_t code) {
    uint64_t text = 0, length = 0;
    if (!pages_.load(code + layout_.code_name, text)) return "?";
    if (!pages_.load(text + layout_.unicode_length, length) || length > 64) return "?";
    const unsigned char* bytes = pages_.find(text + layout_.unicode_ascii_data, length);
    return bytes == nullptr ? "?" : std::string(reinterpret_cast<const char*>(bytes), length);
  }

 private:
  // 3.11 and 3.12 publish a new _PyCFrame before they set its current_frame (_PyEval_EvalFrameDefault,
  // ceval.c): for a moment it contains what was on the C stack before. It is valid only if the first entry
  // frame reached from there leads to the current frame of the previous _PyCFrame; otherwise the thread is in
  // that frame.
  End walk_chain(const Thread& thread, Stack& stack) {
    uint64_t frame = 0, cframe = 0;
    if (layout_.minor < 11) {
      if (!pages_.load(thread.state + layout_.thread_frame, frame)) return End::unreadable;
      return walk_objects(frame, stack);
    }
    if (layout_.minor >= 13) {
      if (!pages_.load(thread.state + layout_.thread_current_frame, frame)) return End::unreadable;
      return walk_from(frame, stack);
    }
    if (!pages_.load(thread.state + layout_.thread_cframe, cframe)) return End::unreadable;
    if (!pages_.load(cframe + layout_.cframe_current_frame, frame)) return End::unreadable;
    uint64_t before = 0, outer = 0;
    if (!pages_.load(cframe + layout_.cframe_previous, before)) return End::unreadable;
    if (before != 0 && !pages_.load(before + layout_.cframe_current_frame, outer)) return End::unreadable;
    const End end = walk_from(frame, stack);
    if (!options_.check_anchor || (stack.entered && stack.outer == outer)) return end;
    // A detached generator (previous == NULL, for a moment around a yield) has no entry frame to check.
    const bool generator = end == End::detached && stack.owner == 1 && stack.codes.size() == 1;
    ++(end == End::base ? stale_whole : generator ? stale_generator : stale_broken);
    // The outermost evaluation: nothing else to check.
    if (before == 0 || outer == 0) return end;
    stack.codes.clear();
    return walk_from(outer, stack);
  }

  static constexpr size_t kMaxFrames = 25000;

  // Until 3.10 a chain of frame objects, which ends at one without a previous frame.
  End walk_objects(uint64_t frame, Stack& stack) {
    stack.top = frame;
    while (frame != 0 && stack.codes.size() < kMaxFrames) {
      const unsigned char* bytes = pages_.find(frame, layout_.frame_size);
      if (bytes == nullptr) return End::unreadable;
      uint64_t code = 0;
      std::memcpy(&code, bytes + layout_.frame_code, sizeof(code));
      std::memcpy(&frame, bytes + layout_.frame_previous, sizeof(frame));
      stack.codes.push_back(code);
    }
    return frame == 0 ? End::base : End::broken;
  }

  End walk_from(uint64_t frame, Stack& stack) {
    stack.top = frame;
    stack.entered = false;
    if (frame == 0) return End::base;
    for (size_t count = 0; count < kMaxFrames; ++count) {
      const unsigned char* bytes = pages_.find(frame, layout_.frame_size);
      if (bytes == nullptr) return End::unreadable;
      uint64_t code = 0, previous = 0;
      std::memcpy(&code, bytes + layout_.frame_code, sizeof(code));
      std::memcpy(&previous, bytes + layout_.frame_previous, sizeof(previous));
      stack.owner = bytes[layout_.frame_owner];
      if (stack.owner > (layout_.minor >= 14 ? 4 : 3)) return End::broken;
      const bool entry = layout_.minor >= 12 ? stack.owner >= 3 : bytes[layout_.frame_is_entry] != 0;
      // 3.14+: f_executable is a _PyStackRef, tagged in its lowest bits.
      if (layout_.minor >= 14) code &= ~uint64_t{3};
      // Since 3.12 an entry frame has no code of its own.
      if (layout_.minor < 12 || !entry) stack.codes.push_back(code);
      if (entry && !stack.entered) {
        stack.entered = true;
        stack.outer = previous;
      }
      if (previous == 0)
        return entry && (layout_.minor >= 12 || stack.owner == 0) ? End::base : End::detached;
      frame = previous;
    }
    return End::broken;
  }

  const Options& options_;
  const Layout& layout_;
  Pages pages_;
  uint64_t gil_ = 0, first_ = 0;
  std::map<uint64_t, Thread> threads_;
};

// ---- Is it possible?
// -------------------------------------------------------------------------------------------

// Names are root first. Possible families are described in bench/targets/hard.py and leaf.py.
bool possible_families(const std::vector<const std::string*>& names) {
  if (names.empty() || *names[0] != "<module>") return false;
  char family = 0;
  int index = -1;
  std::string letters;
  for (const std::string* name : names) {
    const char first = (*name)[0];
    const bool member = (first == 'a' || first == 'b') && name->size() > 1 && std::isdigit((*name)[1]) != 0;
    if (!member) {
      if (family != 0) return false;
      continue;
    }
    char* rest = nullptr;
    const int number = static_cast<int>(std::strtol(name->c_str() + 1, &rest, 10));
    if (family != 0 && first != family) return false;
    if (number != index + 1) return false;
    if (std::string(rest).compare(0, letters.size(), letters) != 0) return false;
    family = first;
    index = number;
    letters = rest;
  }
  return true;
}

// f_SERIAL_INDEX from bench/targets/fresh.py: one serial per stack, indices in order, serials never decrease.
bool possible_serials(const std::vector<const std::string*>& names, long& newest) {
  if (names.empty() || *names[0] != "<module>") return false;
  long serial = -1;
  int index = -1;
  for (const std::string* name : names) {
    long s = 0;
    int i = 0;
    if (*name == "?") return false;
    if (std::sscanf(name->c_str(), "f_%ld_%d", &s, &i) != 2) continue;
    if ((serial >= 0 && s != serial) || i != index + 1 || s < newest) return false;
    serial = s;
    index = i;
  }
  if (serial >= 0) newest = serial;
  return true;
}

// ---- The run
// ---------------------------------------------------------------------------------------------------

struct Distribution {
  std::vector<float> values;
  void add(int64_t ns) { values.push_back(static_cast<float>(ns) / 1000.0F); }
  double share_above(float us) const {
    const auto above = std::count_if(values.begin(), values.end(), [&](float v) { return v > us; });
    return values.empty() ? 0 : static_cast<double>(above) / static_cast<double>(values.size());
  }
  void print(const char* name) {
    std::sort(values.begin(), values.end());
    const auto at = [&](double q) {
      return values.empty() ? 0.0
                            : static_cast<double>(
                                  values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))]);
    };
    double sum = 0;
    for (const float v : values) sum += static_cast<double>(v);
    std::printf(
        "\"%s_us\": {\"p50\": %.2f, \"p90\": %.2f, \"p99\": %.2f, \"p999\": %.2f, \"max\": %.2f, \"mean\": "
        "%.2f},\n",
        name, at(0.5), at(0.9), at(0.99), at(0.999), at(1),
        values.empty() ? 0 : sum / static_cast<double>(values.size()));
  }
};

struct Counters {
  uint64_t samples = 0, accepted = 0, detached = 0, impossible = 0, rejected = 0;
  uint64_t accepted_asleep = 0;  // proved by "it slept, and was not scheduled in since"
  uint64_t retries = 0, ran = 0, moved = 0, unreadable = 0,
           broken = 0;              // attempts, by their failure
  uint64_t refused_impossible = 0;  // attempts whose stack was correctly refused
  uint64_t still = 0;               // had not run since the previous sample
  uint64_t late_on_target = 0;
  uint64_t follow_ups = 0, cpu_changes = 0, switches = 0;
  uint64_t cpu_agree = 0, cpu_differ = 0;  // Evidence::both, while the thread does not run
};

enum class Verdict { accepted, unproved, no_stack };

class Run {
 public:
  explicit Run(const Options& options) : options_(options), reader_(options) {
    thread_ = reader_.thread(reader_.first_thread());
    if (thread_ == nullptr) fail("no thread to look at");
    latency_.values.reserve(options.samples + 1);
    turn_.values.reserve(options.samples + 1);
  }

  void run() {
    start();
    const int64_t begun = now(), end = begun + static_cast<int64_t>(options_.seconds * 1e9);
    const long moved_before = migrations(options_.pid, thread_->tid);
    const auto interval = options_.rate > 0 ? 1e9 / options_.rate : 0.0;
    int64_t planned = begun;
    uint64_t random = 0x9E3779B97F4A7C15ULL ^ static_cast<uint64_t>(begun), missed = 0;
    while (counters_.samples < options_.samples) {
      random ^= random >> 12, random ^= random << 25, random ^= random >> 27;
      const double unit = static_cast<double>((random * 0x2545F4914F6CDD1DULL) >> 11) * 0x1.0p-53;
      const int64_t before = now();
      planned = interval > 0 ? planned + static_cast<int64_t>((0.5 + unit) * interval) : before + 20'000;
      if (planned <= before) {
        ++missed;
        planned = before + static_cast<int64_t>(unit * interval);
      }
      sleep_until(planned);
      const int64_t woken = now();
      if (woken > end) break;
      latency_.add(woken - planned);
      if (kill(options_.pid, 0) != 0) break;
      planned_ = planned;
      sample(woken);
    }
    const long moved_after = migrations(options_.pid, thread_->tid);
    print(static_cast<double>(now() - begun) * 1e-9, missed, moved_after - moved_before);
  }

 private:
  void start() {
    if (options_.slack) prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    if (options_.lock && mlockall(MCL_CURRENT) != 0) locked_ = false;
    if (options_.mode == Mode::ptrace) {
      if (ptrace(PTRACE_SEIZE, thread_->tid, nullptr, nullptr) != 0) fail("PTRACE_SEIZE");
      if (options_.cpu >= 0) move_to(options_.cpu);
      class_ = "plain";
      return;
    }
    cpu_ = options_.mode == Mode::other_cpu ? options_.cpu : thread_->state_and_cpu().second;
    if (!move_to(cpu_)) fail("sched_setaffinity");
    class_ = take_class(options_.scheduling, options_.slice_us);
  }

  void sample(int64_t woken) {
    ++counters_.samples;
    bool accepted = false;
    if (options_.mode == Mode::ptrace) {
      accepted = sample_stopped();
    } else {
      for (int attempt = 1; attempt <= options_.attempts; ++attempt) {
        counters_.retries += attempt > 1;
        const Verdict verdict = sample_once(attempt, woken);
        accepted = verdict == Verdict::accepted;
        // Proved, but no stack: the thread does not run, so the next attempt would read the same bytes.
        if (verdict != Verdict::unproved) break;
      }
    }
    done_ = now();
    turn_.add(done_ - woken);
    counters_.follow_ups += reader_.pages().follow_ups;
    if (!accepted) {
      ++counters_.rejected;
      return;
    }
    ++counters_.accepted;
    counters_.detached += stack_.end == End::detached;
    record();
  }

  // One attempt at the GIL holder, on its presumed CPU.
  Verdict sample_once(int attempt, int64_t woken) {
    const int64_t t0 = attempt == 1 ? woken : now();
    Schedule before = thread_->schedule();
    const int64_t t1 = now();
    if (attempt == 1) note_lateness(before);
    // From the second attempt on, the more expensive evidence: did it sleep before the memory was read?
    char state = 'R';
    if (attempt > 1) state = thread_->state_and_cpu().first;
    reader_.pages().capture();
    if (const uint64_t holder = reader_.holder(); holder != 0 && holder != thread_->state) {
      Thread* other = reader_.thread(holder);
      if (other != nullptr) {
        thread_ = other;
        ++counters_.switches;
        before = thread_->schedule();
        if (attempt > 1) state = thread_->state_and_cpu().first;
        reader_.pages().capture();
      }
    }
    const int64_t t2 = now();
    reader_.walk(*thread_, stack_);
    const int64_t t3 = now();
    bool whole = stack_.end == End::base || stack_.end == End::detached;
    const Schedule after = thread_->schedule();
    const int64_t t4 = now();
    int cpu = cpu_;
    if (options_.mode == Mode::same_cpu) cpu = evidence(attempt);
    const int64_t t5 = now();
    if (attempt == 1) {
      cost_[0] += t1 - t0, cost_[1] += t2 - t1, cost_[2] += t3 - t2, cost_[3] += t4 - t3, cost_[4] += t5 - t4;
    }
    bool proved = true;
    if (options_.proof == Proof::count) {
      const bool ran = !(before == after);
      const bool away = cpu != cpu_ && !(asleep(state) && !ran);
      counters_.ran += ran;
      counters_.moved += !ran && away;
      counters_.accepted_asleep += !ran && cpu != cpu_ && !away;
      proved = !ran && !away;
    } else if (options_.proof == Proof::words) {
      Stack& again = again_;
      reader_.pages().capture();
      reader_.walk(*thread_, again);
      proved = again.top == stack_.top && !again.codes.empty() && !stack_.codes.empty() &&
               again.codes[0] == stack_.codes[0];
      counters_.ran += !proved;
    }
    if (proved && !whole) (stack_.end == End::broken ? counters_.broken : counters_.unreadable) += 1;
    if (!proved && (!whole || !possible())) ++counters_.refused_impossible;
    if (cpu != cpu_ && options_.mode == Mode::same_cpu) follow(cpu);
    return !proved ? Verdict::unproved : whole ? Verdict::accepted : Verdict::no_stack;
  }

  // Late while the target kept running: we were not scheduled in although its CPU was the target's. (Waiting
  // behind another thread is no bias: the target did not run either.) A lower bound: time it waited before
  // the planned moment hides as much.
  void note_lateness(const Schedule& schedule) {
    const int64_t left = done_ > 0 ? planned_ - done_ : 0;
    const auto ran = static_cast<int64_t>(schedule.run - seen_run_);
    if (done_ > 0 && seen_ == thread_ && ran > left + 100'000) ++counters_.late_on_target;
    seen_ = thread_;
    seen_run_ = schedule.run;
  }

  // The thread's CPU, read last.
  int evidence(int attempt) {
    if (options_.evidence == Evidence::both) {
      const int stat = thread_->state_and_cpu().second, rseq = thread_->rseq_cpu(options_.pid);
      (stat == rseq ? counters_.cpu_agree : counters_.cpu_differ) += 1;
      return attempt == 1 ? rseq : stat;
    }
    if (options_.evidence == Evidence::stat || attempt > 1) return thread_->state_and_cpu().second;
    return thread_->rseq_cpu(options_.pid);
  }

  void follow(int cpu) {
    const auto [state, current] = thread_->state_and_cpu();
    // A sleeping thread is read in place: on the way to its CPU it might wake, and sleep would be seen too
    // seldom.
    if (asleep(state)) return;
    if (current >= 0) cpu = current;
    if (cpu == cpu_ || !move_to(cpu)) return;
    ++counters_.cpu_changes;
    cpu_ = cpu;
  }

  bool sample_stopped() {
    if (ptrace(PTRACE_INTERRUPT, thread_->tid, nullptr, nullptr) != 0) return false;
    int status = 0;
    if (waitpid(thread_->tid, &status, __WALL) != thread_->tid || !WIFSTOPPED(status)) return false;
    const int64_t t1 = now();
    reader_.pages().capture();
    reader_.walk(*thread_, stack_);
    cost_[1] += now() - t1;
    const int signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
    ptrace(PTRACE_CONT, thread_->tid, nullptr, signal);
    const bool whole = stack_.end == End::base || stack_.end == End::detached;
    counters_.unreadable += !whole;
    return whole;
  }

  bool possible() {
    std::vector<const std::string*> names;
    std::vector<std::string> own;
    if (options_.fresh_names) {
      for (auto name = stack_.names.rbegin(); name != stack_.names.rend(); ++name) names.push_back(&*name);
    } else {
      for (auto code = stack_.codes.rbegin(); code != stack_.codes.rend(); ++code)
        names.push_back(&cached_name(*code));
    }
    switch (options_.check) {
      case Check::families:
        return possible_families(names);
      case Check::serials:
        return possible_serials(names, newest_);
      case Check::none:
        break;
    }
    return true;
  }

  const std::string& cached_name(uint64_t code) {
    auto [place, fresh] = names_.try_emplace(code);
    if (fresh) place->second = reader_.name(code);
    return place->second;
  }

  void record() {
    bool ok = true;
    if (options_.check == Check::serials) {
      ok = stack_.end == End::detached || possible();
    } else {
      uint64_t hash = stack_.end == End::detached ? 7 : 1469598103934665603ULL;
      for (const uint64_t code : stack_.codes) hash = (hash ^ code) * 1099511628211ULL;
      auto [place, fresh] = verdicts_.try_emplace(hash, true);
      if (fresh) place->second = stack_.end == End::detached || possible();
      ok = place->second;
    }
    if (!ok) {
      ++counters_.impossible;
      if (examples_.size() < 5) examples_.push_back(text());
    }
    // A thread that waits for its CPU shows the same stack at every sample: count it once for the leaf
    // shares.
    const uint64_t run = thread_->schedule().run;
    const bool moved_on = run > last_run_[thread_->tid] + 10'000;
    last_run_[thread_->tid] = run;
    if (!moved_on) {
      ++counters_.still;
    } else if (!stack_.codes.empty()) {
      const std::string& name = options_.fresh_names ? stack_.names[0] : cached_name(stack_.codes[0]);
      ++leaves_[options_.check == Check::serials && name[0] == 'f' ? "f_" + name.substr(name.rfind('_') + 1)
                                                                   : name];
    } else {
      ++leaves_["(none)"];
    }
  }

  std::string text() {
    std::string result;
    for (size_t i = stack_.codes.size(); i-- > 0;) {
      result += options_.fresh_names ? stack_.names[i] : cached_name(stack_.codes[i]);
      if (i > 0) result += ';';
    }
    return result.substr(0, 400);
  }

  void print(double seconds, uint64_t missed, long moved) {
    const auto u = [](const char* name, uint64_t value) {
      std::printf("\"%s\": %llu,\n", name, static_cast<unsigned long long>(value));
    };
    std::printf("{\"class\": \"%s\",\n\"locked\": %s,\n\"seconds\": %.3f,\n", class_,
                locked_ ? "true" : "false", seconds);
    u("samples", counters_.samples), u("missed", missed), u("accepted", counters_.accepted),
        u("rejected", counters_.rejected);
    u("impossible", counters_.impossible), u("detached", counters_.detached),
        u("accepted_asleep", counters_.accepted_asleep);
    u("retries", counters_.retries), u("ran", counters_.ran), u("moved", counters_.moved),
        u("unreadable", counters_.unreadable);
    u("broken", counters_.broken), u("refused_impossible", counters_.refused_impossible),
        u("follow_ups", counters_.follow_ups);
    u("late_on_target", counters_.late_on_target), u("still", counters_.still),
        u("cpu_changes", counters_.cpu_changes), u("switches", counters_.switches),
        u("cpu_agree", counters_.cpu_agree);
    u("cpu_differ", counters_.cpu_differ), u("stale_whole", reader_.stale_whole),
        u("stale_generator", reader_.stale_generator);
    u("stale_broken", reader_.stale_broken);
    std::printf("\"target_migrations\": %ld,\n", moved);
    std::printf("\"late_100us\": %.5f,\n\"late_1ms\": %.5f,\n", latency_.share_above(100),
                latency_.share_above(1000));
    latency_.print("latency");
    turn_.print("turn");
    const char* phases[] = {"schedstat_before", "copy", "walk", "schedstat_after", "cpu"};
    std::printf("\"cost_us\": {");
    for (size_t i = 0; i < 5; ++i)
      std::printf("%s\"%s\": %.3f", i > 0 ? ", " : "", phases[i],
                  static_cast<double>(cost_[i]) / 1000.0 /
                      static_cast<double>(std::max<uint64_t>(1, counters_.samples)));
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto us = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
    };
    std::printf("},\n\"cpu_us_per_sample\": %.2f,\n\"leaves\": {",
                (us(usage.ru_utime) + us(usage.ru_stime)) /
                    static_cast<double>(std::max<uint64_t>(1, counters_.samples)));
    bool first = true;
    for (const auto& [name, count] : leaves_) {
      std::printf("%s\"%s\": %llu", first ? "" : ", ", name.c_str(), static_cast<unsigned long long>(count));
      first = false;
    }
    std::printf("},\n\"examples\": [");
    for (size_t i = 0; i < examples_.size(); ++i)
      std::printf("%s\"%s\"", i > 0 ? ", " : "", examples_[i].c_str());
    std::printf("]}\n");
  }

  const Options& options_;
  Reader reader_;
  Thread* thread_ = nullptr;
  int cpu_ = -1;
  const char* class_ = "";
  bool locked_ = true;
  Stack stack_, again_;
  Counters counters_;
  Distribution latency_, turn_;
  int64_t cost_[5] = {};
  int64_t planned_ = 0, done_ = 0;
  const Thread* seen_ = nullptr;
  uint64_t seen_run_ = 0;
  long newest_ = -1;
  std::map<pid_t, uint64_t> last_run_;
  std::unordered_map<uint64_t, std::string> names_;
  std::unordered_map<uint64_t, bool> verdicts_;
  std::map<std::string, uint64_t> leaves_;
  std::vector<std::string> examples_;
};

Options parse(int count, char** words) {
  Options options;
  const auto choose = [](const std::string& word, std::initializer_list<const char*> names) {
    int index = 0;
    for (const char* name : names) {
      if (word == name) return index;
      ++index;
    }
    std::fprintf(stderr, "reading: what is '%s'?\n", word.c_str());
    std::exit(2);
  };
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string key = words[i], value = words[i + 1];
    if (key == "--pid")
      options.pid = std::atoi(value.c_str());
    else if (key == "--runtime")
      options.runtime = std::strtoull(value.c_str(), nullptr, 16);
    else if (key == "--python") {
      for (const Layout& l : kLayouts)
        if (value == l.name) options.layout = &l;
    } else if (key == "--rate")
      options.rate = std::atof(value.c_str());
    else if (key == "--samples")
      options.samples = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "--seconds")
      options.seconds = std::atof(value.c_str());
    else if (key == "--way")
      options.mode = static_cast<Mode>(choose(value, {"same-cpu", "ptrace", "other-cpu"}));
    else if (key == "--class")
      options.scheduling = static_cast<Class>(choose(value, {"fifo", "short", "plain"}));
    else if (key == "--slice-us")
      options.slice_us = std::atol(value.c_str());
    else if (key == "--evidence")
      options.evidence = static_cast<Evidence>(choose(value, {"rseq", "stat", "both"}));
    else if (key == "--proof")
      options.proof = static_cast<Proof>(choose(value, {"count", "words", "none"}));
    else if (key == "--check")
      options.check = static_cast<Check>(choose(value, {"none", "families", "serials"}));
    else if (key == "--names")
      options.fresh_names = choose(value, {"cached", "fresh"}) == 1;
    else if (key == "--lock")
      options.lock = choose(value, {"no", "yes"}) == 1;
    else if (key == "--check-anchor")
      options.check_anchor = choose(value, {"no", "yes"}) == 1;
    else if (key == "--slack")
      options.slack = choose(value, {"default", "1ns"}) == 1;
    else if (key == "--attempts")
      options.attempts = std::atoi(value.c_str());
    else if (key == "--cpu")
      options.cpu = std::atoi(value.c_str());
    else
      choose(key, {});
  }
  if (options.pid == 0 || options.runtime == 0 || options.layout == nullptr) {
    std::fprintf(stderr,
                 "usage: reading --pid PID --runtime HEX --python 3.8|...|3.15|3.13t "
                 "[--way same-cpu|ptrace|other-cpu] ...\n");
    std::exit(2);
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  Run run(options);
  run.run();
}
