#include "phlox/exporters/page_waits.h"

#include <utility>

#include "phlox/view/system_calls.h"
#include "phlox/view/whole_waits.h"

namespace phlox::exporters {
namespace {

uint32_t numbered(tsl::robin_map<uint64_t, uint32_t, Spread>& numbers, uint64_t key) {
  return numbers.try_emplace(key, static_cast<uint32_t>(numbers.size())).first->second;
}

}  // namespace

PageWaits::PageWaits(const profile::Profile& profile, std::function<uint32_t(profile::FrameId)> place_of)
    : profile_(profile),
      place_of_(std::move(place_of)),
      machine_(view::machine_of(profile)),
      wakers_(view::wakers_of_whole_waits(profile)),
      classes_(profile),
      alike_(profile) {}

uint32_t PageWaits::of(size_t index) {
  const profile::Sample& sample = profile_.samples()[index];
  if (!view::is_ended_wait(sample) || sample.quality == profile::Quality::rejected) return 0;
  const profile::WakerId waker = index < wakers_.size() ? wakers_[index] : profile::WakerId();
  const uint32_t asked =
      numbered(asked_, uint64_t{sample.stack.value} << 16 | static_cast<uint16_t>(sample.system_call));
  const uint32_t outcome = numbered(outcomes_, uint64_t{sample.wait_target.value} << 32 | waker.value);
  const auto [at, added] = met_.try_emplace(uint64_t{asked} << 32 | outcome, 0);
  if (added) at.value() = number(sample, waker);
  return at->second;
}

uint32_t PageWaits::number(const profile::Sample& sample, profile::WakerId waker) {
  PageWait wait = row(sample, waker);
  if (waits_.size() > kMostInFull && !known_.contains(wait))
    wait = {.words = wait.words, .which = {}, .place = wait.place};
  if (waits_.size() > kMost && !known_.contains(wait)) return 0;
  const auto [at, added] = known_.try_emplace(wait, static_cast<uint32_t>(waits_.size()));
  if (added) waits_.push_back(std::move(wait));
  return at->second;
}

PageWait PageWaits::row(const profile::Sample& sample, profile::WakerId waker) {
  const view::WaitClass waits = classes_.of(sample);
  const std::string call = view::system_call_name(sample.system_call, machine_);
  const uint32_t group = alike_.of(sample.wait_target);
  PageWait wait;
  wait.words = view::wait_words(waits, call, group == 0 ? std::string() : alike_[group].words);
  if (group != 0)
    wait.which = profile::wait_target_words(profile_.wait_targets()[sample.wait_target.value - 1]);
  if (const auto frame = view::asking_frame(profile_, sample.stack)) wait.place = place_of_(frame);
  if (!waker) return wait;
  const profile::Waker& by = profile_.wakers()[waker.value - 1];
  wait.by = static_cast<int32_t>(by.thread.value) - 1;
  if (const auto frame = view::asking_frame(profile_, by.stack)) wait.by_place = place_of_(frame);
  wait.other = by.other;
  return wait;
}

}  // namespace phlox::exporters
