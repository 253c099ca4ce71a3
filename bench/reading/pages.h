// A copy of a target's memory as of one moment, by pages foreseen from the moments before: in a steady state
// one process_vm_readv a sample. What was not foreseen is fetched at once and foreseen next time.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace reading {

class Pages {
 public:
  static constexpr uint64_t kPage = 4096;
  static constexpr size_t kMaxPages = 2048;  // of one stack: 20,000 frames and more
  static constexpr uint64_t kForget = 64;    // moments without use after which a page is no longer foreseen
  static constexpr size_t kMaxRanges = 256;

  explicit Pages(pid_t pid) : pid_(pid), arena_(kMaxPages * kPage) { plan_.reserve(kMaxPages); }

  // Drops the last copy and takes a new one of everything foreseen.
  void capture() {
    ++moment_;
    follow_ups = 0;
    hint_ = 0;
    std::erase_if(plan_, [&](const Page& page) { return page.used + kForget < moment_; });
    std::sort(plan_.begin(), plan_.end(), [](const Page& a, const Page& b) { return a.number < b.number; });
    size_t ranges = 0, kept = 0;
    end_ = 0;
    for (; kept < plan_.size(); ++kept) {
      const bool joins = kept > 0 && plan_[kept].number == plan_[kept - 1].number + 1;
      if (!joins && ranges == kMaxRanges) break;
      if (!joins) remote_[ranges++] = {address_of(plan_[kept].number), 0};
      remote_[ranges - 1].iov_len += kPage;
      plan_[kept].offset = end_;
      end_ += kPage;
    }
    iovec local = {arena_.data(), end_};
    const ssize_t got = ranges == 0 ? 0 : process_vm_readv(pid_, &local, 1, remote_, ranges, 0);
    // A range that cannot be read ends the call: what lies behind it is fetched when it is asked for.
    const size_t whole = got < 0 ? 0 : static_cast<size_t>(got) / kPage;
    plan_.resize(std::min(whole, kept));
  }

  // The bytes at `address` as of this moment, nullptr when they cannot be had.
  const unsigned char* find(uint64_t address, size_t size) {
    // A torn or wild pointer is any number: stay clear of overflow and of the kernel's half.
    if (address < kPage || address >= (uint64_t{1} << 47) - size) return nullptr;
    const uint64_t first = address / kPage, last = (address + size - 1) / kPage;
    const unsigned char* place = page(first);
    if (place == nullptr) return nullptr;
    if (first == last) return place + address % kPage;
    // Over a page's end: whole only when both copies lie side by side; else put together.
    const unsigned char* next = page(last);
    if (next == nullptr) return nullptr;
    place = page(first);
    if (next == place + kPage) return place + address % kPage;
    const size_t head = kPage - address % kPage;
    std::memcpy(joint_, place + address % kPage, head);
    std::memcpy(joint_ + head, next, size - head);
    return joint_;
  }

  template <class T>
  bool load(uint64_t address, T& value) {
    const unsigned char* bytes = find(address, sizeof(T));
    if (bytes != nullptr) std::memcpy(&value, bytes, sizeof(T));
    return bytes != nullptr;
  }

  void lock() { mlock(arena_.data(), arena_.size()); }

  unsigned follow_ups = 0;

 private:
  struct Page {
    uint64_t number, used;
    size_t offset;
  };

  static void* address_of(uint64_t number) { return reinterpret_cast<void*>(number * kPage); }

  const unsigned char* page(uint64_t number) {
    if (hint_ < plan_.size() && plan_[hint_].number == number) return use(plan_[hint_]);
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (plan_[i].number != number) continue;
      hint_ = i;
      return use(plan_[i]);
    }
    if (plan_.size() >= kMaxPages || end_ + kPage > arena_.size()) return nullptr;
    iovec local = {arena_.data() + end_, kPage}, remote = {address_of(number), kPage};
    ++follow_ups;
    if (process_vm_readv(pid_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(kPage)) return nullptr;
    plan_.push_back({number, moment_, end_});
    end_ += kPage;
    return arena_.data() + plan_.back().offset;
  }
  const unsigned char* use(Page& page) {
    page.used = moment_;
    return arena_.data() + page.offset;
  }

  pid_t pid_;
  std::vector<unsigned char> arena_;
  std::vector<Page> plan_;
  iovec remote_[kMaxRanges];
  unsigned char joint_[512];
  size_t hint_ = 0, end_ = 0;
  uint64_t moment_ = 0;
};

}  // namespace reading
