// A perf.data laid out by a test: header, events, records, features; broken where the test breaks it.
//
//   PerfBuilder perf;
//   perf.event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK).add(perf.sample(10, 10, 1'000, 0x401000));
//   MemoryInput input(perf.build());
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace phlox::test {

// The bytes of a record or of anything else.
class PerfBytes {
 public:
  PerfBytes() = default;
  explicit PerfBytes(uint32_t type, uint16_t misc = 0) { put(type).put(misc).put(uint16_t{0}); }

  // Appends numbers, all of the first one's type.
  template <class T, class... More>
  PerfBytes& put(T value, More... more) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    (put<T>(static_cast<T>(more)), ...);
    return *this;
  }
  PerfBytes& raw(std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }
  // Padded with zeros, as the kernel does.
  PerfBytes& text(std::string_view s) {
    for (const char c : s) put(c);
    put('\0');
    while (bytes.size() % 8 != 0) put('\0');
    return *this;
  }
  // perf_header_string
  PerfBytes& counted(std::string_view s) {
    put(static_cast<uint32_t>(s.size() + 1));
    for (const char c : s) put(c);
    return put('\0');
  }
  // Fills in the length in its header.
  std::vector<std::byte> done() {
    const auto size = static_cast<uint16_t>(bytes.size());
    std::memcpy(bytes.data() + 6, &size, 2);
    return bytes;
  }
  std::vector<std::byte> bytes;
};

class PerfBuilder {
 public:
  static constexpr uint64_t kPlain = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                                     PERF_SAMPLE_PERIOD | PERF_SAMPLE_IDENTIFIER;

  // Events have the ids 101, 102, ...
  perf_event_attr& event(uint32_t type, uint64_t config, uint64_t sample_type = kPlain) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = type;
    attr.config = config;
    attr.sample_type = sample_type;
    attr.sample_id_all = 1;
    attrs_.push_back(attr);
    return attrs_.back();
  }
  PerfBuilder& clock(uint64_t sample_type = kPlain) {
    event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, sample_type);
    return *this;
  }
  PerfBuilder& add(const std::vector<std::byte>& record) {
    data_.insert(data_.end(), record.begin(), record.end());
    return *this;
  }
  PerfBuilder& feature(unsigned number, const std::vector<std::byte>& bytes) {
    features_[number] = bytes;
    return *this;
  }
  PerfBuilder& end_round() { return add(PerfBytes(68).done()); }

  // A sample of an event with kPlain; `more` appends fields in the order of perf_event.h.
  static std::vector<std::byte> sample(int32_t pid, int32_t tid, uint64_t time, uint64_t ip,
                                       const PerfBytes& more = {}, uint64_t id = 101,
                                       uint16_t misc = PERF_RECORD_MISC_USER, uint64_t period = 1'000'000) {
    PerfBytes b(PERF_RECORD_SAMPLE, misc);
    b.put(id, ip).put(pid, tid).put(time).put(uint32_t{3}, uint32_t{0}).put(period).raw(more.bytes);
    return b.done();
  }
  // The fields at the end of a record that is not a sample: pid, tid, time, CPU, id.
  static PerfBytes& trail(PerfBytes& b, int32_t pid, int32_t tid, uint64_t time, uint64_t id = 101) {
    return b.put(pid, tid).put(time).put(uint32_t{3}, uint32_t{0}).put(id);
  }
  static std::vector<std::byte> mmap(int32_t pid, uint64_t start, uint64_t size, uint64_t offset,
                                     std::string_view path, uint64_t time = 0,
                                     uint16_t misc = PERF_RECORD_MISC_USER) {
    PerfBytes b(PERF_RECORD_MMAP, misc);
    b.put(pid, pid).put(start, size, offset).text(path);
    return trail(b, pid, pid, time).done();
  }
  // With device (major << 32 | minor) and inode.
  static std::vector<std::byte> mmap2(int32_t pid, uint64_t start, uint64_t size, uint64_t offset,
                                      std::string_view path, uint64_t device, uint64_t inode) {
    constexpr uint32_t kReadAndExecute = 5, kPrivate = 2;
    PerfBytes b(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
    b.put(pid, pid).put(start, size, offset);
    b.put(static_cast<uint32_t>(device >> 32), static_cast<uint32_t>(device)).put(inode, uint64_t{0});
    b.put(kReadAndExecute, kPrivate).text(path);
    return trail(b, pid, pid, 0).done();
  }
  static std::vector<std::byte> comm(int32_t pid, int32_t tid, std::string_view name, uint64_t time = 0,
                                     uint16_t misc = 0) {
    PerfBytes b(PERF_RECORD_COMM, misc);
    b.put(pid, tid).text(name);
    return trail(b, pid, tid, time).done();
  }
  static std::vector<std::byte> task(uint32_t type, int32_t pid, int32_t parent, int32_t tid, uint64_t time,
                                     uint16_t misc = 0) {
    PerfBytes b(type, misc);
    b.put(pid, parent, tid, parent).put(time);
    return trail(b, pid, tid, time).done();
  }
  static std::vector<std::byte> switched(int32_t pid, int32_t tid, uint64_t time, uint16_t misc) {
    PerfBytes b(PERF_RECORD_SWITCH, misc);
    return trail(b, pid, tid, time).done();
  }

  // `data_size`: as given in the header; by default correct.
  std::vector<std::byte> build(uint64_t data_size = ~uint64_t{0}) const {
    constexpr uint64_t kHeader = 104, kEntry = sizeof(perf_event_attr) + 16;
    const uint64_t ids = kHeader, attrs = ids + attrs_.size() * 8, data = attrs + attrs_.size() * kEntry;
    uint64_t bits[4] = {};
    for (const auto& [number, _] : features_) bits[number / 64] |= uint64_t{1} << (number % 64);
    PerfBytes b;
    b.put('P', 'E', 'R', 'F', 'I', 'L', 'E', '2').put(kHeader, kEntry, attrs, attrs_.size() * kEntry, data);
    b.put(data_size == ~uint64_t{0} ? uint64_t{data_.size()} : data_size).put(uint64_t{0}, uint64_t{0});
    for (const uint64_t word : bits) b.put(word);
    for (uint64_t i = 0; i < attrs_.size(); ++i) b.put(uint64_t{101 + i});
    for (uint64_t i = 0; i < attrs_.size(); ++i) b.put(attrs_[i]).put(uint64_t{ids + i * 8}, uint64_t{8});
    b.raw(data_);
    uint64_t at = b.bytes.size() + features_.size() * 16;
    for (const auto& [_, bytes] : features_) {
      b.put(uint64_t{at}, uint64_t{bytes.size()});
      at += bytes.size();
    }
    for (const auto& [_, bytes] : features_) b.raw(bytes);
    return b.bytes;
  }
  // In the format of `perf record -o -`.
  std::vector<std::byte> build_pipe() const {
    PerfBytes b;
    b.put('P', 'E', 'R', 'F', 'I', 'L', 'E', '2').put(uint64_t{16});
    for (uint64_t i = 0; i < attrs_.size(); ++i) {
      PerfBytes record(64);
      b.raw(record.put(attrs_[i]).put(uint64_t{101 + i}).done());
    }
    for (const auto& [number, bytes] : features_) {
      PerfBytes record(80);
      b.raw(record.put(uint64_t{number}).raw(bytes).done());
    }
    b.raw(data_);
    return b.bytes;
  }

 private:
  std::vector<perf_event_attr> attrs_;
  std::vector<std::byte> data_;
  std::map<unsigned, std::vector<std::byte>> features_;
};

}  // namespace phlox::test
