#include "phlox/top/model.h"

#include <algorithm>
#include <vector>

namespace phlox::top {
namespace {

// Copies samples into a separate profile, with the stacks and frames that they need.
class Extract {
 public:
  Extract(const profile::Profile& from, profile::Profile& into) : from_(from), into_(into) {
    for (const auto& [key, value] : from.meta()) into.emit_meta(key, value);
    for (const profile::Counter& counter : from.counters()) into.emit(counter);
    put_all(from.processes(), [&](auto id, auto& row) { into.emit(profile::ProcessId(id), row); });
    put_all(from.threads(), [&](auto id, auto& row) { into.emit(profile::ThreadId(id), row); });
    put_all(from.modules(), [&](auto id, auto& row) { into.emit(profile::ModuleId(id), row); });
  }

  void put(profile::Sample sample) {
    sample.stack = stack(sample.stack);
    sample.wait_target = wait_target(sample.wait_target);
    sample.waker = {};
    into_.emit(profile::SampleId(++samples_), sample);
  }

 private:
  template <class Rows, class Put>
  static void put_all(const Rows& rows, Put&& put) {
    for (size_t i = 0; i < rows.size(); ++i) put(static_cast<uint32_t>(i + 1), rows[i]);
  }

  // From the innermost frame outwards to one already copied, and back.
  profile::StackId stack(profile::StackId id) {
    std::vector<profile::StackId> missing;
    profile::StackId parent;
    for (; id && id.value <= from_.stacks().size(); id = from_.stack(id).parent) {
      if (const auto found = stacks_.find(id.value); found != stacks_.end()) {
        parent = found->second;
        break;
      }
      missing.push_back(id);
    }
    for (size_t i = missing.size(); i-- > 0;) {
      const profile::StackId fresh(static_cast<uint32_t>(into_.stacks().size() + 1));
      into_.emit(fresh, {parent, frame(from_.stack(missing[i]).frame)});
      stacks_[missing[i].value] = fresh;
      parent = fresh;
    }
    return parent;
  }

  profile::WaitTargetId wait_target(profile::WaitTargetId id) {
    if (!id || id.value > from_.wait_targets().size()) return {};
    const auto [at, added] = wait_targets_.try_emplace(id.value, profile::WaitTargetId());
    if (added) {
      at.value() = profile::WaitTargetId(static_cast<uint32_t>(into_.wait_targets().size() + 1));
      into_.emit(at.value(), from_.wait_targets()[id.value - 1]);
    }
    return at->second;
  }

  profile::FrameId frame(profile::FrameId id) {
    const auto [at, added] = frames_.try_emplace(id.value, profile::FrameId());
    if (added) {
      at.value() = profile::FrameId(static_cast<uint32_t>(into_.frames().size() + 1));
      into_.emit(at.value(), from_.frame(id));
    }
    return at->second;
  }

