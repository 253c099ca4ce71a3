#include "phlox/perf/records.h"

#include <elf.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace phlox::perf {
namespace {

// arch/x86/include/uapi/asm/perf_regs.h and arch/arm64/include/uapi/asm/perf_regs.h, kernel 6.1. Each header
// exists only on its architecture, but files of both can be read on either.
struct RegisterNumbers {
  unsigned pc, sp, fp, lr, bx;
};
constexpr unsigned kNone = 64;
constexpr RegisterNumbers kX86_64{8, 7, 6, kNone, 1};
constexpr RegisterNumbers kAarch64{32, 31, 29, 30, kNone};

const RegisterNumbers& numbers_of(uint16_t machine) {
  return machine == EM_AARCH64 ? kAarch64 : kX86_64;
}

uint64_t mask_of(const RegisterNumbers& n) {
  return (uint64_t{1} << n.pc) | (uint64_t{1} << n.sp) | (uint64_t{1} << n.fp) |
         (n.lr == kNone ? 0 : uint64_t{1} << n.lr) | (n.bx == kNone ? 0 : uint64_t{1} << n.bx);
}

// The value of register `number` among those of the mask, which are in numerical order.
uint64_t value_of(std::span<const std::byte> values, uint64_t mask, unsigned number) {
  const auto index = static_cast<size_t>(std::popcount(mask & ((uint64_t{1} << number) - 1)));
  uint64_t value = 0;
  if ((mask >> number & 1) != 0 && values.size() >= (index + 1) * 8)
    std::memcpy(&value, values.data() + index * 8, 8);
  return value;
}

// PERF_FORMAT_LOST, which headers before kernel 6.0 (Ubuntu 22.04) lack.
constexpr uint64_t kFormatLost = 1U << 4;

// Counter values, which are not used here, of one event or of a group.
void skip_read(ByteReader& in, uint64_t format) {
  const auto times = static_cast<size_t>(
      std::popcount(format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)));
  const auto extra = static_cast<size_t>(std::popcount(format & (PERF_FORMAT_ID | kFormatLost)));
  if ((format & PERF_FORMAT_GROUP) == 0) return in.skip((1 + times + extra) * 8);
  const auto count = in.read<uint64_t>();
  in.skip(times * 8);
  in.skip(count > in.remaining() / 8 ? in.remaining() + 1 : count * (1 + extra) * 8);
}

// In the order of the kernel's perf_output_sample().
Record parse_sample(ByteReader& in, const Shape& shape) {
  const uint64_t type = shape.sample_type;
  SampleRecord s;
  if ((type & PERF_SAMPLE_IDENTIFIER) != 0) s.id = in.read<uint64_t>();
  if ((type & PERF_SAMPLE_IP) != 0) s.ip = in.read<uint64_t>();
  if ((type & PERF_SAMPLE_TID) != 0) {
    s.pid = in.read<int32_t>();
    s.tid = in.read<int32_t>();
  }
  if ((type & PERF_SAMPLE_TIME) != 0) s.time = static_cast<Nanoseconds>(in.read<uint64_t>());
  if ((type & PERF_SAMPLE_ADDR) != 0) in.skip(8);
  if ((type & PERF_SAMPLE_ID) != 0) s.id = in.read<uint64_t>();
  if ((type & PERF_SAMPLE_STREAM_ID) != 0) in.skip(8);
  if ((type & PERF_SAMPLE_CPU) != 0) {
    s.cpu = in.read<uint32_t>();
    in.skip(4);
  }
  if ((type & PERF_SAMPLE_PERIOD) != 0) s.period = in.read<uint64_t>();
  if ((type & PERF_SAMPLE_READ) != 0) skip_read(in, shape.read_format);
  if ((type & PERF_SAMPLE_CALLCHAIN) != 0) {
    const auto count = in.read<uint64_t>();
    if (count > in.remaining() / 8) return OtherRecord{PERF_RECORD_SAMPLE, true};
    s.callchain = in.bytes(count * 8);
  }
  if ((type & PERF_SAMPLE_RAW) != 0) s.raw = in.bytes(in.read<uint32_t>());
  if ((type & PERF_SAMPLE_BRANCH_STACK) != 0) {
    const auto count = in.read<uint64_t>();
    if ((shape.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX) != 0) in.skip(8);
    if (count > in.remaining() / sizeof(perf_branch_entry)) return OtherRecord{PERF_RECORD_SAMPLE, true};
    s.branches = in.bytes(count * sizeof(perf_branch_entry));
  }
  if ((type & PERF_SAMPLE_REGS_USER) != 0) {
    const auto abi = in.read<uint64_t>();
    if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
      const auto values = in.bytes(static_cast<size_t>(std::popcount(shape.user_registers)) * 8);
      const RegisterNumbers& n = numbers_of(shape.machine);
      const uint64_t needed = mask_of(n);
      s.has_registers =
          abi == PERF_SAMPLE_REGS_ABI_64 && !in.failed() && (shape.user_registers & needed) == needed;
      s.registers.pc = RemoteAddress(value_of(values, shape.user_registers, n.pc));
      s.registers.sp = RemoteAddress(value_of(values, shape.user_registers, n.sp));
      s.registers.fp = value_of(values, shape.user_registers, n.fp);
      s.registers.lr_known = n.lr != kNone;
      if (n.lr != kNone) s.registers.lr = value_of(values, shape.user_registers, n.lr);
      s.registers.bx_known = n.bx != kNone;
      if (n.bx != kNone) s.registers.bx = value_of(values, shape.user_registers, n.bx);
    }
  }
  if ((type & PERF_SAMPLE_STACK_USER) != 0) {
    const auto size = in.read<uint64_t>();
    if (size > in.remaining()) return OtherRecord{PERF_RECORD_SAMPLE, true};
    const auto dump = in.bytes(size);
    s.stack_asked = size;
    // How many bytes were really copied; absent if none were requested.
    const uint64_t valid = size == 0 ? 0 : in.read<uint64_t>();
    s.stack = dump.first(std::min<uint64_t>(valid, dump.size()));
  }
  if (in.failed()) return OtherRecord{PERF_RECORD_SAMPLE, true};
  return s;
}

