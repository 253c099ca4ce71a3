// One sample's copy of a target's memory: pages predicted from earlier samples, and those that the stack
// itself then needs. In the steady state that takes two system calls. A page that was not predicted is
// fetched at once (a follow-up) and predicted next time; one that was not used for a while is dropped. A page
// costs 0.1 to 0.2 us if it is in the cache, a further range 0.32 us, a further call 1.45 us; outside the
// cache it is ten times that, so a sample of one thread leaves out pages that only others needed. Called by
// the worker that holds the turn lock. After construction it allocates only when the plan grows.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "phlox/memory/remote_memory.h"

namespace phlox::sampler {

// Bytes of the target.
struct ByteRange {
  RemoteAddress address;
  size_t size = 0;
};

class Snapshot {
 public:
  static constexpr size_t kPage = 4096;
  // 32 MiB of a stack: 20,000 frames take about 700 pages. Anything beyond is refused (exhausted()).
  static constexpr size_t kMaxPages = 8192;
  // A page that was not used in this many samples leaves the plan.
  static constexpr uint64_t kForget = 24;
  // The reader: a number of the caller's. A page that several readers need belongs to all.
  using Reader = uint32_t;
  static constexpr Reader kEverybody = 0;
  // A reader that will not come again: its pages are not predicted.
  static constexpr Reader kNobody = ~Reader{0};

  explicit Snapshot(memory::RemoteMemory& memory);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Starts a sample: drops the last copy and reads every page of the plan. `last`: a word that this read and
  // every further one of the sample reads after everything else; none: no such word.
  void capture(RemoteAddress last = {});
  // Reads only the pages of these readers, or of all.
  void capture_for(std::span<const Reader> readers, RemoteAddress last = {});
  // `also`: bytes to read in the same call, if they can be read; peek() has them.
  void capture_for(Reader reader, ByteRange also = {});
  // Whether this sample's copy was made for this reader too.
  bool is_for(Reader reader) const;
  // Predicts the pages of this reader.
  void expect(Reader reader, RemoteAddress address, size_t size);
  // The reader from now on. Returns the last one.
  Reader read_as(Reader reader) { return std::exchange(reader_, reader); }
  // The value of that word, after the last byte of this sample; nothing if it could not be read.
  std::optional<int32_t> last() const { return last_read_ ? std::optional(last_value_) : std::nullopt; }
  // Bytes of the target in this sample; fetched if not there yet; nullptr if they cannot be read. Valid until
  // the next capture().
  const std::byte* find(RemoteAddress address, size_t size);
  // The bytes that find() will need soon: fetch_wanted() reads the missing ones with one call. `in_passing`:
  // only these bytes, and not predicted next time (they differ from sample to sample); otherwise whole pages.
  void want(RemoteAddress address, size_t size, bool in_passing);
  void fetch_wanted();
  // Only bytes that are already there.
  const std::byte* peek(RemoteAddress address, size_t size);

  template <class T>
  bool load(RemoteAddress address, T& value) {
    const std::byte* bytes = find(address, sizeof(T));
    if (bytes == nullptr) return false;
    __builtin_memcpy(&value, bytes, sizeof(T));
    return true;
  }

  // Bytes that find() returned and that are in the plan: in every sample with the same plan() that is
  // for_all() they are there again, fresh. A caller that needs the same ones in each sample need not search
  // for them; each new plan learns from find() which are still needed.
  bool is_planned(const std::byte* bytes) const { return bytes >= arena_ && bytes < arena_ + planned_bytes_; }
  uint64_t plan() const { return plan_; }
  bool for_all() const { return for_all_; }

  uint64_t sample_number() const { return sample_number_; }
  // System calls that this sample needed after the first.
  unsigned follow_ups() const { return follow_ups_; }
  bool exhausted() const { return exhausted_; }
  size_t planned_pages() const { return pages_.size(); }

 private:
  // The predicted part of a page, and the part that was used since all were last dropped: copying a page
  // takes 0.1 us if it is in the cache, 1 us if not.
  struct Page {
    uint64_t number = 0;     // address / kPage
    uint64_t last_used = 0;  // sample
    uint32_t from = 0, to = 0;
    uint32_t used_from = kPage, used_to = 0;
    uint64_t idle = 0;  // copies of it under earlier plans since it was used
    Reader reader = kEverybody, used_by = kNobody;
  };
  // Neighbouring bytes in one range.
  struct Window {
    uint64_t address = 0;
    uint64_t size = 0;
    size_t offset = 0;      // into arena_
    size_t first_page = 0;  // index into pages_
    bool in_passing = false;
    uint64_t used_from = ~uint64_t{0}, used_to = 0;  // of an extra: used addresses
    Reader reader = kEverybody;                      // of an extra: its reader
    bool copied = true;                              // in this sample
    uint64_t copies = 0;                             // under this plan
  };
  void foresee(uint64_t address, uint64_t end, Reader reader);
  static Reader either(Reader a, Reader b) {
    return a == kNobody ? b : a == b || b == kNobody ? a : kEverybody;
  }

  void start_sample(ByteRange also);
  void replan(bool forget);
  void note_idle_pages();
  void learn_from_use(bool forget);
  void join_pages();
  void make_windows();
  const std::byte* fetch(uint64_t address, size_t size);
  size_t read(std::span<const memory::Range> ranges);
  void use(const Window& window, uint64_t address, size_t size);

  memory::RemoteMemory& memory_;
  std::byte* arena_ = nullptr;
  size_t used_ = 0;              // bytes of arena_
  size_t planned_bytes_ = 0;     // of them by the plan
  std::vector<Page> pages_;      // sorted by number; the plan
  std::vector<Window> windows_;  // the plan as ranges, sorted by address
  std::vector<memory::Range> ranges_;
  Window also_;                 // of this sample
  std::vector<Window> extras_;  // fetched in this sample, sorted by address
  std::vector<Window> wanted_;
  std::vector<memory::Range> fetched_;
  std::vector<memory::Range> batch_;
  RemoteAddress last_address_;
  int32_t last_value_ = -1;
  bool last_read_ = false;
  Reader reader_ = kEverybody;
  std::vector<Reader> whose_;  // the readers of this sample, besides all; sorted
  bool for_all_ = true;
  uint64_t planned_at_ = 0;     // sample
  std::vector<size_t> chosen_;  // of windows_, in the order of ranges_
  size_t hint_ = 0;
  uint64_t sample_number_ = 0;
  uint64_t plan_ = 1;
  uint64_t replan_at_ = 0;
  unsigned follow_ups_ = 0;
  size_t extra_hint_ = 0;
  bool changed_ = false;
  bool exhausted_ = false;
};

// Bytes that are read while this lives belong to this reader.
class ReadAs {
 public:
  ReadAs(Snapshot& snapshot, Snapshot::Reader reader)
      : snapshot_(snapshot), before_(snapshot.read_as(reader)) {}
  ~ReadAs() { snapshot_.read_as(before_); }
  ReadAs(const ReadAs&) = delete;
  ReadAs& operator=(const ReadAs&) = delete;

 private:
  Snapshot& snapshot_;
  Snapshot::Reader before_;
};

}  // namespace phlox::sampler
