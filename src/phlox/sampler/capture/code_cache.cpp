#include "phlox/sampler/capture/code_cache.h"

#include <cmath>
#include <span>
#include <utility>

#include "phlox/sampler/observe/records.h"

namespace phlox::sampler {

namespace {
// Per code object, besides its strings and its table: an entry here, a row and its frames in the consumer.
constexpr size_t kOtherBytes = 1024;
// Bytes of code objects copied in one sample, which occupies a CPU meanwhile: about four thousand ordinary
// ones. The next sample copies the others.
constexpr size_t kMostInASample = size_t{8} << 20;
// Samples after which a code object's pages may have left the snapshot's plan.
constexpr uint64_t kForeseen = Snapshot::kForget / 2;
// A code object proved this many times stays: its bytes are prefetched instead of requested each time.
constexpr uint32_t kSettled = 16;
// For a code object of many small items: its share of the recent samples (each counts 7/8 of the next) at
// which prefetching its bytes starts and stops. Prefetching costs about five pages of half a microsecond in
// each sample, needed or not. Otherwise they are read in the sample that needs them, all with one call of 1.5
// us. In a server's worker, the code objects of one sample lie in 23 pages, those of two dozen samples in 68.
constexpr float kStep = 1.0F / 8;
constexpr float kBecomesSteady = 0.45F, kStaysSteady = 0.25F;
constexpr uint64_t kForgotten = 64;

// Looks up bytes in the snapshot, and notes where they are.
struct Noting {
  Snapshot& snapshot;
  std::vector<const std::byte*>& bytes_in_plan;
  bool planned = true;

  const std::byte* find(RemoteAddress address, size_t size) {
    const std::byte* bytes = snapshot.find(address, size);
    planned = planned && bytes != nullptr && snapshot.is_planned(bytes);
    bytes_in_plan.push_back(bytes);
    return bytes;
  }
};
// Whether few samples use it, if every sample covers all threads.
bool is_rare(const CodeCache::Entry& entry, const Snapshot& snapshot) {
  return snapshot.for_all() && !entry.is_steady && entry.identity.items().size() > 1;
}
}  // namespace

// Freeing takes too long for a sample, so the ring's reader does it.
void CodeCache::forget_all() {
  auto all = std::make_shared<Entries>();
  all->swap(entries_);
  Entries& entries = *all;
  Handed handed{nullptr, std::move(all)};
  if (!ring_.push_with(handed, CodesGoneRecord())) {
    entries.swap(entries_);  // retried at a later sample
    return;
  }
  bytes_ = 0;
  last_ = nullptr;
  ++generation_;
}

void CodeCache::begin_sample(RemoteAddress interpreter, std::optional<uint64_t> epoch) {
  if (entries_.size() > limits_.codes || bytes_ > limits_.bytes) forget_all();
  ++sample_number_;
  is_full_ = false;
  sent_in_sample_ = 0;
  proved_.clear();
  if (distrusted_) epoch.reset();
  // Both words only grow. If one fell, another interpreter has the same address.
  if (epoch && interpreter == interpreter_ && *epoch < last_epoch_) forget_epochs();
  interpreter_ = interpreter;
  epoch_ = epoch;
  if (epoch) last_epoch_ = *epoch;
}

void CodeCache::keep_proved() {
  if (!epoch_) return;
  for (Entry* entry : proved_) {
    if (!entry->follows) {
      distrusted_ = true;
      forget_epochs();
      break;
    }
    entry->interpreter = interpreter_;
    entry->epoch = *epoch_;
  }
  proved_.clear();
}

void CodeCache::forget_epochs() {
  for (auto& [address, entry] : entries_) entry->interpreter = {};
}

CodeCache::Entry* CodeCache::want(RemoteAddress code, Snapshot& snapshot) {
  if (last_ == nullptr || last_address_ != code) {
    const auto found = entries_.find(code.value);
    if (found == entries_.end()) return nullptr;
    last_ = found.value().get();
    last_address_ = code;
  }
  want(*last_, snapshot);
  return last_;
}

// Before 3.12: many small scattered items.
void CodeCache::want_many(Entry& entry, Snapshot& snapshot) {
  if (is_rare(entry, snapshot)) {
    const ReadAs in_passing(snapshot, Snapshot::kNobody);
    for (const auto& item : entry.identity.items()) snapshot.want(item.address, item.size, true);
    return;
  }
  const bool in_use = entry.used_at + kForeseen > snapshot.sample_number();
  if (snapshot.for_all() ? entry.plan == snapshot.plan() : in_use) return;
  for (const auto& item : entry.identity.items()) snapshot.want(item.address, item.size, false);
}

void CodeCache::want(Entry& entry, Snapshot& snapshot) {
  if (entry.number == 0 || entry.number == kNotRead || stands(entry)) return;
  if (entry.identity.items().size() > 1) return want_many(entry, snapshot);
  // From 3.12 on, one small range with co_version proves a code object: it is read on demand until it turns
  // out to stay.
  const bool in_use = entry.used_at + kForeseen > snapshot.sample_number();
  if (in_use && entry.streak > kSettled) return;
  const bool in_passing = !(in_use && entry.streak == kSettled);
  for (const auto& item : entry.identity.items()) snapshot.want(item.address, item.size, in_passing);
}

void CodeCache::note_use(Entry& entry, uint64_t sample) {
  const uint64_t samples = sample - std::exchange(entry.used_at, sample);
  entry.streak = samples < kForeseen ? entry.streak + 1 : 1;
  entry.share = samples < kForgotten ? entry.share * std::pow(1 - kStep, static_cast<float>(samples)) : 0;
  entry.share += kStep;
  entry.is_steady = entry.share > (entry.is_steady ? kStaysSteady : kBecomesSteady);
}

bool CodeCache::holds(Entry& entry, Snapshot& snapshot) {
  const auto items = entry.identity.items();
  if (snapshot.for_all() && entry.plan == snapshot.plan()) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (!entry.identity.matches(items[i], entry.bytes_in_plan[i])) return false;
    }
    return true;
  }
  entry.plan = 0;
  entry.bytes_in_plan.clear();
  std::optional<ReadAs> in_passing;
  if (is_rare(entry, snapshot)) in_passing.emplace(snapshot, Snapshot::kNobody);
  Noting noting{snapshot, entry.bytes_in_plan};
  if (!entry.identity.holds(noting)) return false;
  if (noting.planned) entry.plan = snapshot.plan();
  return true;
}