Record parse_map(ByteReader& in, uint32_t type, uint16_t misc) {
  MapRecord m;
  m.pid = in.read<int32_t>();
  m.tid = in.read<int32_t>();
  m.start = in.read<uint64_t>();
  m.size = in.read<uint64_t>();
  m.offset = in.read<uint64_t>();
  m.executable = (misc & PERF_RECORD_MISC_MMAP_DATA) == 0;
  if (type == PERF_RECORD_MMAP2) {
    if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
      const auto size = in.read<uint8_t>();
      in.skip(3);
      const auto id = in.bytes(20);
      m.build_id = id.first(std::min<size_t>(size, id.size()));
    } else {
      m.device = uint64_t{in.read<uint32_t>()} << 32;
      m.device |= in.read<uint32_t>();
      m.inode = in.read<uint64_t>();
      in.skip(8);
    }
    const auto protection = in.read<uint32_t>();
    in.skip(4);
    m.executable = (protection & 4) != 0;  // PROT_EXEC
  }
  m.path = in.c_string();
  if (in.failed()) return OtherRecord{type, true};
  return m;
}

}  // namespace

Trailer trailer_of(std::span<const std::byte> bytes, const Shape& shape) {
  Trailer t;
  const uint64_t type = shape.sample_type;
  size_t size = 0;
  for (const uint64_t bit :
       {uint64_t{PERF_SAMPLE_TID}, uint64_t{PERF_SAMPLE_TIME}, uint64_t{PERF_SAMPLE_ID},
        uint64_t{PERF_SAMPLE_STREAM_ID}, uint64_t{PERF_SAMPLE_CPU}, uint64_t{PERF_SAMPLE_IDENTIFIER}}) {
    if ((type & bit) != 0) size += 8;
  }
  if (!shape.sample_id_all || bytes.size() < sizeof(perf_event_header) ||
      size > bytes.size() - sizeof(perf_event_header)) {
    return t;
  }
  ByteReader in(bytes.subspan(bytes.size() - size));
  if ((type & PERF_SAMPLE_TID) != 0) {
    t.pid = in.read<int32_t>();
    t.tid = in.read<int32_t>();
  }
  if ((type & PERF_SAMPLE_TIME) != 0) t.time = static_cast<Nanoseconds>(in.read<uint64_t>());
  if ((type & PERF_SAMPLE_ID) != 0) in.skip(8);
  if ((type & PERF_SAMPLE_STREAM_ID) != 0) in.skip(8);
  if ((type & PERF_SAMPLE_CPU) != 0) t.cpu = in.read<uint32_t>();
  return t;
}

