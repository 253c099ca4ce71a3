#include "phlox/sampler/kernel/kernel_capture.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "phlox/base/machine.h"
#include "phlox/process/host_rights.h"
#include "phlox/sampler/kernel/process_config.h"

#ifndef PHLOX_KERNEL_CAPTURE_MISSING
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/base/write_all.h"
#include "phlox/process/clock_offset.h"
#include "phlox/sampler/kernel/kernel_types.h"
#include "phlox/sampler/kernel/program.h"
#include "phlox/sampler/kernel/record_ring.h"
#endif

namespace phlox::sampler {
namespace {

tl::unexpected<Error> refused(ErrorKind kind, const std::string& why, std::string hint = kOtherModes) {
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

bool is_since(const Release& release, int major, int minor) {
  return release.major > major || (release.major == major && release.minor >= minor);
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
  bool allocates = false;  // the kernel can add to a map in an interrupt without preallocated elements
  kernel_namespace pids{};
};

Result<Surroundings> find_surroundings(const std::string& retry) {
  utsname host{};
  ::uname(&host);
  const Release release = kernel_release(host);
  if (!is_since(release, kOldestMajor, kOldestMinor)) {
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
  return Surroundings{is_since(release, 6, 1), *pids};
}

struct CloseObject {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};
struct DestroyLink {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
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

// Sections of programs for tracepoints of the kernel begin like this.
constexpr std::string_view kTracepoints = "tp_btf/";

// The kernel's types, mapped; before Linux 6.17 they must be copied.
class TypesFile {
 public:
  TypesFile() {
    const Descriptor file(::open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC));
    struct stat facts {};
    if (!file || ::fstat(file.get(), &facts) != 0) return;
    const auto size = static_cast<size_t>(facts.st_size);
    mapped_ = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (mapped_ != MAP_FAILED) {
      bytes_ = {static_cast<const std::byte*>(mapped_), size};
      return;
    }
    copy_ = std::make_unique_for_overwrite<std::byte[]>(size);
    size_t have = 0;
    for (ssize_t n = 1; n > 0 && have < size; have += static_cast<size_t>(std::max<ssize_t>(n, 0)))
      n = ::read(file.get(), copy_.get() + have, size - have);
    bytes_ = {copy_.get(), have};
  }
  TypesFile(const TypesFile&) = delete;
  TypesFile& operator=(const TypesFile&) = delete;
  ~TypesFile() {
    if (mapped_ != MAP_FAILED) ::munmap(mapped_, bytes_.size());
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void* mapped_ = MAP_FAILED;
  std::unique_ptr<std::byte[]> copy_;
  std::span<const std::byte> bytes_;
};

std::vector<bpf_program*> tracepoint_programs(const bpf_object* object) {
  std::vector<bpf_program*> programs;
  for (bpf_program* one = nullptr; (one = bpf_object__next_program(object, one)) != nullptr;)
    if (std::string_view(bpf_program__section_name(one)).starts_with(kTracepoints)) programs.push_back(one);
  return programs;
}

KernelTypes pick_types(const bpf_object* object) {
  std::set<std::string, std::less<>> tracepoints;
  for (const bpf_program* one : tracepoint_programs(object))
    tracepoints.emplace(bpf_program__section_name(one) + kTracepoints.size());
  uint32_t size = 0;
  const void* own = btf__raw_data(bpf_object__btf(object), &size);
  KernelTypes picked = pick_kernel_types(
      TypesFile().bytes(), names_of_structs({static_cast<const std::byte*>(own), size}), tracepoints);
  // arch/x86/include/asm/page_64_types.h and arch/arm64/include/asm/memory.h, THREAD_SIZE: at least a page.
  picked.host.stack_size = std::max<uint64_t>(16384, static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
  return picked;
}

// libbpf asks for the types of tracepoints in its own search through all types, unless it does not know that
// a program is for one. So it learns that from here, with the type, when it loads the program.
thread_local const KernelTypes* kernel_types = nullptr;
int prepare_tracepoint(bpf_program* program, bpf_prog_load_opts* options, long) {
  const std::string_view section = bpf_program__section_name(program);
  const auto type = kernel_types->tracepoints.find(section.substr(kTracepoints.size()));
  if (type == kernel_types->tracepoints.end()) return -ESRCH;
  options->attach_btf_id = type->second;
  return bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
}
bool register_tracepoints() {
  libbpf_prog_handler_opts options{};
  options.sz = sizeof options;
  options.prog_prepare_load_fn = prepare_tracepoint;
  static const bool registered =
      libbpf_register_prog_handler("tp_btf+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_RAW_TP, &options) >= 0;
  return registered;
}

// The ring holds what comes while the recorder does not run, so it grows with the number of CPUs. With native
// frames, samples have some 10 KB: 0.4 s of every CPU at 1 kHz. It is a power of two.
struct RingSizes {
  uint32_t for_each_cpu, least, most;
};
constexpr RingSizes kPlainRing{2 << 20, 4 << 20, 16 << 20}, kNativeRing{4 << 20, 16 << 20, 32 << 20};
uint32_t ring_size(const RingSizes& sizes, uint32_t cpus) {
  return std::bit_ceil(std::clamp(std::min(cpus, 64u) * sizes.for_each_cpu, sizes.least, sizes.most));
}

// Threads that are ending at once, in a PID namespace of our own.
constexpr uint32_t kMostEnding = 8192;

uint64_t period_of(double rate_hz) {
  return std::max<uint64_t>(static_cast<uint64_t>(1e9 / rate_hz), 100'000);
}

class LibbpfCapture : public KernelCapture {
 public:
  explicit LibbpfCapture(bpf_object* object) : object_(object) {}

  // Call it before the program is loaded.
  bool size_maps(const Surroundings& here, uint32_t cpus, bool native);
  Result<void> attach(double rate_hz);

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
    kernel_slot slot{};
    if (std::atomic_ref(known_->slots).load() > 0 &&
        bpf_map_lookup_elem(map("slots"), &process, &slot) == 0 && slot.id == id &&
        bpf_map_delete_elem(map("slots"), &process) == 0)
      std::atomic_ref(known_->slots).fetch_sub(1);
    if (bpf_map_lookup_elem(map("processes"), &process, &known) == 0 && known.id == id &&
        bpf_map_delete_elem(map("processes"), &process) == 0) {
      count_of(process).fetch_sub(1);
      std::atomic_ref(known_->generation).fetch_add(1);
    }
  }
  bool set_slot(pid_t process, const kernel_slot& slot) override {
    const bool fresh = bpf_map_update_elem(map("slots"), &process, &slot, BPF_NOEXIST) == 0;
    if (fresh) std::atomic_ref(known_->slots).fetch_add(1);
    return fresh || bpf_map_update_elem(map("slots"), &process, &slot, BPF_EXIST) == 0;
  }
  std::optional<kernel_thread> thread(pid_t thread) override {
    kernel_thread value{};
    if (bpf_map_lookup_elem(map("threads"), &thread, &value) != 0) return {};
    return value;
  }
  bool drain(Nanoseconds deadline, const std::function<void(std::span<const std::byte>)>& take) override;
  int descriptor() const override { return poll_.get(); }
  uint64_t count(kernel_count what) override;

 private:
  // The number of recorded processes that share its slot.
  std::atomic_ref<uint32_t> count_of(pid_t process) {
    return std::atomic_ref(known_->processes[static_cast<uint32_t>(process) % KERNEL_KNOWN]);
  }
  int map(const char* name) const { return bpf_object__find_map_fd_by_name(object_.get(), name); }
  bool map_ring();

  std::unique_ptr<bpf_object, CloseObject> object_;
  std::vector<Descriptor> tracepoints_;
  // Descriptors first: destroying a link detaches its program from one of them.
  std::vector<Descriptor> events_;
  std::vector<BpfLink> links_;
  RecordRing ring_;
  // Polling the ring itself would find every record, and not only those that wake.
  Descriptor poll_;
  std::unique_ptr<kernel_known, Unmap> known_;
  uint32_t last_id_ = 0;
};

bool LibbpfCapture::size_maps(const Surroundings& here, uint32_t cpus, bool native) {
  const auto named = [this](const char* name) { return bpf_object__find_map_by_name(object_.get(), name); };
  if (bpf_map__set_max_entries(named("scratches"), cpus) != 0 ||
      bpf_map__set_max_entries(named("ring"), ring_size(native ? kNativeRing : kPlainRing, cpus)) != 0)
    return false;
  if (here.allocates && bpf_map__set_map_flags(named("threads"), BPF_F_NO_PREALLOC) != 0) return false;
  if (here.pids.inode != 0 && bpf_map__set_max_entries(named("ending"), kMostEnding) != 0) return false;
  const uint32_t with_native = 1;
  return !native ||
         (bpf_map__set_initial_value(named(".rodata.native"), &with_native, sizeof with_native) == 0 &&
          bpf_map__set_max_entries(named("natives"), cpus) == 0);
}

bool LibbpfCapture::add(pid_t process, kernel_process& where) {
  where.id = ++last_id_;
  where.walks.left = KERNEL_MOST_CREDIT;
  where.clock.left = KERNEL_MOST_CREDIT;
  where.walks.at = where.clock.at = static_cast<uint64_t>(clock_now());
  const bool fresh = bpf_map_update_elem(map("processes"), &process, &where, BPF_NOEXIST) == 0;
  if (!fresh && bpf_map_update_elem(map("processes"), &process, &where, BPF_EXIST) != 0) return false;
  if (fresh) count_of(process).fetch_add(1);
  std::atomic_ref(known_->generation).fetch_add(1);
  return true;
}

bool LibbpfCapture::drain(Nanoseconds deadline, const std::function<void(std::span<const std::byte>)>& take) {
  size_t bytes = 0;
  return ring_.consume([&](std::span<const std::byte> record) {
    take(record);
    bytes += record.size();
    return bytes < kAtOnce && clock_now() < deadline;
  });
}

bool LibbpfCapture::map_ring() {
  epoll_event readable{};
  readable.events = EPOLLIN;
  poll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  const bpf_map* ring = bpf_object__find_map_by_name(object_.get(), "ring");
  return poll_ && ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, bpf_map__fd(ring), &readable) == 0 &&
         ring_.map(bpf_map__fd(ring), bpf_map__max_entries(ring));
}

uint64_t LibbpfCapture::count(kernel_count what) {
  std::vector<uint64_t> values(static_cast<size_t>(std::max(libbpf_num_possible_cpus(), 1)));
  const auto key = static_cast<uint32_t>(what);
  if (bpf_map_lookup_elem(map("counts"), &key, values.data()) != 0) return 0;
  // Each CPU's cache of values begins with one and is refilled after the first use (prefill_mem_cache() and
  // unit_alloc() in kernel/bpf/memalloc.c, Linux 6.1 to 6.18). A switch between two new threads asks for two.
  // The next event of the thread without a value makes it, so no sample is lost.
  const uint64_t expected = what == KERNEL_COUNT_NO_MEMORY ? 1 : 0;
  uint64_t sum = 0;
  for (const uint64_t value : values) sum += value - std::min(value, expected);
  return sum;
}

tl::unexpected<Error> refusal(const char* what, int error) {
  std::string why = fmt::format("{} ({})", what, std::strerror(error));
  if (!last_warning.empty()) why += ": " + last_warning;
  const bool denied = error == EPERM || error == EACCES;
  // Not ErrorKind::permission, which means that a process's memory may not be read.
  return refused(ErrorKind::system, why,
                 denied ? "a locked-down kernel or a filter of system calls may refuse it: phlox doctor; " +
                              std::string(kOtherModes)
                        : "phlox doctor; " + std::string(kOtherModes));
}

Result<void> LibbpfCapture::attach(double rate_hz) {
  void* known =
      ::mmap(nullptr, sizeof(kernel_known), PROT_READ | PROT_WRITE, MAP_SHARED, map(".data.known"), 0);
  if (known == MAP_FAILED) return refusal("what it knows was not mapped", errno);
  known_.reset(static_cast<kernel_known*>(known));
  known_->clock_offset = static_cast<uint64_t>(process::monotonic_offset());
  for (const bpf_program* program : tracepoint_programs(object_.get())) {
    Descriptor link(bpf_raw_tracepoint_open(nullptr, bpf_program__fd(program)));
    if (!link) return refusal("a program for the scheduler's events was not attached", errno);
    tracepoints_.push_back(std::move(link));
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
    if (!event) return refusal("no event of a CPU's clock (perf_event_open)", errno);
    BpfLink link(bpf_program__attach_perf_event(clock, event.get()));
    if (!link) return refusal("the program was not attached to a CPU's clock", errno);
    // The link owns the descriptor from here on; ours is for setting the period.
    Descriptor own(::dup(event.release()));
    if (own) events_.push_back(std::move(own));
    links_.push_back(std::move(link));
  }
  if (!map_ring()) return refusal("its ring was not mapped", errno);
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
  if (!register_tracepoints()) return refusal("libbpf took no handler", errno);
  // libbpf takes types other than the kernel's own from a file.
  const Descriptor types(::memfd_create("phlox-types", MFD_CLOEXEC));
  const std::string path = fmt::format("/proc/self/fd/{}", types.get());
  const std::string_view program = kernel::program();
  bpf_object_open_opts options{};
  options.sz = sizeof options;
  options.btf_custom_path = path.c_str();
  bpf_object* object = bpf_object__open_mem(program.data(), program.size(), &options);
  if (object == nullptr) return refusal("its program was not opened", errno);
  auto capture = std::make_unique<LibbpfCapture>(object);
  const auto each_cpu = static_cast<uint32_t>(std::max(libbpf_num_possible_cpus(), 1));
  if (!capture->size_maps(*here, each_cpu, native)) return refusal("its program is not whole", EINVAL);
  const KernelTypes picked = pick_types(object);
  bpf_map__set_initial_value(bpf_object__find_map_by_name(object, ".rodata.host"), &picked.host,
                             sizeof picked.host);
  bpf_map__set_initial_value(bpf_object__find_map_by_name(object, ".rodata.namespace"), &here->pids,
                             sizeof here->pids);
  if (!write_all(types.get(), picked.structs)) return refusal("no memory for the kernel's types", errno);
  kernel_types = &picked;
  const int loaded = bpf_object__load(object);
  kernel_types = nullptr;
  if (loaded != 0) return refusal("its program was not loaded", errno);
  if (auto attached = capture->attach(rate_hz); !attached) return fail(attached);
  return capture;
}

#endif

}  // namespace phlox::sampler