// False: there is no room.
bool CodeCache::send(Entry& entry, std::unique_ptr<python::CodeCapture> capture) {
  sent_in_sample_ += capture->bytes.capacity();
  if (sent_in_sample_ > kMostInASample) return false;
  // The consumer may free it as soon as it is sent.
  python::CodeIdentity identity(layout_, *capture);
  size_t bytes = kOtherBytes;
  for (const auto& item : identity.items()) bytes += item.size;
  for (const auto& part : capture->parts) bytes += part.content;
  const RemoteAddress first_instruction = capture->first_instruction;
  const bool follows = !epoch_ || python::epoch_follows(layout_, *capture, *epoch_);
  CodeRecord record;
  record.code = next_;
  record.retired = entry.last_sent;
  Handed handed{std::move(capture), nullptr};
  if (!ring_.push_with(handed, record)) return false;
  entry.identity = std::move(identity);
  entry.plan = 0;
  entry.first_instruction = first_instruction;
  entry.interpreter = {};
  entry.follows = follows;
  bytes_ += bytes - std::exchange(entry.bytes, bytes);
  entry.number = entry.last_sent = next_++;
  entry.streak = 0;
  return true;
}

const CodeCache::Entry* CodeCache::find(RemoteAddress code, Snapshot& snapshot, Entry* known) {
  if (last_ != nullptr && last_address_ == code && last_->proved_at == sample_number_) return last_;
  Entry* entry = known;
  if (entry == nullptr) {
    auto& slot = entries_[code.value];
    if (slot == nullptr) slot = std::make_unique<Entry>();
    entry = slot.get();
  }
  if (entry->proved_at != sample_number_ && !stands(*entry)) {
    if (entry->number == 0 || entry->number == kNotRead || !holds(*entry, snapshot)) {
      auto capture = std::make_unique<python::CodeCapture>();
      // Nothing is known about this address any more.
      entry->number = 0;
      entry->interpreter = {};
      if (!is_full_ && !python::capture_code(layout_, memory_, code, *capture)) return nullptr;
      is_full_ = is_full_ || !send(*entry, std::move(capture));
      if (is_full_) {
        entry->number = kNotRead;
        ++not_read_;
      }
    }
    if (epoch_ && entry->number != kNotRead) proved_.push_back(entry);
    if (entry->used_at != snapshot.sample_number()) note_use(*entry, snapshot.sample_number());
  }
  entry->proved_at = sample_number_;
  last_ = entry;
  last_address_ = code;
  return last_;
}

}  // namespace phlox::sampler
