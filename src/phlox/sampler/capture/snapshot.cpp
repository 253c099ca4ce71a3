#include "phlox/sampler/capture/snapshot.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace phlox::sampler {
namespace {
// Faulted in and locked beforehand (as far as RLIMIT_MEMLOCK allows): an ordinary stack causes no page fault
// in a turn.
constexpr size_t kLocked = 512 * 1024;
// Samples after which an unused page is dropped even if it was not copied meanwhile.
constexpr uint64_t kForgetUnread = 4096;
// If samples cover only some threads, it takes this many times as long until all are covered.
constexpr uint64_t kForgetOfSome = 4;
constexpr uint32_t kGrowth = 512;
// Predicted parts of a page begin and end at a cache line.
constexpr uint32_t kLine = 64;

// The part of the bytes [from, to) that is on this page, relative to its start.
struct OnPage {
  uint32_t from, to;
};
OnPage on_page(uint64_t number, uint64_t from, uint64_t to) {
  const uint64_t start = number * Snapshot::kPage;
  return {static_cast<uint32_t>(std::max(from, start) - start),
          static_cast<uint32_t>(std::min(to, start + Snapshot::kPage) - start)};
}

// Sorts windows, and finds the first one after an address.
struct ByAddress {
  bool operator()(const auto& a, const auto& b) const { return a.address < b.address; }
  bool operator()(uint64_t address, const auto& window) const { return address < window.address; }
};
}  // namespace

Snapshot::Snapshot(memory::RemoteMemory& memory) : memory_(memory) {
  void* arena = ::mmap(nullptr, kMaxPages * kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) throw std::bad_alloc();
  arena_ = static_cast<std::byte*>(arena);
  for (size_t at = 0; at < kLocked; at += kPage) arena_[at] = std::byte{0};
  (void)::mlock(arena_, kLocked);
  pages_.reserve(256);
  windows_.reserve(64);
  ranges_.reserve(64);
  extras_.reserve(256);
  wanted_.reserve(256);
  fetched_.reserve(256);
  batch_.reserve(256);
  whose_.reserve(256);
}

Snapshot::~Snapshot() {
  ::munmap(arena_, kMaxPages * kPage);
}

// The kernel copies ranges in the order given (mm/process_vm_access.c), so the last word is read after all
// others.
size_t Snapshot::read(std::span<const memory::Range> ranges) {
  batch_.assign(ranges.begin(), ranges.end());
  if (last_address_) batch_.push_back({last_address_, std::as_writable_bytes(std::span(&last_value_, 1))});
  const size_t whole = memory_.read(batch_);
  last_read_ = last_address_ && whole == batch_.size();
  return std::min(whole, ranges.size());
}

void Snapshot::capture(RemoteAddress last) {
  for_all_ = true;
  last_address_ = last;
  start_sample({});
}

void Snapshot::capture_for(std::span<const Reader> readers, RemoteAddress last) {
  for_all_ = false;
  whose_.assign(readers.begin(), readers.end());
  std::sort(whose_.begin(), whose_.end());
  last_address_ = last;
  start_sample({});
}

void Snapshot::capture_for(Reader reader, ByteRange also) {
  for_all_ = false;
  whose_.assign(1, reader);
  last_address_ = {};
  start_sample(also);
}

bool Snapshot::is_for(Reader reader) const {
  return for_all_ || std::binary_search(whose_.begin(), whose_.end(), reader);
}

