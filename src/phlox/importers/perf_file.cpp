#include "phlox/importers/perf_file.h"

#include <elf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "phlox/base/byte_reader.h"
#include "phlox/importers/hex.h"

namespace phlox::importers {
namespace {

constexpr std::string_view kMagic = "PERFILE2";
constexpr std::string_view kOldMagic = "PERFFILE";
constexpr std::string_view kSwappedMagic = "2ELIFREP";
// A perf with thousands of CPUs and tracepoints stays far below; limits the memory that a file may request.
constexpr size_t kMostEvents = 4096;
constexpr uint64_t kLargestSection = uint64_t{64} << 20;
constexpr size_t kMostBuildIds = 200'000;
constexpr size_t kMostOfOnePath = 64;

// The features (bits of the header) that are read.
enum Feature : unsigned {
  feature_build_id = 2,
  feature_host = 3,
  feature_release = 4,
  feature_version = 5,
  feature_arch = 6,
  feature_command_line = 11,
  feature_event_desc = 12,
  feature_bits = 256
};
// Records that perf record writes, and the kernel does not.
enum UserRecord : uint32_t { header_attr = 64, header_build_id = 67, event_update = 78, header_feature = 80 };

std::string_view text_of(std::span<const std::byte> bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return all.substr(0, all.find('\0'));
}

std::vector<std::byte> read_section(Input& input, uint64_t offset, uint64_t size) {
  if (size > kLargestSection) return {};
  std::vector<std::byte> bytes(input.room_for(offset, size));
  bytes.resize(input.read_at(offset, bytes));
  return bytes;
}

// perf_header_string
std::string_view read_string(ByteReader& in) {
  const auto size = in.read<uint32_t>();
  return text_of(in.bytes(size));
}

// Names as in `perf list`; other events get their number.
std::string name_of(uint32_t type, uint64_t config) {
  constexpr std::string_view kHardware[] = {
      "cycles",        "instructions", "cache-references",        "cache-misses",           "branches",
      "branch-misses", "bus-cycles",   "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"};
  constexpr std::string_view kSoftware[] = {
      "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
      "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
      "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
  if (type == PERF_TYPE_HARDWARE && config < std::size(kHardware)) return std::string(kHardware[config]);
  if (type == PERF_TYPE_SOFTWARE && config < std::size(kSoftware)) return std::string(kSoftware[config]);
  return fmt::format("event {}:{:#x}", type, config);
}

}  // namespace

bool PerfEvent::is_clock() const {
  return type == PERF_TYPE_SOFTWARE &&
         (config == PERF_COUNT_SW_CPU_CLOCK || config == PERF_COUNT_SW_TASK_CLOCK);
}

bool PerfFile::recognise(std::span<const std::byte> head) {
  const std::string_view start(reinterpret_cast<const char*>(head.data()), std::min<size_t>(head.size(), 8));
  return start == kMagic || start == kOldMagic || start == kSwappedMagic;
}

Result<PerfFile> PerfFile::open(Input& input) {
  std::vector<std::byte> bytes(104);
  bytes.resize(input.read_at(0, bytes));
  ByteReader in(bytes);
  const std::string_view magic(reinterpret_cast<const char*>(bytes.data()),
                               std::min<size_t>(bytes.size(), 8));
  in.skip(8);
  if (magic == kSwappedMagic) {
    return fail(ErrorKind::input, "a perf.data of a big-endian machine is not read",
                "on that machine: perf script -F +pid,+time | phlox import - -o app.phlox");
  }
  if (magic == kOldMagic)
    return fail(ErrorKind::input, "a perf.data of a perf before 2011 (PERFFILE) is not read");
  const auto size = in.read<uint64_t>();
  if (magic != kMagic || in.failed()) return fail(ErrorKind::input, "not a perf.data");
  PerfFile file;
  if (size == 16) {
    file.pipe_ = true;
    file.data_start_ = 16;
    return file;
  }
  const auto attr_size = in.read<uint64_t>();
  const auto attrs = in.read<uint64_t>(), attrs_size = in.read<uint64_t>();
  const auto data = in.read<uint64_t>(), data_size = in.read<uint64_t>();
  in.skip(16);
  uint64_t bits[4];
  for (uint64_t& word : bits) word = in.read<uint64_t>();
  if (in.failed())
    return fail(ErrorKind::input,
                fmt::format("a perf.data that ends inside its header, after {} bytes", bytes.size()));
  file.data_start_ = data;
  // Until perf record ends, the size is 0 and what follows the data is missing.
  if (data_size != 0 && data_size <= ~uint64_t{0} - data) {
    file.data_end_ = data + data_size;
    file.read_events(input, attrs, attrs_size, attr_size);
    file.read_features(input, data + data_size, bits);
  } else {
    file.read_events(input, attrs, attrs_size, attr_size);
  }
  file.name_unnamed();
  file.settle_machine();
  if (file.events_.empty())
    return fail(ErrorKind::input, "a perf.data that says of no event how its records are to be read");
  return file;
}

void PerfFile::read_events(Input& input, uint64_t offset, uint64_t size, uint64_t entry_size) {
  if (entry_size < 16 + PERF_ATTR_SIZE_VER0 || entry_size > 4096) return;
  const auto bytes = read_section(input, offset, size);
  // All events may claim the same place for their ids.
  uint64_t ids_left = kLargestSection;
  for (size_t at = 0; bytes.size() - at >= entry_size; at += entry_size) {
    const auto entry = std::span(bytes).subspan(at, entry_size);
    ByteReader in(entry);
    in.seek(entry_size - 16);
    const auto ids_at = in.read<uint64_t>(), ids_size = in.read<uint64_t>();
    const auto ids = read_section(input, ids_at, std::min(ids_size, ids_left));
    ids_left -= ids.size();
    add_event(entry.first(entry_size - 16), ids);
  }
}

void PerfFile::add_event(std::span<const std::byte> bytes, std::span<const std::byte> ids) {
  if (events_.size() == kMostEvents || bytes.size() < PERF_ATTR_SIZE_VER0) {
    ++refused_;
    return;
  }
  perf_event_attr attr{};
  std::memcpy(&attr, bytes.data(), std::min(bytes.size(), sizeof attr));
  PerfEvent event;
  event.type = attr.type;
  event.config = attr.config;
  event.shape.sample_type = attr.sample_type;
  event.shape.user_registers = attr.sample_regs_user;
  event.shape.sample_id_all = attr.sample_id_all != 0;
  event.shape.machine = machine_;
  event.shape.read_format = attr.read_format;
  event.shape.branch_sample_type = attr.branch_sample_type;
  event.most_frames = attr.sample_max_stack;
  event.context_switches = attr.context_switch != 0;
  event.period = attr.freq == 0 ? attr.sample_period : 0;
  event.each_time = attr.freq == 0 && attr.sample_period == 1;
  event.identified = (attr.sample_type & PERF_SAMPLE_IDENTIFIER) != 0;
  const auto number = static_cast<uint32_t>(events_.size());
  events_.push_back(std::move(event));
  ByteReader in(ids);
  while (in.remaining() >= 8) by_id_[in.read<uint64_t>()] = number;
}

void PerfFile::read_features(Input& input, uint64_t offset, std::span<const uint64_t> bits) {
  for (unsigned feature = 1; feature < feature_bits; ++feature) {
    if ((bits[feature / 64] >> (feature % 64) & 1) == 0) continue;
    const auto entry = read_section(input, offset, 16);
    offset += 16;
    ByteReader in(entry);
    const auto at = in.read<uint64_t>(), size = in.read<uint64_t>();
    if (in.failed()) {
      ++refused_;
      return;
    }
    const bool wanted = feature == feature_build_id || feature == feature_host ||
                        feature == feature_release || feature == feature_version || feature == feature_arch ||
                        feature == feature_command_line || feature == feature_event_desc;
    if (wanted) take_feature(feature, read_section(input, at, size));
  }
}

void PerfFile::take_feature(unsigned feature, std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  switch (feature) {
    case feature_build_id:
      return take_build_ids(bytes);
    case feature_host:
      facts_.host = read_string(in);
      break;
    case feature_release:
      facts_.kernel_release = read_string(in);
      break;
    case feature_version:
      facts_.perf_version = read_string(in);
      break;
    case feature_arch:
      facts_.architecture = read_string(in);
      break;
    case feature_command_line: {
      const auto count = in.read<uint32_t>();
      facts_.command_line.clear();
      for (uint32_t i = 0; i < count && !in.failed(); ++i) {
        if (i > 0) facts_.command_line += ' ';
        facts_.command_line += read_string(in);
      }
      break;
    }
    case feature_event_desc:
      return take_event_names(bytes);
    default:
      break;
  }
}

// Records with the layout of build_id_event; since perf 5.10 the id's size follows the id.
void PerfFile::take_build_ids(std::span<const std::byte> bytes) {
  constexpr uint16_t kHasSize = 1 << 15;
  ByteReader in(bytes);
  while (in.remaining() >= sizeof(perf_event_header)) {
    const size_t start = in.offset();
    const auto header = in.read<perf_event_header>();
    if (header.size < sizeof header + 28 || header.size > bytes.size() - start ||
        facts_.build_ids.size() >= kMostBuildIds) {
      ++refused_;
      return;
    }
    in.skip(4);
    auto id = in.bytes(24);
    const auto size = std::to_integer<size_t>(id[20]);
    id = id.first((header.misc & kHasSize) != 0 && size > 0 && size <= 20 ? size : 20);
    const auto path = text_of(bytes.subspan(start + sizeof header + 28, header.size - sizeof header - 28));
    auto& of_path = facts_.build_ids[std::string(path)];
    std::string text = hex(id);
    if (of_path.size() < kMostOfOnePath && std::find(of_path.begin(), of_path.end(), text) == of_path.end())
      of_path.push_back(std::move(text));
    in.seek(start + header.size);
  }
}

void PerfFile::take_event_names(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto count = in.read<uint32_t>(), attr_size = in.read<uint32_t>();
  for (uint32_t i = 0; i < count && i < kMostEvents && !in.failed(); ++i) {
    in.skip(attr_size);
    const auto ids = in.read<uint32_t>();
    const auto name = read_string(in);
    if (in.failed() || ids > in.remaining() / 8) {
      ++refused_;
      return;
    }
    // In the order of the attributes; if both have ids, the ids decide.
    PerfEvent* event = i < events_.size() ? &events_[i] : nullptr;
    for (uint32_t k = 0; k < ids; ++k) {
      const auto found = by_id_.find(in.read<uint64_t>());
      if (found != by_id_.end()) event = &events_[found->second];
    }
    if (event != nullptr) event->name = name;
  }
}

void PerfFile::name_unnamed() {
  for (PerfEvent& event : events_) {
    if (event.name.empty()) event.name = name_of(event.type, event.config);
  }
}

void PerfFile::settle_machine() {
  // For a killed recorder, or a pipe's first records, the architecture is unknown: the requested registers
  // reveal it. x86-64 has no register 32, aarch64's pc, without PERF_REG_X86_XMM*, which no perf samples in
  // user space.
  uint64_t registers = 0;
  for (const PerfEvent& event : events_) registers |= event.shape.user_registers;
  machine_ = EM_X86_64;
  if (facts_.architecture == "aarch64" || facts_.architecture == "arm64" ||
      (facts_.architecture.empty() && (registers >> 32 & 1) != 0)) {
    machine_ = EM_AARCH64;
  }
  for (PerfEvent& event : events_) event.shape.machine = machine_;
}

const PerfEvent* PerfFile::event_of(std::span<const std::byte> record) const {
  if (events_.empty()) return nullptr;
  if (events_.size() == 1 || !events_.front().identified) return &events_.front();
  const uint64_t id = perf::identifier_of(record);
  // Records that perf record itself made up at the start have none.
  if (id == 0) return &events_.front();
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &events_[found->second];
}

const PerfEvent& PerfFile::event_of(uint64_t id, const PerfEvent& shape_of) const {
  const auto found = id == 0 ? by_id_.end() : by_id_.find(id);
  return found == by_id_.end() ? shape_of : events_[found->second];
}

bool PerfFile::take(std::span<const std::byte> record) {
  ByteReader in(record);
  const auto header = in.read<perf_event_header>();
  switch (header.type) {
    case header_attr: {
      perf_event_attr attr{};
      const auto bytes = record.subspan(std::min(record.size(), sizeof header));
      std::memcpy(&attr, bytes.data(), std::min(bytes.size(), size_t{PERF_ATTR_SIZE_VER0}));
      const size_t size = attr.size == 0 ? size_t{PERF_ATTR_SIZE_VER0} : attr.size;
      if (size > bytes.size()) {
        ++refused_;
        return true;
      }
      add_event(bytes.first(size), bytes.subspan(size));
      break;
    }
    case header_build_id:
      take_build_ids(record);
      return true;
    case event_update: {
      constexpr uint64_t kName = 2;
      const auto what = in.read<uint64_t>(), id = in.read<uint64_t>();
      const auto found = by_id_.find(id);
      if (what == kName && found != by_id_.end() && !in.failed())
        events_[found->second].name = text_of(record.subspan(in.offset()));
      return true;
    }
    case header_feature: {
      const auto feature = in.read<uint64_t>();
      if (!in.failed() && feature < feature_bits)
        take_feature(static_cast<unsigned>(feature), record.subspan(in.offset()));
      break;
    }
    default:
      return false;
  }
  name_unnamed();
  settle_machine();
  return true;
}

}  // namespace phlox::importers
