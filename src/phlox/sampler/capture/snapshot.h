// One look's copy of a target's memory, by pages foreseen from the looks before, and what the stack itself
// then asks for: in the steady state it comes with two system calls. What was not foreseen is fetched at once
// (a follow-up) and foreseen next time; what was not used for a while is left out. A page costs 0.1 to 0.2
// us when it lies in the cache, a further range 0.32 us, a further call 1.45 us; out of the cache it is ten
// times that, so a look at one thread leaves out what only others needed. Called by the worker that holds the
// turn lock. After construction it allocates only when the plan grows.
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
  // 32 MiB of a stack: 20,000 frames take about 700 pages. What is beyond cannot be had (exhausted()).
  static constexpr size_t kMaxPages = 8192;
  // A page that was not used in this many looks leaves the plan.
  static constexpr uint64_t kForget = 24;
  // Who asks: a number of the caller's. What several ask for, or everybody does, is everybody's.
  using Reader = uint32_t;
  static constexpr Reader kEverybody = 0;
  // Who is not going to ask again: what it asks for is not foreseen.
  static constexpr Reader kNobody = ~Reader{0};

  explicit Snapshot(memory::RemoteMemory& memory);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Starts a look: drops the copy before and reads every page of the plan. `last`: a word that this read and
  // every further one of the look reads after everything else; none: no such word.
  void capture(RemoteAddress last = {});
  // Reads those pages only that one of these or everybody asks for.
  void capture_for(std::span<const Reader> readers, RemoteAddress last = {});
  // `beside`: bytes to bring with them in this look, where they can be read; peek() has them.
  void capture_for(Reader reader, ByteRange beside = {});
  // Whether this look's copy was made for this one too.
  bool is_for(Reader reader) const;
  // Foresees what this one is going to ask for.
  void expect(Reader reader, RemoteAddress address, size_t size);
  // Who asks from now on. Gives who did before.
  Reader read_as(Reader reader) { return std::exchange(reader_, reader); }
  // What that word was, as of after the last byte of this look; nothing when it could not be read.
  std::optional<int32_t> last() const { return last_read_ ? std::optional(last_value_) : std::nullopt; }
  // Bytes of the target as of this look; fetched when not there yet; nullptr when they cannot be read.
  // Valid until the next capture().
  const std::byte* find(RemoteAddress address, size_t size);
  // What find() will be asked for soon: fetch_wanted() brings what is not there yet with one call.
  // `in_passing`: these bytes only, and not foreseen next time (what differs from look to look); else whole
  // pages.
  void want(RemoteAddress address, size_t size, bool in_passing);
  void fetch_wanted();
  // Only what is there already.
  const std::byte* peek(RemoteAddress address, size_t size);

  template <class T>
  bool load(RemoteAddress address, T& value) {
    const std::byte* bytes = find(address, sizeof(T));
    if (bytes == nullptr) return false;
    __builtin_memcpy(&value, bytes, sizeof(T));
    return true;
  }

  // Bytes that find() gave and that lie in the plan: in every look with the same plan() that is for_all()
  // they lie there again, fresh. Who looks at the same ones look after look need not search for them; each
  // new plan learns by find() what is needed still.
  bool is_planned(const std::byte* bytes) const { return bytes >= arena_ && bytes < arena_ + planned_bytes_; }
  uint64_t plan() const { return plan_; }
  bool for_all() const { return for_all_; }

  uint64_t look() const { return look_; }
  // System calls that this look needed beside the first.
  unsigned follow_ups() const { return follow_ups_; }
  bool exhausted() const { return exhausted_; }
  size_t planned_pages() const { return pages_.size(); }

 private:
  // What of a page is foreseen, and what of it was asked for since everything was last forgotten: a page is
  // copied in 0.1 us when it lies in the cache, in 1 us when it does not.
  struct Page {
    uint64_t number = 0;     // address / kPage
    uint64_t last_used = 0;  // look
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
    uint64_t used_from = ~uint64_t{0}, used_to = 0;  // of an extra: addresses that were asked for
    Reader reader = kEverybody;                      // of an extra: who asked
    bool copied = true;                              // in this look
    uint64_t copies = 0;                             // under this plan
  };
  void foresee(uint64_t address, uint64_t end, Reader reader);
  static Reader either(Reader a, Reader b) {
    return a == kNobody ? b : a == b || b == kNobody ? a : kEverybody;
  }

  void start_look(ByteRange beside);
  void replan(bool forget);
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
  Window beside_;               // of this look
  std::vector<Window> extras_;  // fetched in this look, sorted by address
  std::vector<Window> wanted_;
  std::vector<memory::Range> fetched_;
  std::vector<memory::Range> batch_;
  RemoteAddress last_address_;
  int32_t last_value_ = -1;
  bool last_read_ = false;
  Reader reader_ = kEverybody;
  std::vector<Reader> whose_;  // whom this look is for, beside everybody; sorted
  bool for_all_ = true;
  uint64_t planned_at_ = 0;     // look
  std::vector<size_t> chosen_;  // of windows_, as they lie in ranges_
  size_t hint_ = 0;
  uint64_t look_ = 0;
  uint64_t plan_ = 1;
  uint64_t replan_at_ = 0;
  unsigned follow_ups_ = 0;
  size_t extra_hint_ = 0;
  bool changed_ = false;
  bool exhausted_ = false;
};

// What is read while this lives is this one's.
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