void Snapshot::start_sample(ByteRange also) {
  ++sample_number_;
  follow_ups_ = 0;
  exhausted_ = false;
  const bool foresee =
      std::any_of(extras_.begin(), extras_.end(), [](const Window& w) { return !w.in_passing; });
  if (changed_ || foresee || sample_number_ >= replan_at_) replan(sample_number_ >= replan_at_);
  extras_.clear();
  used_ = planned_bytes_;
  hint_ = extra_hint_ = 0;
  last_read_ = false;
  chosen_.clear();
  ranges_.clear();
  for (size_t i = 0; i < windows_.size(); ++i) {
    Window& window = windows_[i];
    window.copied = window.size != 0 && (window.reader == kEverybody || is_for(window.reader));
    if (!window.copied) continue;
    ++window.copies;
    chosen_.push_back(i);
    ranges_.push_back({RemoteAddress(window.address), std::span(arena_ + window.offset, window.size)});
  }
  also_ = {};
  if (is_plausible(also.address) && also.size > 0 && also.size <= kMaxPages * kPage - used_) {
    also_.address = also.address.value;
    also_.size = also.size;
    also_.offset = used_;
    used_ += also.size;
    ranges_.push_back({also.address, std::span(arena_ + also_.offset, also.size)});
  }
  size_t first = 0;
  while (first < ranges_.size()) {
    const size_t count = std::min(ranges_.size() - first, memory::RemoteMemory::kMaxRanges - 1);
    const size_t whole = read(std::span(ranges_).subspan(first, count));
    if (first != 0) ++follow_ups_;
    first += whole;
    if (whole < count && first == chosen_.size()) {
      also_ = {};
      ++first;
    } else if (whole < count) {
      // A page of this range is gone. Its pages leave the plan; find() reads again those that are still
      // needed.
      Window& window = windows_[chosen_[first]];
      const size_t pages = (window.address + window.size - 1) / kPage - window.address / kPage + 1;
      for (size_t i = 0; i < pages; ++i) pages_[window.first_page + i].last_used = 0;
      window.size = 0;
      changed_ = true;
      ++plan_;
      ++first;
    }
  }
}

void Snapshot::use(const Window& window, uint64_t address, size_t size) {
  if (reader_ == kNobody) return;
  const uint64_t first = window.address / kPage;
  const uint64_t end = address + size;
  for (uint64_t number = address / kPage; number <= (end - 1) / kPage; ++number) {
    Page& page = pages_[window.first_page + (number - first)];
    page.last_used = sample_number_;
    page.used_by = either(page.used_by, reader_);
    const OnPage part = on_page(number, address, end);
    page.used_from = std::min(page.used_from, part.from);
    page.used_to = std::max(page.used_to, part.to);
  }
}

const std::byte* Snapshot::peek(RemoteAddress address, size_t size) {
  // address - window.address <= window.size - size cannot overflow, whatever a torn pointer contains.
  auto holds = [&](const Window& w) {
    return w.copied && address.value >= w.address && w.size >= size &&
           address.value - w.address <= w.size - size;
  };
  // Checked first, so that the plan need not include it again.
  if (holds(also_)) return arena_ + also_.offset + (address.value - also_.address);
  if (hint_ < windows_.size() && holds(windows_[hint_])) {
    use(windows_[hint_], address.value, size);
    return arena_ + windows_[hint_].offset + (address.value - windows_[hint_].address);
  }
  auto after = std::upper_bound(windows_.begin(), windows_.end(), address.value, ByAddress{});
  if (after != windows_.begin()) {
    const Window& window = *--after;
    if (holds(window)) {
      hint_ = static_cast<size_t>(after - windows_.begin());
      use(window, address.value, size);
      return arena_ + window.offset + (address.value - window.address);
    }
  }
  if (extras_.empty()) return nullptr;
  auto found = [&](Window& extra) {
    extra.used_from = std::min(extra.used_from, address.value);
    extra.used_to = std::max(extra.used_to, address.value + size);
    extra.reader = either(extra.reader, reader_);
    return arena_ + extra.offset + (address.value - extra.address);
  };
  if (extra_hint_ < extras_.size() && holds(extras_[extra_hint_])) return found(extras_[extra_hint_]);
  // Extras may overlap, so one that starts earlier may reach further. There are few, and overlaps are rare.
  auto extra = std::upper_bound(extras_.begin(), extras_.end(), address.value, ByAddress{});
  while (extra != extras_.begin()) {
    --extra;
    if (holds(*extra)) {
      extra_hint_ = static_cast<size_t>(extra - extras_.begin());
      return found(*extra);
    }
  }
  return nullptr;
}

