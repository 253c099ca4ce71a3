#include "phlox/view/empty_view.h"

#include <fmt/format.h>

#include <algorithm>

namespace phlox::view {

using namespace profile;

namespace {

std::string seconds(Nanoseconds time) {
  return fmt::format("{:.4g} s", static_cast<double>(time) * 1e-9);
}

Nanoseconds recording_end(const Profile& profile) {
  Nanoseconds end = 0;
  for (const Sample& sample : profile.samples()) end = std::max(end, sample.start + sample.wall);
  for (const Event& event : profile.events()) {
    if (event.kind == EventKind::recording_end) end = std::max(end, event.time);
  }
  return end;
}

std::string thread_names(const Profile& profile) {
  constexpr size_t kNamed = 5;
  std::string names;
  const size_t count = profile.threads().size();
  for (size_t i = 0; i < std::min(count, kNamed); ++i)
    names += (i == 0 ? "" : ", ") + thread_label(profile.threads()[i]);
  if (count > kNamed) names += fmt::format(" and {} more", count - kNamed);
  return names;
}

}  // namespace

std::optional<std::string> why_empty(const Profile& profile, const Choices& choices) {
  if (profile.samples().empty()) return "no sample was taken: the recording is empty";
  const auto filter = SampleFilter::make(profile, choices);
  if (!filter) return {};
  bool passes = false;
  for (const Sample& sample : profile.samples()) {
    const auto part = filter->part(sample);
    if (part.passes && part.weight > 0) return {};
    passes = passes || part.passes;
  }
  const Nanoseconds length = recording_end(profile) - recording_start(profile);
  if (choices.from >= length) {
    return fmt::format("--time begins at {}, but the recording ends at {}", seconds(choices.from),
                       seconds(length));
  }
  if (passes && choices.weight == Weight::cpu)
    return "the samples that pass these choices used no CPU time: --weight wall shows where they waited";
  if (passes) return "the samples that pass these choices weigh nothing";
  return fmt::format("no sample of the recording passes these choices; its threads: {}",
                     thread_names(profile));
}

}  // namespace phlox::view
