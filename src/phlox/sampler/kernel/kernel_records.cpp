#include "phlox/sampler/kernel/kernel_records.h"

#include <linux/magic.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/line_table.h"

namespace phlox::sampler {
namespace {

// No time is later or longer than this: 73 years of nanoseconds. Sums of several do not overflow.
constexpr uint64_t kMostTime = uint64_t{1} << 61;
constexpr uint16_t kMostSignal = 64;

bool are_times(const auto& record) {
  return record.time < kMostTime && record.ran < kMostTime / 4 && record.blocked < kMostTime / 4 &&
         record.queued < kMostTime / 4;
}

template <class T>
bool take(std::span<const std::byte>& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return true;
}

// The struct and its parts, each followed by zeros: readers ask for more than there is, and missing content
// is cut off afterwards.
class RecordMemory : public memory::RemoteMemory {
 public:
  RecordMemory(const KernelCode& record, uint32_t struct_bytes) {
    add(record.code.address, record.bytes.first(std::min<size_t>(struct_bytes, record.bytes.size())));
    for (const kernel_part& part : record.code.part) {
      if (part.address != 0) add(part.address, record.bytes.subspan(part.at, part.size));
    }
  }

  using RemoteMemory::read;
  size_t read(std::span<const memory::Range> ranges) override {
    size_t done = 0;
    for (const memory::Range& range : ranges) {
      const Block* block = find(range.address.value);
      if (block == nullptr) break;
      const auto here = block->bytes.subspan(std::min(range.address.value - block->at, block->bytes.size()));
      const size_t size = std::min(here.size(), range.into.size());
      std::copy_n(here.begin(), size, range.into.begin());
      std::fill(range.into.begin() + static_cast<ptrdiff_t>(size), range.into.end(), std::byte{0});
      ++done;
    }
    return done;
  }
  // The number of bytes from this address on.
  uint64_t left(uint64_t address) const {
    const Block* block = find(address);
    return block != nullptr
               ? block->at + block->bytes.size() - std::min(address, block->at + block->bytes.size())
               : 0;
  }

 private:
  struct Block {
    uint64_t at = 0;
    std::span<const std::byte> bytes;
  };
  void add(uint64_t at, std::span<const std::byte> bytes) { blocks_[count_++] = {at, bytes}; }
  // The nearest block that starts before: content may begin where a block ends.
  const Block* find(uint64_t address) const {
    const Block* best = nullptr;
    for (const Block& block : std::span(blocks_).first(count_)) {
      if (address - block.at <= block.bytes.size() && (best == nullptr || block.at > best->at)) best = &block;
    }
    return best;
  }

