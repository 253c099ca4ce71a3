// Parses the records of a perf_event ring: samples with registers and stack, starts and ends of threads and
// mappings, context switches, losses. Opens no event and maps no ring; every length is checked. The bytes are
// the kernel's, but a ring that was overrun, or a file, may hold anything. (include/uapi/linux/perf_event.h,
// kernel 6.1)
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/base/byte_reader.h"
#include "phlox/base/clock.h"
#include "phlox/unwind/unwinder.h"

namespace phlox::perf {

// The values of these fields of the event's perf_event_attr: the records' shape depends on them.
struct Shape {
  uint64_t sample_type = 0;
  uint64_t user_registers = 0;  // mask of PERF_REG_*
  bool sample_id_all = true;
  uint16_t machine = 0;  // EM_X86_64, EM_AARCH64
  uint64_t read_format = 0;
  uint64_t branch_sample_type = 0;
};

// The shape of our own events: user registers and stack in addition to IP, TID, TIME, CPU.
Shape native_shape(uint16_t machine);

struct SampleRecord {
  pid_t pid = 0, tid = 0;
  Nanoseconds time = 0;
  uint32_t cpu = 0;
  uint64_t ip = 0;
  uint64_t period = 0;
  bool has_registers = false;  // false for a thread that has left user space for good
  unwind::Registers registers;
  std::span<const std::byte> stack;      // from sp on, as much as was copied
  std::span<const std::byte> callchain;  // u64 values, context markers included
  uint64_t id = 0;                       // of the sampling event, if the shape has one
  uint16_t mode = 0;                     // PERF_RECORD_MISC_KERNEL, _USER, ...: the kind of ip
  uint64_t stack_asked = 0;              // the requested length of the dump
  std::span<const std::byte> raw;        // a tracepoint's fields
  std::span<const std::byte> branches;   // of struct perf_branch_entry
};
struct SwitchRecord {
  pid_t pid = 0, tid = 0;
  Nanoseconds time = 0;
  uint32_t cpu = 0;
  bool out = false;
  bool preempted = false;  // out: it could have continued to run
};
struct LostRecord {
  uint64_t count = 0;
  bool samples = false;  // PERF_RECORD_LOST_SAMPLES
};
struct MapRecord {
  pid_t pid = 0, tid = 0;
  uint64_t start = 0, size = 0, offset = 0;
  bool executable = false;
  std::string_view path;
  std::span<const std::byte> build_id;  // of kernels and events that have it instead of device and inode
  uint64_t device = 0, inode = 0;       // major << 32 | minor; MMAP2 without a build-id only
};
struct TaskRecord {  // fork (a thread too) and exit
  pid_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
  Nanoseconds time = 0;
  bool exit = false;
};
struct NameRecord {
  pid_t pid = 0, tid = 0;
  std::string_view name;
  bool exec = false;
};
// Any other kind, or one that is shorter than its header says.
struct OtherRecord {
  uint32_t type = 0;
  bool damaged = false;
};
using Record =
    std::variant<OtherRecord, SampleRecord, SwitchRecord, LostRecord, MapRecord, TaskRecord, NameRecord>;

// Process, time and CPU of a record that is no sample: they come last if sample_id_all is set.
struct Trailer {
  pid_t pid = 0, tid = 0;
  Nanoseconds time = 0;
  uint32_t cpu = 0;
};
// `bytes`: one record, its header included.
Trailer trailer_of(std::span<const std::byte> bytes, const Shape& shape);

// The event of a record whose shape has PERF_SAMPLE_IDENTIFIER: read before the shape is known. 0: the record
// is too short.
uint64_t identifier_of(std::span<const std::byte> bytes);

// One record, its header included. Views point into the bytes.
Record parse_record(std::span<const std::byte> bytes, const Shape& shape);

// The kernel's own addresses of a call chain, innermost first; returns how many. All but the first are return
// addresses.
size_t parse_kernel_chain(std::span<const std::byte> callchain, std::span<uint64_t> into);

// Walks a ring between two positions: data_tail and data_head as in the ring's first page, which only grow. A
// record that wraps around the end is copied into a buffer of its own.
class RingReader {
 public:
  // `ring`: the data pages; their size is a power of two.
  RingReader(std::span<const std::byte> ring, uint64_t tail, uint64_t head);
  // The next record's bytes, valid until the next call; empty at the end or if the ring is invalid
  // (damaged()).
  std::span<const std::byte> next();
  // Write this to data_tail when the bytes are no longer needed.
  uint64_t tail() const { return tail_; }
  bool damaged() const { return damaged_; }

 private:
  void copy(uint64_t from, size_t size, std::byte* to) const;
  std::span<const std::byte> ring_;
  uint64_t tail_, head_;
  bool damaged_ = false;
  std::vector<std::byte> wrapped_;
};

}  // namespace phlox::perf
