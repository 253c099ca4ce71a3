#include "phlox/sampler/kernel/kernel_capture.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "phlox/base/machine.h"
#include "phlox/process/host_rights.h"

#ifndef PHLOX_KERNEL_CAPTURE_MISSING
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/process/clock_offset.h"
#include "phlox/sampler/kernel/kernel_host.h"
#include "phlox/sampler/kernel/program.h"
#endif

namespace phlox::sampler {
namespace {

// The hint for a user who cannot have this mode.
constexpr const char* kOtherwise = "without --way kernel phlox takes the best of the other modes";

tl::unexpected<Error> refused(ErrorKind kind, const std::string& why, std::string hint = kOtherwise) {
  return fail(kind, "cannot sample inside the kernel: " + why, std::move(hint));
}

#ifndef PHLOX_KERNEL_CAPTURE_MISSING

// The oldest kernel whose sched_switch has a fourth argument, the state in which a thread leaves its CPU;
// bpf_loop is older.
constexpr int kOldestMajor = 5, kOldestMinor = 18;
// Inode of the initial PID namespace (include/linux/proc_ns.h).
constexpr ino_t kInitialPidNamespace = 0xEFFFFFFC;

struct Release {
  int major = 0, minor = 0;
};
Release kernel_release(const utsname& host) {
  Release release;
  const char* end = host.release + std::strlen(host.release);
  const auto major = std::from_chars(host.release, end, release.major);
  if (major.ptr != end) std::from_chars(major.ptr + 1, end, release.minor);
  return release;
}

// Our PID namespace; none: /proc shows the processes of another one.
std::optional<kernel_namespace> own_namespace() {
  struct stat pids {};
  char self[32];
  const ssize_t size = ::readlink("/proc/self", self, sizeof self);
  if (size <= 0 || std::string_view(self, static_cast<size_t>(size)) != std::to_string(::getpid())) return {};
  if (::stat("/proc/self/ns/pid", &pids) != 0) return {};
  return kernel_namespace{pids.st_ino == kInitialPidNamespace ? 0 : static_cast<uint32_t>(pids.st_ino)};
}

#endif

}  // namespace

#ifdef PHLOX_KERNEL_CAPTURE_MISSING

const char* kernel_capture_missing() {
  return PHLOX_KERNEL_CAPTURE_MISSING;
}

Result<void> check_kernel_capture(const std::string&) {
  return refused(ErrorKind::usage,
                 std::string("this phlox was built without it: ") + kernel_capture_missing(),
                 "build it where libbpf 1.0 or newer is: apt-get install libbpf-dev");
}

Result<std::unique_ptr<KernelCapture>> KernelCapture::open(double, bool, const std::string& retry) {
  return fail(check_kernel_capture(retry));
}

#else

const char* kernel_capture_missing() {
  return "";
}

namespace {

// What opening needs to know of where phlox runs.
struct Surroundings {
  bool admin = false;  // CAP_SYS_ADMIN counts
  kernel_namespace pids{};
};

Result<Surroundings> find_surroundings(const std::string& retry) {
  utsname host{};
  ::uname(&host);
  const Release release = kernel_release(host);
  if (release.major < kOldestMajor || (release.major == kOldestMajor && release.minor < kOldestMinor)) {
    return refused(ErrorKind::system,
                   fmt::format("Linux {} is older than {}.{}", host.release, kOldestMajor, kOldestMinor));
  }
  const process::HostRights rights = process::read_host_rights();
  if (!rights.has_btf)
    return refused(ErrorKind::system, "this kernel does not describe its types (no /sys/kernel/btf/vmlinux)");
  using process::Capability;
  const bool admin = rights.counts(Capability::sys_admin);
  for (const Capability one : {Capability::bpf, Capability::perfmon}) {
    if (!admin && !rights.counts(one)) {
      return refused(ErrorKind::permission, fmt::format("phlox has no CAP_{}", process::name_of(one)),
                     "sudo phlox " + retry);
    }
  }
  const auto pids = own_namespace();
  if (!pids) {
    return refused(ErrorKind::system,
                   "/proc belongs to another PID namespace, so it lists processes by other numbers",
                   "mount the /proc of this namespace: mount -t proc proc /proc");
  }
  return Surroundings{admin, *pids};
}

struct CloseObject {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};
struct DestroyLink {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
struct FreeRing {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};
struct Unmap {
  void operator()(kernel_known* known) const { ::munmap(known, sizeof *known); }
};
using BpfLink = std::unique_ptr<bpf_link, DestroyLink>;

// libbpf prints its warnings; the last one describes best what was refused.
thread_local std::string last_warning;
int keep_warning(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  last_warning = text;
  while (last_warning.ends_with('\n')) last_warning.pop_back();
  return 0;
}

// For stacks of some 10 KB per sample: a fortieth of a second of 100 busy CPUs at 1 kHz.
constexpr uint32_t kNativeRing = 32 << 20;

// Threads that are ending at once, in a PID namespace of our own.
constexpr uint32_t kMostEnding = 8192;

uint64_t period_of(double rate_hz) {
  return std::max<uint64_t>(static_cast<uint64_t>(1e9 / rate_hz), 100'000);
}

class LibbpfCapture : public KernelCapture {
 public:
  explicit LibbpfCapture(bpf_object* object) : object_(object) {}

  // Call it before the program is loaded.
  bool ask_for_native(uint32_t each_cpu);
  Result<void> attach(double rate_hz, const std::string& retry);

  void set_rate(double rate_hz) override {
    uint64_t period = period_of(rate_hz);
    for (const Descriptor& event : events_) ::ioctl(event.get(), PERF_EVENT_IOC_PERIOD, &period);
  }
  void set_shortest_waits(Nanoseconds wait, Nanoseconds gil_wait) override {
    std::atomic_ref(known_->shortest_wait).store(static_cast<uint64_t>(wait));
    std::atomic_ref(known_->shortest_gil_wait).store(static_cast<uint64_t>(gil_wait));
  }
  bool add(pid_t process, kernel_process& where) override;
  void remove(pid_t process, uint32_t id) override {
    kernel_process known{};
    if (bpf_map_lookup_elem(map("processes"), &process, &known) == 0 && known.id == id &&
        bpf_map_delete_elem(map("processes"), &process) == 0) {
      count_of(process).fetch_sub(1);
      std::atomic_ref(known_->generation).fetch_add(1);
    }
  }
  std::optional<kernel_thread> thread(pid_t thread) override {
    kernel_thread value{};
    if (bpf_map_lookup_elem(map("threads"), &thread, &value) != 0) return {};
    return value;
  }
  bool drain(Nanoseconds deadline, const std::function<void(std::span<const std::byte>)>& take) override;
  int descriptor() const override { return ring_buffer__epoll_fd(ring_.get()); }
  uint64_t count(kernel_count what) override;

 private:
  // The number of recorded processes that share its slot.
  std::atomic_ref<uint32_t> count_of(pid_t process) {
    return std::atomic_ref(known_->processes[static_cast<uint32_t>(process) % KERNEL_KNOWN]);
  }
  int map(const char* name) const { return bpf_object__find_map_fd_by_name(object_.get(), name); }
  static int one(void* context, void* data, size_t size);

  struct Drain {
    const std::function<void(std::span<const std::byte>)>* take = nullptr;
    Nanoseconds deadline = 0;
    size_t bytes = 0;
  };

  std::unique_ptr<bpf_object, CloseObject> object_;
  // Descriptors first: destroying a link detaches its program from one of them.
  std::vector<Descriptor> events_;
  std::vector<BpfLink> links_;
  std::unique_ptr<ring_buffer, FreeRing> ring_;
  std::unique_ptr<kernel_known, Unmap> known_;
  Drain drain_;
  uint32_t last_id_ = 0;
};

bool LibbpfCapture::ask_for_native(uint32_t each_cpu) {
  const uint32_t with_native = 1;
  bpf_map* constant = bpf_object__find_map_by_name(object_.get(), ".rodata.native");
  bpf_map* halves = bpf_object__find_map_by_name(object_.get(), "natives");
  bpf_map* ring = bpf_object__find_map_by_name(object_.get(), "ring");
  return bpf_map__set_initial_value(constant, &with_native, sizeof with_native) == 0 &&
         bpf_map__set_max_entries(halves, each_cpu) == 0 && bpf_map__set_max_entries(ring, kNativeRing) == 0;
}

bool LibbpfCapture::add(pid_t process, kernel_process& where) {
  where.id = ++last_id_;
  where.credit = KERNEL_MOST_CREDIT;
  where.clock_credit = KERNEL_MOST_CREDIT;
  where.credit_at = where.clock_credit_at = static_cast<uint64_t>(clock_now());
  const bool fresh = bpf_map_update_elem(map("processes"), &process, &where, BPF_NOEXIST) == 0;
  if (!fresh && bpf_map_update_elem(map("processes"), &process, &where, BPF_EXIST) != 0) return false;
  if (fresh) count_of(process).fetch_add(1);
  std::atomic_ref(known_->generation).fetch_add(1);
  return true;
}

int LibbpfCapture::one(void* context, void* data, size_t size) {
  Drain& drain = *static_cast<Drain*>(context);
  (*drain.take)({static_cast<const std::byte*>(data), size});
  drain.bytes += size;
  // Ends the pass; this record was taken.
  return drain.bytes >= kAtOnce || clock_now() >= drain.deadline ? -ECANCELED : 0;
}

bool LibbpfCapture::drain(Nanoseconds deadline, const std::function<void(std::span<const std::byte>)>& take) {
  drain_ = {&take, deadline, 0};
  return ring_buffer__consume(ring_.get()) == -ECANCELED;
}

uint64_t LibbpfCapture::count(kernel_count what) {
  std::vector<uint64_t> values(static_cast<size_t>(std::max(libbpf_num_possible_cpus(), 1)));
  const auto key = static_cast<uint32_t>(what);
  if (bpf_map_lookup_elem(map("counts"), &key, values.data()) != 0) return 0;
  uint64_t sum = 0;
  for (const uint64_t value : values) sum += value;
  return sum;
}

tl::unexpected<Error> refusal(const char* what, int error, const std::string& retry) {
  std::string why = fmt::format("{} ({})", what, std::strerror(error));
  if (!last_warning.empty()) why += ": " + last_warning;
  const bool denied = error == EPERM || error == EACCES;
  // Not ErrorKind::permission, which means that a process's memory may not be read.
  return refused(ErrorKind::system, why,
                 denied ? "a locked-down kernel or a filter of system calls may refuse it: phlox doctor; " +
                              std::string(kOtherwise)
                        : "phlox doctor; " + std::string(kOtherwise));
  (void)retry;
}

Result<void> LibbpfCapture::attach(double rate_hz, const std::string& retry) {
  void* known =
      ::mmap(nullptr, sizeof(kernel_known), PROT_READ | PROT_WRITE, MAP_SHARED, map(".data.known"), 0);
  if (known == MAP_FAILED) return refusal("what it knows was not mapped", errno, retry);
  known_.reset(static_cast<kernel_known*>(known));
  known_->clock_offset = static_cast<uint64_t>(process::monotonic_offset());
  for (const char* name :
       {"on_switch", "on_waking", "on_exit", "on_fork", "on_exec", "on_signal", "on_deliver"}) {
    bpf_program* program = bpf_object__find_program_by_name(object_.get(), name);
    BpfLink link(program != nullptr ? bpf_program__attach(program) : nullptr);
    if (!link) return refusal("a program for the scheduler's events was not attached", errno, retry);
    links_.push_back(std::move(link));
  }
  bpf_program* clock = bpf_object__find_program_by_name(object_.get(), "on_clock");
  const long cpus = ::sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < cpus; ++cpu) {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.sample_period = period_of(rate_hz);
    attributes.exclude_idle = 1;
    Descriptor event(
        static_cast<int>(::syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event && errno == ENODEV) continue;  // not online
    if (!event) return refusal("no event of a CPU's clock (perf_event_open)", errno, retry);
    BpfLink link(bpf_program__attach_perf_event(clock, event.get()));
    if (!link) return refusal("the program was not attached to a CPU's clock", errno, retry);
    // The link owns the descriptor from here on; ours is for setting the period.
    Descriptor own(::dup(event.release()));
    if (own) events_.push_back(std::move(own));
    links_.push_back(std::move(link));
  }
  ring_.reset(ring_buffer__new(map("ring"), one, &drain_, nullptr));
  if (!ring_) return refusal("its ring was not mapped", errno, retry);
  return {};
}

}  // namespace

Result<void> check_kernel_capture(const std::string& retry) {
  if (const auto here = find_surroundings(retry); !here) return fail(here);
  return {};
}

Result<std::unique_ptr<KernelCapture>> KernelCapture::open(double rate_hz, bool native,
                                                           const std::string& retry) {
  const auto here = find_surroundings(retry);
  if (!here) return fail(here);
  libbpf_set_print(keep_warning);
  last_warning.clear();
  const std::string_view program = kernel::program();
  // If the kernel lacks a type, libbpf 1.1 also searches the types of its modules. Reading those needs
  // CAP_SYS_ADMIN. libbpf leaves them out if the caller names the file of the kernel's types.
  bpf_object_open_opts options{};
  options.sz = sizeof options;
  if (!here->admin) options.btf_custom_path = "/sys/kernel/btf/vmlinux";
  bpf_object* object = bpf_object__open_mem(program.data(), program.size(), &options);
  if (object == nullptr) return refusal("its program was not opened", errno, retry);
  auto capture = std::make_unique<LibbpfCapture>(object);
  const auto each_cpu = static_cast<uint32_t>(std::max(libbpf_num_possible_cpus(), 1));
  bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "scratches"), each_cpu);
  const kernel_host host = read_kernel_host();
  bpf_map__set_initial_value(bpf_object__find_map_by_name(object, ".rodata.host"), &host, sizeof host);
  bpf_map__set_initial_value(bpf_object__find_map_by_name(object, ".rodata.namespace"), &here->pids,
                             sizeof here->pids);
  if (here->pids.inode != 0)
    bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "ending"), kMostEnding);
  if (native && !capture->ask_for_native(each_cpu)) return refusal("its program is not whole", EINVAL, retry);
  if (bpf_object__load(object) != 0) return refusal("its program was not loaded", errno, retry);
  if (auto attached = capture->attach(rate_hz, retry); !attached) return fail(attached);
  return capture;
}

#endif

}  // namespace phlox::sampler