void Snapshot::want(RemoteAddress address, size_t size, bool in_passing) {
  if (!is_plausible(address) || size == 0 || size > kPage || peek(address, size) != nullptr) return;
  Window window;
  window = {address.value, size, 0, 0, in_passing};
  window.reader = reader_;
  if (!in_passing) {
    window.address = address.value & ~(kPage - 1);
    window.size = ((address.value + size + kPage - 1) & ~(kPage - 1)) - window.address;
  }
  wanted_.push_back(window);
}

void Snapshot::fetch_wanted() {
  if (wanted_.empty()) return;
  std::sort(wanted_.begin(), wanted_.end(), ByAddress{});
  // Neighbouring ranges are read as one: kNear more bytes cost less than another range.
  constexpr uint64_t kNear = 512;
  size_t count = 0;
  for (const Window& window : wanted_) {
    Window& before = wanted_[count - (count > 0)];
    if (count > 0 && before.in_passing == window.in_passing &&
        window.address <= before.address + before.size + (window.in_passing ? kNear : 0)) {
      before.size = std::max(before.address + before.size, window.address + window.size) - before.address;
    } else {
      wanted_[count++] = window;
    }
  }
  wanted_.resize(count);
  size_t first = 0;
  while (first < count) {
    fetched_.clear();
    size_t end = first;
    size_t used = used_;
    for (; end < count && end - first < memory::RemoteMemory::kMaxRanges - 1; ++end) {
      Window& window = wanted_[end];
      if (window.size > kMaxPages * kPage - used) break;
      window.offset = used;
      used += window.size;
      fetched_.push_back({RemoteAddress(window.address), std::span(arena_ + window.offset, window.size)});
    }
    if (end == first) break;  // no room: callers get nothing
    ++follow_ups_;
    const size_t whole = read(fetched_);
    for (size_t i = 0; i < whole; ++i) extras_.push_back(wanted_[first + i]);
    if (whole > 0) used_ = wanted_[first + whole - 1].offset + wanted_[first + whole - 1].size;
    // A range that cannot be read is left to find(), which reads less.
    first += whole < end - first ? whole + 1 : whole;
  }
  wanted_.clear();
  std::sort(extras_.begin(), extras_.end(), ByAddress{});
  extra_hint_ = 0;
}

const std::byte* Snapshot::find(RemoteAddress address, size_t size) {
  if (const std::byte* bytes = peek(address, size)) return bytes;
  return fetch(address.value, size);
}

const std::byte* Snapshot::fetch(uint64_t address, size_t size) {
  if (!is_plausible(RemoteAddress(address)) || size == 0 || size > kMaxPages * kPage) return nullptr;
  const uint64_t start = address & ~(kPage - 1);
  const uint64_t end = (address + size + kPage - 1) & ~(kPage - 1);
  if (end - start > kMaxPages * kPage - used_) {
    exhausted_ = true;
    return nullptr;
  }
  ++follow_ups_;
  const memory::Range range{RemoteAddress(start), std::span(arena_ + used_, end - start)};
  if (read(std::span(&range, 1)) != 1) return nullptr;
  Window window;
  window.address = start;
  window.size = end - start;
  window.offset = used_;
  window.used_from = address;
  window.used_to = address + size;
  window.reader = reader_;
  window.in_passing = reader_ == kNobody;
  extras_.insert(std::upper_bound(extras_.begin(), extras_.end(), start, ByAddress{}), window);
  used_ += end - start;
  return arena_ + window.offset + (address - start);
}

void Snapshot::foresee(uint64_t address, uint64_t end, Reader reader) {
  for (uint64_t number = address / kPage; number <= (end - 1) / kPage; ++number) {
    Page page;
    page.number = number;
    page.last_used = sample_number_;
    const OnPage part = on_page(number, address, end);
    page.from = page.used_from = part.from;
    page.to = page.used_to = part.to;
    page.reader = page.used_by = reader;
    pages_.push_back(page);
  }
}