  Block blocks_[6];
  size_t count_ = 0;
};

// include/net/tcp_states.h
constexpr uint16_t kListens = 10;
// PID_FS_MAGIC of include/uapi/linux/magic.h, Linux 6.9.
constexpr uint32_t kPidfs = 0x50494446;

std::string first_part(std::string_view parts) {
  return std::string(parts.substr(0, std::min(parts.find('\0'), parts.size())));
}

// An abstract address, which is not in the file system, starts with a zero byte; /proc shows that as "@".
std::string socket_name(std::string_view path) {
  if (path.starts_with('\0')) return "@" + first_part(path.substr(1));
  return first_part(path);
}

// Parts, innermost first, each with a zero after it.
std::string path_of(std::string_view parts) {
  std::string path;
  while (!parts.empty()) {
    const std::string part = first_part(parts);
    path.insert(0, "/" + part);
    parts.remove_prefix(std::min(part.size() + 1, parts.size()));
  }
  // A memfd is in no visible folder.
  return path.starts_with("/memfd:") ? path.substr(1) : path;
}

KernelRecord parse_sample(std::span<const std::byte> bytes) {
  KernelSample record;
  if (!take(bytes, record.sample) || record.sample.stack.count > KERNEL_MAX_FRAMES ||
      record.sample.stack.left_out > KERNEL_MOST_STEPS || record.sample.stack.end > KERNEL_END_BROKEN ||
      !are_times(record.sample) || record.sample.off_since > record.sample.time) {
    return {};
  }
  const size_t size = record.sample.stack.count * sizeof(uint64_t);
  if (record.has_frames()) {
    if (bytes.size() < size) return {};
    record.frames = bytes.first(size);
  }
  return record;
}

KernelRecord parse_code(std::span<const std::byte> bytes) {
  KernelCode record;
  if (!take(bytes, record.code) || record.code.serial == 0 || record.code.size > bytes.size()) return {};
  record.bytes = bytes.first(record.code.size);
  for (const kernel_part& part : record.code.part) {
    if (part.address != 0 && (part.at > record.code.size || part.size > record.code.size - part.at))
      return {};
  }
  return record;
}

KernelRecord parse_native(std::span<const std::byte> bytes) {
  KernelNative record;
  if (!take(bytes, record.half) || record.half.kernel > KERNEL_KERNEL_FRAMES ||
      record.half.starts > KERNEL_MAX_STARTS || record.half.stack > KERNEL_STACK_BYTES) {
    return {};
  }
  const size_t size = record.kernel_bytes() + record.starts_bytes() + record.half.stack;
  if (bytes.size() < size) return {};
  record.bytes = bytes.first(size);
  return record;
}

KernelRecord parse_wait_target(std::span<const std::byte> bytes) {
  KernelWaitTarget record;
  if (!take(bytes, record.wait_target) || record.wait_target.size > KERNEL_PATH_BYTES ||
      record.wait_target.size > bytes.size())
    return {};
  record.name = bytes.first(record.wait_target.size);
  return record;
}

}  // namespace

KernelFrame KernelSample::frame(size_t index) const {
  uint64_t word = 0;
  std::memcpy(&word, frames.data() + index * sizeof word, sizeof word);
  return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
}

KernelRecord parse_kernel_record(std::span<const std::byte> bytes) {
  kernel_head head{};
  if (bytes.size() < sizeof head) return {};
  std::memcpy(&head, bytes.data(), sizeof head);
  switch (head.type) {
    case KERNEL_SAMPLE:
    case KERNEL_STACK:
      return parse_sample(bytes);
    case KERNEL_CODE:
      return parse_code(bytes);
    case KERNEL_NATIVE:
      return parse_native(bytes);
    case KERNEL_WAIT_TARGET:
      return parse_wait_target(bytes);
    case KERNEL_EXIT: {
      kernel_exit record{};
      if (!take(bytes, record) || !are_times(record)) return {};
      return record;
    }
    case KERNEL_EXEC: {
      kernel_exec record{};
      if (!take(bytes, record) || !are_times(record.ended) || record.id < KERNEL_FIRST_BORN ||
          record.arguments > KERNEL_ARGUMENT_BYTES) {
        return {};
      }
      return record;
    }
    case KERNEL_BIRTH: {
      kernel_birth record{};
      if (!take(bytes, record) || record.time >= kMostTime || record.id < KERNEL_FIRST_BORN) return {};
      return record;
    }
    case KERNEL_TRACE: {
      kernel_trace record{};
      if (!take(bytes, record) || record.number == 0) return {};
      return record;
    }
    case KERNEL_SIGNAL: {
      kernel_signal record{};
      if (!take(bytes, record) || record.time >= kMostTime || record.what < KERNEL_SIGNAL_SENT ||
          record.what > KERNEL_SIGNAL_DELIVERED || record.signal == 0 || record.signal > kMostSignal)
        return {};
      return record;
    }
    default:
      return {};
  }
}

process::NamedFile file_of(const KernelWaitTarget& record) {
  using Kind = process::OpenFile::Kind;
  const kernel_wait_target& from = record.wait_target;
  const std::string_view bytes(reinterpret_cast<const char*>(record.name.data()), record.name.size());
  process::NamedFile to;
  process::OpenFile& file = to.file;
  file.inode = from.inode;
  switch (from.magic) {
    case SOCKFS_MAGIC:
      file.kind = Kind::socket;
      file.accepts = from.state == kListens;
      file.family = from.family;
      file.own.port = from.port;
      file.peer.port = from.peer_port;
      std::copy(std::begin(from.address), std::end(from.address), file.own.address.begin());
      std::copy(std::begin(from.peer), std::end(from.peer), file.peer.address.begin());
      file.process = static_cast<pid_t>(from.process);
      file.peer_inode = from.peer_inode;
      file.named_by_peer = (from.flags & KERNEL_WAIT_TARGET_BY_PEER) != 0;
      to.name = socket_name(bytes);
      return to;
    case PIPEFS_MAGIC:
      break;
    case ANON_INODE_FS_MAGIC:
      return process::parse_descriptor_link("anon_inode:" + first_part(bytes));
    case kPidfs:
      file.kind = Kind::process;
      file.process = static_cast<pid_t>(from.process);
      return to;
    default:
      to.name = path_of(bytes);
  }
  file.cut = (from.flags & KERNEL_WAIT_TARGET_CUT) != 0;
  file.removed = (from.flags & KERNEL_WAIT_TARGET_REMOVED) != 0;
  const unsigned type = from.mode & S_IFMT;
  if (type == S_IFIFO) {
    file = {.kind = Kind::pipe,
            .reads = (from.access & 1) != 0,
            .writes = (from.access & 2) != 0,
            .inode = from.inode};
  } else {
    file.kind = type == S_IFCHR || type == S_IFBLK ? Kind::device : Kind::file;
  }
  return to;
}

std::unique_ptr<python::CodeCapture> capture_of(const python::Layout& layout, const KernelCode& record) {
  RecordMemory memory(record, KERNEL_STRUCT_BYTES);
  auto capture = std::make_unique<python::CodeCapture>();
  if (!python::capture_code(layout, memory, RemoteAddress(record.code.address), *capture)) return nullptr;
  for (python::CapturedObject& part : capture->parts) {
    const uint64_t left = memory.left(part.content_address.value);
    if (part.content <= left) continue;
    part.content = static_cast<uint32_t>(left);
    part.cut = true;
  }
  return capture;
}

int32_t instruction_of(const python::Layout& layout, uint64_t code, uint32_t instruction) {
  const python::Traits& traits = layout.traits;
  if (!traits.interpreter_frames)
    return python::instruction_offset(traits, {},
                                      static_cast<uint64_t>(int64_t{static_cast<int32_t>(instruction)}));
  const RemoteAddress first = RemoteAddress(code) + *layout.code.code_adaptive;
  return python::instruction_offset(traits, first, code + instruction);
}

}  // namespace phlox::sampler
