#include "phlox/report/sample_crossings.h"

#include <algorithm>

#include "phlox/view/whole_waits.h"

namespace phlox::report {
namespace {

// Rows ordered by time.
std::vector<uint32_t> in_order(const std::vector<profile::Sample>& samples) {
  std::vector<uint32_t> order(samples.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  auto earlier = [&](uint32_t a, uint32_t b) { return samples[a].start < samples[b].start; };
  if (!std::is_sorted(order.begin(), order.end(), earlier))
    std::stable_sort(order.begin(), order.end(), earlier);
  return order;
}

}  // namespace

Crossings crossings_of(const profile::Profile& profile, const view::SampleFilter& filter,
                       const std::vector<uint32_t>& node_of) {
  const bool exact = view::waits_are_exact(profile);
  const auto& samples = profile.samples();
  Crossings crossings(profile.threads().size());
  for (const uint32_t i : in_order(samples)) {
    const profile::Sample& sample = samples[i];
    if (!sample.thread || sample.thread.value > profile.threads().size()) continue;
    if (exact &&
        (sample.cpu_state == profile::CpuState::blocked || sample.cpu_state == profile::CpuState::runnable))
      continue;
    const auto part = filter.part(sample);
    if (part.passes && part.weight == 0) continue;
    if (part.passes && sample.samples == 0) {
      crossings.pass(sample.thread.value, double(part.weight));
      continue;
    }
    const bool has_stack =
        sample.quality != profile::Quality::rejected && sample.stack.value < node_of.size();
    const uint32_t node = !part.passes ? kNotChosen : has_stack ? node_of[sample.stack.value] : 0;
    crossings.add(sample.thread.value, part.passes ? part.start : sample.start, node,
                  part.passes ? double(part.weight) : 0,
                  part.passes ? static_cast<uint64_t>(std::max<int64_t>(1, part.samples)) : 1);
  }
  return crossings;
}

}  // namespace phlox::report
