#include "phlox/sampler/code_cache.h"

#include <span>

#include "phlox/sampler/records.h"

namespace phlox::sampler {

namespace {
// Looks after which a code object's pages may have left the snapshot's plan.
constexpr uint64_t kForeseen = 8;
}  // namespace

void CodeCache::want(RemoteAddress code, Snapshot& snapshot) {
  if (last_ != nullptr && last_address_ == code && last_->wanted_at == look_) return;
  const auto found = entries_.find(code.value);
  if (found == entries_.end() || found->second->number == 0 || found->second->wanted_at == look_) return;
  Entry& entry = *found.value();
  entry.wanted_at = look_;
  last_ = &entry;
  last_address_ = code;
  // One small range with co_version proves a code object from 3.12 on: it is asked for as it is needed.
  // Before, many small things lie strewn about, which pages foreseen bring cheaper.
  const auto items = entry.identity.items();
  if (items.size() > 1 && entry.proved_at + kForeseen > look_) return;
  for (const auto& item : items) snapshot.want(item.address, item.size, items.size() == 1);
}

const CodeCache::Entry* CodeCache::find(RemoteAddress code, Snapshot& snapshot) {
  if (last_ != nullptr && last_address_ == code && last_->proved_at == look_) return last_;
  auto& entry = entries_[code.value];
  if (entry == nullptr) entry = std::make_unique<Entry>();
  if (entry->proved_at != look_) {
    if (entry->number == 0 || !entry->identity.holds(snapshot)) {
      auto capture = std::make_unique<python::CodeCapture>();
      if (!python::capture_code(layout_, memory_, code, *capture)) {
        // Nothing is known of this address any more.
        entry->number = 0;
        return nullptr;
      }
      CodeRecord record;
      record.code = next_;
      record.retired = entry->number;
      record.capture = capture.get();
      entry->identity = python::CodeIdentity(layout_, *capture);
      entry->first_instruction = capture->first_instruction;
      if (!ring_.push(std::as_bytes(std::span(&record, 1)), {})) {
        entry->number = 0;  // the consumer never heard of it
        return nullptr;
      }
      (void)capture.release();  // the consumer's
      entry->number = next_++;
    }
    entry->proved_at = look_;
  }
  last_ = entry.get();
  last_address_ = code;
  return last_;
}

}  // namespace phlox::sampler
