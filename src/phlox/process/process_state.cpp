#include "phlox/process/process_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include "phlox/base/text.h"
#include "phlox/memory/living_thread.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

// include/linux/sched.h
constexpr uint64_t kKernelThreadFlag = 0x00200000;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

template <class Number>
bool take_word(std::string_view& text, Number& number, int base = 10) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return take_number(text, number, base);
}

template <class Number>
std::vector<Number> numbers_of(std::string_view text) {
  // A process has at most 65,536 groups (NGROUPS_MAX) and 32 nested PID namespaces.
  constexpr size_t kMost = 65536;
  std::vector<Number> numbers;
  Number number = 0;
  while (numbers.size() < kMost && take_word(text, number)) numbers.push_back(number);
  return numbers;
}

void take_ids(std::string_view text, Ids& ids) {
  for (uint32_t* id : {&ids.real, &ids.effective, &ids.saved, &ids.filesystem}) {
    if (!take_word(text, *id)) return;
  }
}

// status escapes a newline and a backslash in the name (fs/proc/array.c: proc_task_name).
std::string unescape_name(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'n' || text[i + 1] == '\\')) {
      name += text[++i] == 'n' ? '\n' : '\\';
    } else {
      name += text[i];
    }
  }
  return name;
}

std::string escape_controls(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::optional<std::string> link_of(const std::string& path) {
  char text[4096];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  if (size < 0) return {};
  return std::string(text, static_cast<size_t>(size));
}

Bits read_bits(pid_t pid) {
  const Descriptor file(
      ::open((memory::proc_folder(pid) + "/exe").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char head[5];
  if (!file || ::read(file.get(), head, sizeof head) != sizeof head) return Bits::unknown;
  return parse_elf_class({head, sizeof head});
}

tl::unexpected<Error> no_such_process(pid_t pid) {
  return fail(ErrorKind::no_such_process, fmt::format("no process {}", pid),
              "list Python processes with: phlox list");
}

tl::unexpected<Error> hidden(pid_t pid) {
  if (::access("/proc/self", F_OK) != 0) {
    return fail(ErrorKind::system, "there is no /proc here, which phlox reads processes by",
                "mount -t proc proc /proc, or run phlox where it is mounted");
  }
  return fail(ErrorKind::permission,
              fmt::format("process {} exists, but /proc does not show it to us (mounted with hidepid)", pid),
              fmt::format("sudo phlox record -p {}", pid));
}

}  // namespace

std::optional<bool> other_namespace(pid_t pid, const char* kind) {
  const auto ours = link_of(fmt::format("/proc/self/ns/{}", kind));
  const auto theirs = link_of(fmt::format("{}/ns/{}", memory::proc_folder(pid), kind));
  if (!ours || !theirs) return {};
  return *ours != *theirs;
}

std::optional<Status> parse_status(std::string_view text) {
  Status status;
  bool has_state = false;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    std::string_view value = line.substr(colon + 1);
    // Exactly one tab: anything after it belongs to the name, blanks included.
    if (!value.empty() && value.front() == '\t') value.remove_prefix(1);
    int flag = 0;
    if (key == "Name") {
      status.name = unescape_name(value);
    } else if (key == "State" && !value.empty()) {
      status.state = value.front();
      has_state = true;
    } else if (key == "Tgid") {
      take_word(value, status.process);
    } else if (key == "Pid") {
      take_word(value, status.pid);
    } else if (key == "PPid") {
      take_word(value, status.parent);
    } else if (key == "TracerPid") {
      take_word(value, status.tracer);
    } else if (key == "Uid") {
      take_ids(value, status.uid);
    } else if (key == "Gid") {
      take_ids(value, status.gid);
    } else if (key == "Groups") {
      status.groups = numbers_of<uint32_t>(value);
    } else if (key == "NSpid") {
      status.namespace_pids = numbers_of<pid_t>(value);
    } else if (key == "CapPrm") {
      take_word(value, status.permitted_capabilities, 16);
    } else if (key == "CapEff") {
      take_word(value, status.effective_capabilities, 16);
    } else if (key == "NoNewPrivs") {
      status.no_new_privileges = take_word(value, flag) && flag != 0;
    } else if (key == "Seccomp") {
      take_word(value, status.seccomp);
    } else if (key == "Threads") {
      take_word(value, status.threads);
    } else if (key == "Kthread") {
      status.kernel_thread = take_word(value, flag) && flag != 0;
    }
  }
  if (!has_state || status.process == 0) return {};
  return status;
}

bool Stat::kernel_thread() const {
  return (flags & kKernelThreadFlag) != 0;
}

std::optional<Stat> parse_stat(std::string_view text) {
  // The name is in parentheses and may hold any character: the last ')' ends it.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  Stat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  text.remove_prefix(close + 1);
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  if (text.empty()) return {};
  stat.state = text.front();
  text.remove_prefix(1);
  for (int field = 4; field <= 22; ++field) {  // numbered as in proc(5)
    int64_t number = 0;
    if (!take_word(text, number)) return {};
    if (field == 4) stat.parent = static_cast<pid_t>(number);
    if (field == 9) stat.flags = static_cast<uint64_t>(number);
    if (field == 14 || field == 15) stat.cpu_ticks += static_cast<uint64_t>(number);
    if (field == 22) stat.start_ticks = static_cast<uint64_t>(number);
  }
  return stat;
}

std::optional<Status> read_status(pid_t pid) {
  const auto text = read_text(fmt::format("/proc/{}/status", pid));
  return text ? parse_status(*text) : std::nullopt;
}

std::optional<Stat> read_stat(pid_t pid) {
  const auto text = read_text(fmt::format("/proc/{}/stat", pid));
  return text ? parse_stat(*text) : std::nullopt;
}

std::string parse_command_line(std::string_view bytes) {
  while (!bytes.empty() && bytes.back() == '\0') bytes.remove_suffix(1);
  std::string line(bytes);
  std::replace(line.begin(), line.end(), '\0', ' ');
  return escape_controls(line);
}

Bits parse_elf_class(std::string_view first_bytes) {
  if (first_bytes.size() < 5 || !first_bytes.starts_with("\x7f"
                                                         "ELF"))
    return Bits::unknown;
  return first_bytes[4] == 1 ? Bits::bits32 : first_bytes[4] == 2 ? Bits::bits64 : Bits::unknown;
}

std::string ProcessState::title() const {
  return command_line.empty() ? fmt::format("[{}]", escape_controls(status.name)) : command_line;
}

Result<ProcessState> read_process_state(pid_t pid) {
  if (pid <= 0) return no_such_process(pid);
  const auto status_text = read_text(fmt::format("/proc/{}/status", pid));
  if (!status_text) {
    const int error = errno;
    if (::kill(pid, 0) == 0 || errno == EPERM) return hidden(pid);
    if (error == ENOENT || error == ESRCH) return no_such_process(pid);
    return fail(ErrorKind::system,
                fmt::format("cannot read /proc/{}/status: {} (errno {})", pid, std::strerror(error), error),
                "is /proc mounted?");
  }
  ProcessState state;
  state.pid = pid;
  auto status = parse_status(*status_text);
  const auto stat_text = read_text(fmt::format("/proc/{}/stat", pid));
  if (!stat_text) return no_such_process(pid);
  auto stat = parse_stat(*stat_text);
  if (!status || !stat)
    return fail(ErrorKind::system, fmt::format("cannot make sense of /proc/{}/stat", pid));
  state.status = *std::move(status);
  state.stat = *std::move(stat);
  // Its first thread has ended, and the kernel reports that state for the process. Use the state of a living
  // thread.
  if (const pid_t living = state.zombie() ? memory::living_thread(pid) : pid; living != pid) {
    if (const auto other = read_stat(living)) state.status.state = state.stat.state = other->state;
  }
  // /proc/TID exists like a process, although it is not listed.
  if (state.status.process != pid) {
    return fail(ErrorKind::no_such_process,
                fmt::format("{} is a thread of process {}, not a process", pid, state.status.process),
                fmt::format("phlox record -p {}", state.status.process));
  }
  if (const auto cmdline = read_text(memory::proc_folder(pid) + "/cmdline"))
    state.command_line = parse_command_line(*cmdline);
  if (auto exe = link_of(memory::proc_folder(pid) + "/exe")) {
    constexpr std::string_view kDeleted = " (deleted)";
    if (exe->ends_with(kDeleted)) exe->resize(exe->size() - kDeleted.size());
    state.executable = *std::move(exe);
  }
  state.bits = read_bits(pid);
  state.other_pid_namespace = other_namespace(pid, "pid");
  state.other_mount_namespace = other_namespace(pid, "mnt");
  state.other_user_namespace = other_namespace(pid, "user");
  if (state.status.tracer != 0) {
    const auto comm = read_text(fmt::format("/proc/{}/comm", state.status.tracer));
    if (comm)
      state.tracer_name =
          escape_controls(std::string_view(*comm).substr(0, comm->find_last_not_of('\n') + 1));
  }
  return state;
}

std::optional<pid_t> find_process_of(pid_t tid) {
  const auto status = read_status(tid);
  return status && status->process > 0 ? std::optional(status->process) : std::nullopt;
}

Result<void> check_recordable(const ProcessState& state) {
  if (state.kernel_thread()) {
    return fail(ErrorKind::not_python,
                fmt::format("process {} is a kernel thread, [{}], not a Python process", state.pid,
                            escape_controls(state.status.name)),
                "list Python processes with: phlox list");
  }
  if (state.zombie()) {
    return fail(ErrorKind::target_state,
                fmt::format("process {} ({}) is a zombie: it has ended, and its parent {} has not asked how",
                            state.pid, escape_controls(state.status.name), state.status.parent),
                fmt::format("there is nothing left to record; its parent: ps -fp {}", state.status.parent));
  }
  if (state.bits == Bits::bits32) {
    return fail(ErrorKind::target_state,
                fmt::format("process {} is a 32-bit program ({}); only 64-bit Pythons can be read", state.pid,
                            state.executable),
                "run the program with a 64-bit Python");
  }
  return {};
}

std::vector<std::string> remarks_on(const ProcessState& state) {
  std::vector<std::string> remarks;
  if (state.stopped()) {
    remarks.push_back(
        fmt::format("process {} is stopped (state T); phlox reads it as it is. To continue it: kill -CONT {}",
                    state.pid, state.pid));
  }
  if (state.traced()) {
    remarks.push_back(fmt::format(
        "process {} is traced by process {}{}, and is read without a stop of our own; what its tracer "
        "does to it shows in the recording",
        state.pid, state.status.tracer,
        state.tracer_name.empty() ? "" : fmt::format(" ({})", state.tracer_name)));
  }
  return remarks;
}

std::vector<ThreadName> read_threads(pid_t pid) {
  std::vector<ThreadName> threads;
  const std::string folder = fmt::format("/proc/{}/task", pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir(folder.c_str()), ::closedir);
  if (!tasks) return threads;
  while (const dirent* entry = ::readdir(tasks.get())) {
    ThreadName thread;
    std::string_view text = entry->d_name;
    if (!take_word(text, thread.tid) || !text.empty()) continue;
    const auto comm = read_text(fmt::format("{}/{}/comm", folder, thread.tid));
    if (!comm) continue;  // ended in the meantime
    thread.name = comm->substr(0, comm->find_last_not_of('\n') + 1);
    threads.push_back(std::move(thread));
  }
  std::sort(threads.begin(), threads.end(), [](const auto& a, const auto& b) { return a.tid < b.tid; });
  return threads;
}

Result<Descriptor> open_pidfd(pid_t pid) {
  // glibc has a wrapper only since 2.36.
  Descriptor descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (descriptor) return descriptor;
  if (errno == ESRCH || errno == EINVAL) return no_such_process(pid);
  return fail(
      ErrorKind::system,
      fmt::format("cannot watch process {}: {} (pidfd_open, errno {})", pid, std::strerror(errno), errno),
      "Linux 5.3 or later is needed");
}

}  // namespace phlox::process