uint64_t identifier_of(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto header = in.read<perf_event_header>();
  if (header.type != PERF_RECORD_SAMPLE && bytes.size() >= sizeof header + 8) in.seek(bytes.size() - 8);
  return in.read<uint64_t>();
}

Shape native_shape(uint16_t machine) {
  Shape shape;
  shape.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                      PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  shape.user_registers = mask_of(numbers_of(machine));
  shape.machine = machine;
  return shape;
}

size_t parse_kernel_chain(std::span<const std::byte> callchain, std::span<uint64_t> into) {
  ByteReader in(callchain);
  size_t count = 0;
  bool kernel = false;
  while (in.remaining() >= 8 && count < into.size()) {
    const auto word = in.read<uint64_t>();
    if (word >= static_cast<uint64_t>(PERF_CONTEXT_MAX)) {
      kernel = word == static_cast<uint64_t>(PERF_CONTEXT_KERNEL);
    } else if (kernel) {
      into[count++] = word;
    }
  }
  return count;
}

Record parse_record(std::span<const std::byte> bytes, const Shape& shape) {
  ByteReader in(bytes);
  const auto header = in.read<perf_event_header>();
  if (in.failed() || header.size != bytes.size()) return OtherRecord{header.type, true};
  const auto damaged = OtherRecord{header.type, true};
  switch (header.type) {
    case PERF_RECORD_SAMPLE: {
      Record record = parse_sample(in, shape);
      if (auto* sample = std::get_if<SampleRecord>(&record))
        sample->mode = header.misc & PERF_RECORD_MISC_CPUMODE_MASK;
      return record;
    }
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
      return parse_map(in, header.type, header.misc);
    case PERF_RECORD_LOST: {
      in.skip(8);
      const LostRecord lost{in.read<uint64_t>(), false};
      if (in.failed()) return damaged;
      return lost;
    }
    case PERF_RECORD_LOST_SAMPLES: {
      const LostRecord lost{in.read<uint64_t>(), true};
      if (in.failed()) return damaged;
      return lost;
    }
    case PERF_RECORD_COMM: {
      NameRecord name;
      name.pid = in.read<int32_t>();
      name.tid = in.read<int32_t>();
      name.name = in.c_string();
      name.exec = (header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
      if (in.failed()) return damaged;
      return name;
    }
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: {
      TaskRecord task;
      task.pid = in.read<int32_t>();
      task.parent_pid = in.read<int32_t>();
      task.tid = in.read<int32_t>();
      task.parent_tid = in.read<int32_t>();
      task.time = static_cast<Nanoseconds>(in.read<uint64_t>());
      task.exit = header.type == PERF_RECORD_EXIT;
      if (in.failed()) return damaged;
      return task;
    }
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE: {
      const Trailer trailer = trailer_of(bytes, shape);
      SwitchRecord s{trailer.pid, trailer.tid, trailer.time, trailer.cpu, false, false};
      s.out = (header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
      s.preempted = s.out && (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
      return s;
    }
    default:
      return OtherRecord{header.type, false};
  }
}

RingReader::RingReader(std::span<const std::byte> ring, uint64_t tail, uint64_t head)
    : ring_(ring), tail_(tail), head_(head) {
  damaged_ = !std::has_single_bit(ring.size()) || head < tail || head - tail > ring.size();
}

void RingReader::copy(uint64_t from, size_t size, std::byte* to) const {
  const size_t at = static_cast<size_t>(from & (ring_.size() - 1));
  const size_t first = std::min(size, ring_.size() - at);
  std::memcpy(to, ring_.data() + at, first);
  std::memcpy(to + first, ring_.data(), size - first);
}

std::span<const std::byte> RingReader::next() {
  if (damaged_ || head_ == tail_) return {};
  perf_event_header header{};
  if (head_ - tail_ >= sizeof header) copy(tail_, sizeof header, reinterpret_cast<std::byte*>(&header));
  if (header.size < sizeof header || header.size > head_ - tail_) {
    damaged_ = true;
    return {};
  }
  const size_t at = static_cast<size_t>(tail_ & (ring_.size() - 1));
  tail_ += header.size;
  if (header.size <= ring_.size() - at) return ring_.subspan(at, header.size);
  wrapped_.resize(header.size);
  copy(tail_ - header.size, header.size, wrapped_.data());
  return wrapped_;
}

}  // namespace phlox::perf
