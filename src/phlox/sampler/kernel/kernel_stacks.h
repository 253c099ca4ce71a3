// Code objects and Python stacks of one process as the capture inside the kernel sends them: each code object
// once, which goes on to the consumer, and each stack once, known by its hash from then on. Reads only those
// parts of the target that the interrupt could not. Called by the recorder's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/layout.h"
#include "phlox/sampler/kernel/kernel_records.h"
#include "phlox/sampler/observe/records.h"
#include "phlox/sampler/observe/ring.h"

namespace phlox::sampler {

class KernelStacks {
 public:
  // `renew`: makes the kernel send everything about the process again, because it was dropped here.
  KernelStacks(const python::Layout& layout, memory::RemoteMemory& memory, Ring& ring,
               std::function<void()> renew)
      : layout_(layout), memory_(memory), ring_(ring), renew_(std::move(renew)) {}

  void take(const KernelCode& record);
  // The frames that come with it, under their hash.
  void keep(const KernelSample& record);
  // Root first. Stays until the next keep().
  const std::vector<CodeLocation>& of(const KernelSample& record);
  // nullptr: none of that hash is kept.
  const std::vector<CodeLocation>* find(uint64_t hash) const;
  // The result of of() for frames that were sent once and did not arrive.
  static const std::vector<CodeLocation> kFramesNotRead;
  // The result of of() for a wait that was only counted.
  static const std::vector<CodeLocation> kWaitNotWalked;

  // An interrupt cannot wait for a page that is not in memory, or not in this process's page tables: a forked
  // child has only those pages of its program's files that it touched itself. Reading it from outside maps
  // it.
  void bring_in(uint64_t address);

  uint64_t not_read() const { return not_read_; }  // frames

 private:
  const python::Layout& layout_;
  memory::RemoteMemory& memory_;
  Ring& ring_;
  std::function<void()> renew_;
  std::unordered_map<uint64_t, std::vector<CodeLocation>> stacks_;  // by hash
  size_t kept_ = 0;                                                 // locations of all of them
  struct KnownCode {
    uint64_t address = 0;
    bool sent = false;
  };
  std::unordered_map<uint32_t, KnownCode> codes_;      // by serial
  std::unordered_map<uint64_t, uint32_t> at_address_;  // the newest serial
  std::deque<std::pair<Nanoseconds, uint32_t>> retired_;
  uint64_t not_read_ = 0;
  Nanoseconds brought_since_ = 0;
  int brought_ = 0;  // since then
};

}  // namespace phlox::sampler
