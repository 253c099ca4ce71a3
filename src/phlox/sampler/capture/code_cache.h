// Which code object lies at an address: resolved once, and proved at every look to be the same one still,
// because addresses are used again (78 % of looks at a program that makes functions met one). Two proofs: the
// interpreter's epoch (python::code_epoch) is that of a look that counted and proved it, or its bytes are
// what they were. Called by the worker that holds the turn lock.
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
#include "phlox/sampler/capture/ring.h"
#include "phlox/sampler/capture/snapshot.h"

namespace phlox::sampler {

class CodeCache {
 public:
  struct Entry {
    uint32_t number = 0;     // of the code object among all that were met, from 1; kNotRead; 0: not known
    uint32_t last_sent = 0;  // number of the last one of this address that the consumer knows
    size_t bytes = 0;        // that it takes, here and there
    uint64_t proved_at = 0;  // look
    uint64_t used_at = 0;    // the snapshot's look in which it was proved last
    uint32_t streak = 0;     // proofs since it was last out of use
    float share = 0;         // of the looks at the threads of its process, lately, that met it
    bool is_steady = false;  // it is met so often that its bytes are foreseen
    // The interpreter's epoch as of the last look that counted and proved it; no interpreter: none yet.
    RemoteAddress interpreter;
    uint64_t epoch = 0;
    bool follows = true;  // python::epoch_follows(), as of when it was copied
    RemoteAddress first_instruction;
    python::CodeIdentity identity;
    // Where its bytes lie in each look of this plan of the snapshot; 0: not all in the plan.
    uint64_t plan = 0;
    std::vector<const std::byte*> bytes_in_plan;
  };

  using Entries = tsl::robin_map<uint64_t, std::unique_ptr<Entry>>;

  // A target makes as many code objects as it likes: of so many, and of so many bytes, here and in the
  // consumer, all are forgotten, and whichever is met again is sent again.
  struct Limits {
    size_t codes = 200'000;
    size_t bytes = size_t{128} << 20;
  };

  CodeCache(const python::Layout& layout, memory::RemoteMemory& memory, Ring& ring, Limits limits)
      : layout_(layout), memory_(memory), ring_(ring), limits_(limits) {}
  CodeCache(const python::Layout& layout, memory::RemoteMemory& memory, Ring& ring)
      : CodeCache(layout, memory, ring, Limits()) {}

  // A new look at a thread of this interpreter, with its epoch as of this look (none: there is no such word).
  void begin_look(RemoteAddress interpreter = {}, std::optional<uint64_t> epoch = {});
  // The look counts: what was proved in it stands as long as the epoch does.
  void keep_proved();
  // Epochs of before say nothing any more: too long nobody looked, and the interpreter may have been ended
  // and begun again.
  void forget_epochs();

  // Tells the snapshot what find() will need of a code object that is known already. Gives its entry, for
  // find(); nullptr: not known. Entries stay where they are until generation() changes, as it may with
  // begin_look().
  Entry* want(RemoteAddress code, Snapshot& snapshot);
  void want(Entry& entry, Snapshot& snapshot);
  // The entry for the code object at this address, proved in this look; nullptr when it cannot be read.
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
  static void note_use(Entry& entry, uint64_t look);
  // Its bytes are what they were.
  static bool holds(Entry& entry, Snapshot& snapshot);

  const python::Layout& layout_;
  memory::RemoteMemory& memory_;
  Ring& ring_;
  RemoteAddress interpreter_;
  std::optional<uint64_t> epoch_;
  uint64_t last_epoch_ = 0;
  bool distrusted_ = false;     // the word is not what the layout says
  std::vector<Entry*> proved_;  // in this look, by their bytes
  Entries entries_;
  Limits limits_;
  size_t bytes_ = 0;  // of all entries
  uint64_t generation_ = 0;
  uint64_t not_read_ = 0;
  size_t sent_in_look_ = 0;     // bytes
  bool is_full_ = false;        // in this look nothing more is sent
  RemoteAddress last_address_;  // neighbouring frames are often of one function
  Entry* last_ = nullptr;
  uint64_t look_ = 0;
  uint32_t next_ = 1;
};

}  // namespace phlox::sampler
