#include "phlox/sampler/snapshot.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace phlox::sampler {
namespace {
// Faulted in and locked beforehand (as far as RLIMIT_MEMLOCK lets us): an ordinary stack never faults in a turn.
constexpr size_t kLocked = 512 * 1024;
}  // namespace

Snapshot::Snapshot(memory::RemoteMemory& memory) : memory_(memory) {
  void* arena = ::mmap(nullptr, kMaxPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) throw std::bad_alloc();
  arena_ = static_cast<std::byte*>(arena);
  for (size_t at = 0; at < kLocked; at += kPage) arena_[at] = std::byte{0};
  (void)::mlock(arena_, kLocked);
  pages_.reserve(256);
  windows_.reserve(64);
  ranges_.reserve(64);
  extras_.reserve(64);
}

Snapshot::~Snapshot() { ::munmap(arena_, kMaxPages * kPage); }

void Snapshot::capture() {
  ++look_;
  follow_ups_ = 0;
  exhausted_ = false;
  if (changed_ || !extras_.empty() || look_ >= replan_at_) replan();
  hint_ = 0;
  last_read_ = false;
  // The kernel copies ranges in the order given (mm/process_vm_access.c).
  if (last_address_) {
    ranges_.push_back(memory::Range{last_address_, std::as_writable_bytes(std::span(&last_value_, 1))});
  }
  size_t first = 0;
  while (first < ranges_.size()) {
    const size_t count = std::min(ranges_.size() - first, memory::RemoteMemory::kMaxRanges);
    const size_t whole = memory_.read(std::span(ranges_).subspan(first, count));
    if (first != 0) ++follow_ups_;
    first += whole;
    last_read_ = last_address_ && first == ranges_.size();
    if (whole < count && first < windows_.size()) {
      // This range has a page that is gone. Its pages leave the plan; whoever needs one of them asks again.
      Window& window = windows_[first];
      for (size_t i = 0; i < window.size / kPage; ++i) pages_[window.first_page + i].last_used = 0;
      window.size = 0;
      changed_ = true;
      ++first;
    } else if (whole < count) {
      ++first;  // the last word
    }
  }
  if (last_address_) ranges_.pop_back();
}

void Snapshot::use(const Window& window, uint64_t address, size_t size) {
  const size_t from = (address - window.address) / kPage;
  const size_t to = (address + size - 1 - window.address) / kPage;
  for (size_t i = from; i <= to; ++i) pages_[window.first_page + i].last_used = look_;
}

const std::byte* Snapshot::peek(RemoteAddress address, size_t size) {
  // address - window.address <= window.size - size cannot overflow, whatever a torn pointer says.
  auto holds = [&](const Window& w) {
    return address.value >= w.address && w.size >= size && address.value - w.address <= w.size - size;
  };
  if (hint_ < windows_.size() && holds(windows_[hint_])) {
    use(windows_[hint_], address.value, size);
    return arena_ + windows_[hint_].offset + (address.value - windows_[hint_].address);
  }
  auto after = std::upper_bound(windows_.begin(), windows_.end(), address.value,
                                [](uint64_t value, const Window& w) { return value < w.address; });
  if (after != windows_.begin()) {
    const Window& window = *--after;
    if (holds(window)) {
      hint_ = static_cast<size_t>(after - windows_.begin());
      use(window, address.value, size);
      return arena_ + window.offset + (address.value - window.address);
    }
  }
  for (auto window = extras_.rbegin(); window != extras_.rend(); ++window) {
    if (holds(*window)) return arena_ + window->offset + (address.value - window->address);
  }
  return nullptr;
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
  if (!memory_.read(RemoteAddress(start), std::span(arena_ + used_, end - start))) return nullptr;
  extras_.push_back(Window{start, end - start, used_, 0});
  used_ += end - start;
  return arena_ + extras_.back().offset + (address - start);
}

void Snapshot::replan() {
  std::erase_if(pages_, [this](const Page& p) { return p.last_used == 0 || p.last_used + kForget < look_; });
  for (const Window& extra : extras_) {
    for (uint64_t at = extra.address; at < extra.address + extra.size; at += kPage) pages_.push_back(Page{at / kPage, look_});
  }
  extras_.clear();
  std::sort(pages_.begin(), pages_.end(), [](const Page& a, const Page& b) {
    return a.number != b.number ? a.number < b.number : a.last_used > b.last_used;
  });
  pages_.erase(std::unique(pages_.begin(), pages_.end(), [](const Page& a, const Page& b) { return a.number == b.number; }),
               pages_.end());
  if (pages_.size() > kMaxPages / 2) pages_.resize(kMaxPages / 2);
  windows_.clear();
  ranges_.clear();
  used_ = 0;
  for (size_t i = 0; i < pages_.size(); ++i) {
    const uint64_t address = pages_[i].number * kPage;
    if (windows_.empty() || windows_.back().address + windows_.back().size != address) {
      windows_.push_back(Window{address, 0, used_, i});
    }
    windows_.back().size += kPage;
    used_ += kPage;
  }
  for (const Window& w : windows_) {
    ranges_.push_back(memory::Range{RemoteAddress(w.address), std::span(arena_ + w.offset, w.size)});
  }
  changed_ = false;
  replan_at_ = look_ + kForget;
}

}  // namespace phlox::sampler