void Snapshot::expect(Reader reader, RemoteAddress address, size_t size) {
  if (!is_plausible(address) || size == 0 || size > kPage || pages_.size() >= kMaxPages / 2) return;
  foresee(address.value, address.value + size, reader);
  changed_ = true;
}

void Snapshot::note_idle_pages() {
  for (const Window& window : windows_) {
    if (window.size == 0) continue;
    for (uint64_t i = 0; i <= (window.address + window.size - 1) / kPage - window.address / kPage; ++i) {
      Page& page = pages_[window.first_page + i];
      page.idle = page.last_used >= planned_at_ ? 0 : page.idle + window.copies;
    }
  }
}

// `forget`: only what was used since the last time counts.
void Snapshot::learn_from_use(bool forget) {
  for (Page& page : pages_) {
    page.reader = forget && page.used_by != kNobody ? page.used_by : either(page.reader, page.used_by);
    if (forget) page.used_by = kNobody;
    if (page.used_from < page.used_to) {
      page.from = forget ? page.used_from : std::min(page.from, page.used_from);
      page.to = forget ? page.used_to : std::max(page.to, page.used_to);
    }
    if (forget) {
      page.used_from = kPage;
      page.used_to = 0;
    }
  }
  for (const Window& extra : extras_) {
    if (!extra.in_passing && extra.used_from < extra.used_to)
      foresee(extra.used_from, extra.used_to, extra.reader);
  }
}

// Sorts them; each is there once.
void Snapshot::join_pages() {
  std::sort(pages_.begin(), pages_.end(), [](const Page& a, const Page& b) {
    return a.number != b.number ? a.number < b.number : a.last_used > b.last_used;
  });
  size_t count = 0;
  for (const Page& page : pages_) {
    if (count > 0 && pages_[count - 1].number == page.number) {
      Page& same = pages_[count - 1];
      // A stack that has grown will probably grow further.
      if (page.to > same.to) same.to = std::min<uint32_t>(page.to + kGrowth, kPage);
      same.from = std::min(same.from, page.from);
      same.used_from = std::min(same.used_from, page.used_from);
      same.used_to = std::max(same.used_to, page.used_to);
      same.reader = either(same.reader, page.reader);
      same.used_by = either(same.used_by, page.used_by);
    } else {
      pages_[count++] = page;
    }
  }
  pages_.resize(std::min(count, kMaxPages / 2));
}

void Snapshot::make_windows() {
  windows_.clear();
  planned_bytes_ = 0;
  for (size_t i = 0; i < pages_.size(); ++i) {
    const uint64_t start = pages_[i].number * kPage + pages_[i].from / kLine * kLine;
    const uint64_t end = pages_[i].number * kPage + (pages_[i].to + kLine - 1) / kLine * kLine;
    if (windows_.empty() || windows_.back().address + windows_.back().size != start) {
      Window window;
      window.address = start;
      window.offset = planned_bytes_;
      window.first_page = i;
      window.reader = pages_[i].reader;
      windows_.push_back(window);
    }
    windows_.back().reader = either(windows_.back().reader, pages_[i].reader);
    windows_.back().size += end - start;
    planned_bytes_ += end - start;
  }
}

void Snapshot::replan(bool forget) {
  note_idle_pages();
  planned_at_ = sample_number_;
  // A thread that is no longer sampled keeps its pages for a while.
  std::erase_if(pages_, [this](const Page& p) {
    return p.last_used == 0 || p.idle >= kForget || p.last_used + kForgetUnread < sample_number_;
  });
  learn_from_use(forget);
  join_pages();
  make_windows();
  changed_ = false;
  ++plan_;
  replan_at_ = forget ? sample_number_ + (for_all_ ? kForget : kForgetOfSome * kForget) : replan_at_;
}

}  // namespace phlox::sampler