  const profile::Profile& from_;
  profile::Profile& into_;
  uint32_t samples_ = 0;
  tsl::robin_map<uint32_t, profile::StackId, Spread> stacks_;
  tsl::robin_map<uint32_t, profile::FrameId, Spread> frames_;
  tsl::robin_map<uint32_t, profile::WaitTargetId, Spread> wait_targets_;
};

// The part of a sample from that moment on.
profile::Sample clipped(profile::Sample sample, Nanoseconds from) {
  if (sample.start >= from || sample.wall <= 0) return sample;
  const Nanoseconds rest = sample.start + sample.wall - from;
  sample.cpu = static_cast<Nanoseconds>(double(sample.cpu) * double(rest) / double(sample.wall));
  sample.start = from;
  sample.wall = rest;
  return sample;
}

bool is_picked(const Pick& pick, const profile::Profile& profile, const profile::Sample& sample) {
  if (pick.thread && sample.thread != *pick.thread) return false;
  if (!pick.process) return true;
  return sample.thread && sample.thread.value <= profile.threads().size() &&
         profile.thread(sample.thread).process == *pick.process;
}

}  // namespace

Seen picked(const Seen& whole, const Pick& pick) {
  Seen seen;
  seen.lately_span = whole.lately_span;
  seen.all_span = whole.all_span;
  seen.left_out = whole.left_out;
  const auto extract = [&](const profile::Profile& from, profile::Profile& into) {
    Extract part(from, into);
    for (const profile::Sample& sample : from.samples()) {
      if (is_picked(pick, from, sample)) part.put(sample);
    }
  };
  extract(whole.lately, seen.lately);
  extract(whole.all, seen.all);
  return seen;
}

void Model::receive(const profile::AnyRow& row) {
  const std::lock_guard lock(mutex_);
  if (const auto* sample = std::get_if<profile::Numbered<profile::SampleId>>(&row)) {
    add(sample->id, sample->value);
  } else if (!std::holds_alternative<profile::Numbered<profile::WakerId>>(row) &&
             !std::holds_alternative<profile::Numbered<profile::TraceTimeId>>(row) &&
             !std::holds_alternative<profile::Unnumbered<profile::Event>>(row)) {
    rows_.receive(row);  // no view shows wakers, traces or events, and their number has no limit
  }
}

void Model::add(profile::SampleId id, const profile::Sample& sample) {
  if (!first_ || sample.start < *first_) first_ = sample.start;
  last_ = std::max(last_, sample.start + sample.wall);
  if (lately_.empty() || id.value > lately_.back().id.value) {
    lately_.push_back({id, sample});
    add(sample, sample.wall, sample.cpu, sample.samples);
  } else {
    const auto row =
        std::lower_bound(lately_.begin(), lately_.end(), id,
                         [](const Row& one, profile::SampleId of) { return one.id.value < of.value; });
    // A row grows for at most a second, and stays longer than that.
    if (row == lately_.end() || row->id != id) return;
    add(sample, sample.wall - row->sample.wall, sample.cpu - row->sample.cpu,
        sample.samples - std::min(sample.samples, row->sample.samples));
    row->sample = sample;
  }
  const Nanoseconds keep = last_ - window_ - 2 * kSecond;
  while (!lately_.empty() && lately_.front().sample.start + lately_.front().sample.wall < keep)
    lately_.pop_front();
}

void Model::add(const profile::Sample& sample, Nanoseconds wall, Nanoseconds cpu, uint32_t samples) {
  const Key key{uint64_t{sample.thread.value} << 32 | sample.stack.value,
                static_cast<uint64_t>(sample.cpu_state) | static_cast<uint64_t>(sample.gil_state) << 8 |
                    uint64_t{sample.collecting} << 16 | static_cast<uint64_t>(sample.quality) << 24 |
                    uint64_t{static_cast<uint16_t>(sample.system_call)} << 32};
  if (sums_.size() >= most_sums_ && !sums_.contains(key)) {
    left_out_ += wall;
    return;
  }
  const auto [at, fresh] = sums_.try_emplace(key, sample);
  profile::Sample& sum = at.value();
  if (fresh) {
    sum.wall = sum.cpu = sum.samples = 0;
    sum.wait_target = {};  // several targets
  }
  sum.wall += wall;
  sum.cpu += cpu;
  sum.samples += samples;
}

Seen Model::seen() const {
  const std::lock_guard lock(mutex_);
  Seen seen;
  if (!first_) return seen;
  const Nanoseconds from = std::max(last_ - window_, *first_);
  seen.lately_span = last_ - from;
  seen.all_span = last_ - *first_;
  seen.left_out = left_out_;
  Extract lately(rows_, seen.lately);
  for (const Row& row : lately_) {
    if (row.sample.start + row.sample.wall > from) lately.put(clipped(row.sample, from));
  }
  Extract all(rows_, seen.all);
  for (const auto& [key, sum] : sums_) all.put(sum);
  return seen;
}

}  // namespace phlox::top
