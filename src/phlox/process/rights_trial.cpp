#include "phlox/process/rights_trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>

#include "phlox/base/interrupted.h"
#include "phlox/memory/living_thread.h"
#include "phlox/process/cpu_list.h"
#include "phlox/process/cpu_set.h"
#include "phlox/process/process_state.h"
#include "phlox/process/root_folder.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

constexpr size_t kMostThreads = 1000;  // whose affinity is read

int try_call(pid_t pid, RemoteAddress address) {
  uint64_t word = 0;
  iovec local{&word, sizeof word};
  iovec remote{reinterpret_cast<void*>(address.value), sizeof word};  // NOLINT
  return ::process_vm_readv(memory::living_thread(pid), &local, 1, &remote, 1, 0) < 0 ? errno : 0;
}

int try_file(pid_t pid, RemoteAddress address) {
  const Descriptor file(::open((memory::proc_folder(pid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno;
  uint64_t word = 0;
  return ::pread(file.get(), &word, sizeof word, static_cast<off_t>(address.value)) < 0 ? errno : 0;
}

// Exits when the other end is closed.
[[noreturn]] void wait_for_end(int pipe) {
  char byte = 0;
  (void)retried([&] { return ::read(pipe, &byte, 1); });
  ::_exit(0);
}

}  // namespace

void on_a_thread_of_its_own(const std::function<void()>& call) {
  std::thread(call).join();
}

MemoryTrial try_memory(pid_t pid) {
  MemoryTrial trial;
  errno = 0;
  const auto text = read_text(memory::proc_folder(pid) + "/maps");
  if (!text) {
    trial.maps = errno;
    trial.call = trial.file = errno;
    return trial;
  }
  const auto maps = parse_maps(*text);
  const auto found = std::find_if(maps.begin(), maps.end(), [](const Mapping& m) { return m.readable; });
  if (found == maps.end()) {
    trial.maps = trial.call = trial.file = ESRCH;  // it has ended, or has not executed its program yet
    return trial;
  }
  trial.call = try_call(pid, found->start);
  trial.file = try_file(pid, found->start);
  return trial;
}

CpuTrial try_cpus(pid_t pid) {
  CpuTrial trial;
  std::vector<bool> wanted(kMostCpus);
  auto threads = read_threads(pid);
  if (threads.size() > kMostThreads) threads.resize(kMostThreads);
  for (const ThreadName& thread : threads) {
    const auto set = CpuSet::read(thread.tid);
    for (const int cpu : set ? set->list() : std::vector<int>()) wanted[static_cast<size_t>(cpu)] = true;
  }
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (wanted[static_cast<size_t>(cpu)]) trial.wanted.push_back(cpu);
  }
  const auto kept_free = read_kept_free_cpus();
  on_a_thread_of_its_own([&] {
    for (const int cpu : trial.wanted) {
      if (std::binary_search(kept_free.begin(), kept_free.end(), cpu)) {
        trial.kept_free.push_back(cpu);
        continue;
      }
      const int error = CpuSet::of_one(cpu).move(0);
      if (error == 0) continue;
      if (trial.refused.empty()) trial.error = error;
      trial.refused.push_back(cpu);
    }
  });
  return trial;
}

int try_stop() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  Descriptor read_end(ends[0]), write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    ::close(ends[1]);
    wait_for_end(ends[0]);
  }
  const int error = ::ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0 ? 0 : errno;
  write_end.close();
  ::kill(child, SIGKILL);
  (void)retried([&] { return ::waitpid(child, nullptr, __WALL); });
  return error;
}

int try_bpf() {
  bpf_attr attr{};
  attr.map_type = BPF_MAP_TYPE_ARRAY;
  attr.key_size = attr.value_size = 4;
  attr.max_entries = 1;
  const Descriptor map(static_cast<int>(::syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr)));
  return map ? 0 : errno;
}

std::vector<Module> code_modules_of(const std::vector<Mapping>& maps) {
  auto modules = modules_of(maps);
  std::erase_if(modules, [](const Module& module) {
    return module.inode == 0 || !std::any_of(module.mappings.begin(), module.mappings.end(),
                                             [](const Mapping& m) { return m.executable; });
  });
  return modules;
}

FilesTrial try_files(pid_t pid, const std::vector<Mapping>& maps) {
  FilesTrial trial;
  const Descriptor root = open_root(pid);
  for (const Module& module : code_modules_of(maps)) {
    if (open_module(pid, module, root)) {
      ++trial.opened;
    } else {
      trial.not_opened.push_back(module.path);
    }
  }
  return trial;
}

// kernel/exit.c: a process whose parent has ended is reparented to init or a subreaper; to Yama it is then no
// descendant of ours.
Stranger::Stranger() {
  int life[2], answer[2];
  if (::pipe2(life, O_CLOEXEC) != 0) return;
  Descriptor life_read(life[0]);
  life_ = Descriptor(life[1]);
  if (::pipe2(answer, O_CLOEXEC) != 0) return;
  Descriptor answer_read(answer[0]), answer_write(answer[1]);
  const pid_t between = ::fork();
  if (between < 0) return;
  if (between == 0) {
    const pid_t stranger = ::fork();
    if (stranger == 0) {
      ::close(life[1]);
      ::close(answer[1]);
      wait_for_end(life[0]);
    }
    const ssize_t written = ::write(answer[1], &stranger, sizeof stranger);
    ::_exit(written == sizeof stranger ? 0 : 1);
  }
  pid_t stranger = 0;
  answer_write.close();
  const ssize_t got = ::read(answer_read.get(), &stranger, sizeof stranger);
  (void)retried([&] { return ::waitpid(between, nullptr, 0); });
  if (got == sizeof stranger && stranger > 0) pid_ = stranger;
}

Stranger::~Stranger() = default;

}  // namespace phlox::process
