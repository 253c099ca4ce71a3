// The code object at an address: resolved once, and proved in every sample to be still the same, because
// addresses are reused (78 % of the samples of a program that makes functions met one). There are two proofs:
// the interpreter's epoch (python::code_epoch) is that of an accepted sample that proved it, or its bytes are
// unchanged. Called by the worker that holds the turn lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <tsl/robin_map.h>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/code_object.h"
#include "phlox/python/layout.h"
#include "phlox/sampler/capture/snapshot.h"
#include "phlox/sampler/observe/ring.h"

namespace phlox::sampler {

class CodeCache {
 public:
  struct Entry {
    // Number of the code object among all that were found, from 1; kNotRead; 0: not known.
    uint32_t number = 0;
    uint32_t last_sent = 0;  // number of the last one at this address that the consumer knows
    size_t bytes = 0;        // that it uses, here and there
    uint64_t proved_at = 0;  // sample
    uint64_t used_at = 0;    // the snapshot's sample in which it was proved last
    uint32_t streak = 0;     // proofs since it was last out of use
    float share = 0;         // of the recent samples of its process's threads, the part that met it
    bool is_steady = false;  // it is met so often that its bytes are prefetched
    // The interpreter's epoch in the last accepted sample that proved it; no interpreter: none yet.
    RemoteAddress interpreter;
    uint64_t epoch = 0;
    bool follows = true;  // python::epoch_follows(), as of when it was copied
    RemoteAddress first_instruction;
    python::CodeIdentity identity;
    // The place of its bytes in each sample of this plan of the snapshot; 0: not all in the plan.
    uint64_t plan = 0;
    std::vector<const std::byte*> bytes_in_plan;
  };

  using Entries = tsl::robin_map<uint64_t, std::unique_ptr<Entry>>;

  // A target makes as many code objects as it likes. Beyond this number, and beyond this many bytes here and
  // in the consumer, all are dropped; an object that is met again is sent again.
  struct Limits {
    size_t codes = 200'000;
    size_t bytes = size_t{128} << 20;
  };

  CodeCache(const python::Layout& layout, memory::RemoteMemory& memory, Ring& ring, Limits limits)
      : layout_(layout), memory_(memory), ring_(ring), limits_(limits) {}
  CodeCache(const python::Layout& layout, memory::RemoteMemory& memory, Ring& ring)
      : CodeCache(layout, memory, ring, Limits()) {}

  // A new sample of a thread of this interpreter, with its epoch in this sample (none: there is no such
  // word).
  void begin_sample(RemoteAddress interpreter = {}, std::optional<uint64_t> epoch = {});
  // The sample is accepted: everything proved in it stays valid as long as the epoch does.
  void keep_proved();
  // Earlier epochs are invalid: there was no sample for too long, and the interpreter may have been ended and
  // restarted.
  void forget_epochs();

  // Prepares the snapshot for find() of a code object that is already known. Returns its entry, for find();
  // nullptr: not known. Entries stay in place until generation() changes, as it may in begin_sample().
  Entry* want(RemoteAddress code, Snapshot& snapshot);
  void want(Entry& entry, Snapshot& snapshot);
  // The entry for the code object at this address, proved in this sample; nullptr if it cannot be read.
  // Number kNotRead: the consumer is late, and has no room for another.
  const Entry* find(RemoteAddress code, Snapshot& snapshot, Entry* known = nullptr);

  uint64_t resolved() const { return next_ - 1; }
  uint64_t generation() const { return generation_; }
  uint64_t not_read() const { return not_read_; }

 private:
  bool stands(const Entry& entry) const {
    return epoch_ && entry.number != 0 && entry.epoch == *epoch_ && entry.interpreter == interpreter_;
  }

  void forget_all();
  bool send(Entry& entry, std::unique_ptr<python::CodeCapture> capture);

  static void want_many(Entry& entry, Snapshot& snapshot);
  static void note_use(Entry& entry, uint64_t sample);
  // Whether its bytes are unchanged.
  static bool holds(Entry& entry, Snapshot& snapshot);

  const python::Layout& layout_;
  memory::RemoteMemory& memory_;
  Ring& ring_;
  RemoteAddress interpreter_;
  std::optional<uint64_t> epoch_;
  uint64_t last_epoch_ = 0;
  bool distrusted_ = false;     // the word does not have the value that the layout predicts
  std::vector<Entry*> proved_;  // in this sample, by their bytes
  Entries entries_;
  Limits limits_;
  size_t bytes_ = 0;  // of all entries
  uint64_t generation_ = 0;
  uint64_t not_read_ = 0;
  size_t sent_in_sample_ = 0;   // bytes
  bool is_full_ = false;        // in this sample nothing more is sent
  RemoteAddress last_address_;  // neighbouring frames are often of one function
  Entry* last_ = nullptr;
  uint64_t sample_number_ = 0;
  uint32_t next_ = 1;
};

}  // namespace phlox::sampler
