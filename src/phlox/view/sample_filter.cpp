#include "phlox/view/sample_filter.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "phlox/view/endpoints.h"
#include "phlox/view/work.h"

namespace phlox::view {

using namespace profile;

namespace {

uint8_t states_of(const Sample& sample) {
  auto bit = [](StateChoice choice) { return static_cast<uint8_t>(choice); };
  unsigned states = 0;
  if (sample.cpu_state == CpuState::running) states |= bit(StateChoice::running);
  if (sample.cpu_state == CpuState::runnable) states |= bit(StateChoice::runnable);
  if (sample.cpu_state == CpuState::blocked) {
    states |= bit(StateChoice::blocked);
    if (sample.gil_state != GilState::waits) states |= bit(StateChoice::idle);
  }
  if (sample.gil_state == GilState::holds) states |= bit(StateChoice::gil_holds);
  if (sample.gil_state == GilState::waits) states |= bit(StateChoice::gil_waits);
  return static_cast<uint8_t>(states);
}

// RE2, because the target chooses the names: std::regex recurses for each character and can overflow the
// stack.
Result<void> read_pattern(const std::optional<std::string>& text, std::optional<RE2>& pattern) {
  if (!text) return {};
  pattern.emplace(*text, RE2::Quiet);
  if (pattern->ok()) return {};
  return fail(ErrorKind::usage, fmt::format("cannot read the expression '{}': {}", *text, pattern->error()),
              "for a name that has such characters in it, put a backslash before them");
}

bool is_of_chosen(const Endpoints& endpoints, const std::vector<bool>& chosen, const Sample& sample) {
  const uint32_t endpoint = endpoints.of(sample);
  return endpoint == Endpoints::kNotRead ? chosen.back() : chosen[endpoint];
}

}  // namespace

Nanoseconds recording_start(const Profile& profile) {
  for (const Event& event : profile.events()) {
    if (event.kind == EventKind::recording_start) return event.time;
  }
  Nanoseconds start = profile.samples().empty() ? 0 : profile.samples().front().start;
  for (const Sample& sample : profile.samples()) start = std::min(start, sample.start);
  return start;
}

Result<SampleFilter> SampleFilter::make(const Profile& profile, const Choices& choices) {
  return make(profile, choices, false);
}

Result<SampleFilter> SampleFilter::make_judging(const Profile& profile, const Choices& choices) {
  return make(profile, choices, true);
}

Result<SampleFilter> SampleFilter::make(const Profile& profile, const Choices& choices, bool judging) {
  SampleFilter filter;
  filter.states_ = choices.states;
  filter.weight_ = choices.weight;
  const Nanoseconds start = recording_start(profile);
  auto since_start = [&](Nanoseconds t) {
    Nanoseconds sum = 0;
    return __builtin_add_overflow(start, t, &sum) ? std::numeric_limits<Nanoseconds>::max() : sum;
  };
  filter.from_ = choices.from > 0 ? since_start(choices.from) : std::numeric_limits<Nanoseconds>::min();
  filter.to_ = since_start(choices.to);
  filter.threads_.assign(profile.threads().size(), true);
  std::optional<RE2> pattern, endpoints;
  if (const auto read = read_pattern(choices.thread_regex, pattern); !read) return fail(read);
  if (const auto read = read_pattern(choices.endpoint_regex, endpoints); !read) return fail(read);
  if (endpoints) {
    filter.endpoints_ = std::make_shared<Endpoints>(profile);
    filter.chosen_ = chosen_endpoints(profile, *filter.endpoints_, *choices.endpoint_regex);
  }
  for (size_t i = 0; i < profile.threads().size(); ++i) {
    const Thread& thread = profile.threads()[i];
    bool passes = true;
    if (choices.pid) {
      passes = thread.process && thread.process.value <= profile.processes().size() &&
               profile.process(thread.process).pid == *choices.pid;
    }
    if (passes && pattern) {
      passes = RE2::PartialMatch(thread.name, *pattern) || RE2::PartialMatch(thread.kernel_name, *pattern) ||
               RE2::PartialMatch(std::to_string(thread.tid), *pattern);
    }
    filter.threads_[i] = passes;
  }
  if (judging || choices.show != Show::everything) {
    filter.rule_ = std::make_shared<WorkRule>(profile);
    filter.show_ = choices.show;
  }
  return filter;
}

SampleFilter::Part SampleFilter::part(const Sample& sample) const {
  Part part = part_of_everything(sample);
  if (part.passes && !is_shown(part.doing, show_)) part.passes = false;
  return part;
}

SampleFilter::Part SampleFilter::part_of_everything(const Sample& sample) const {
  Part part;
  if (!sample.thread || sample.thread.value > threads_.size() || !threads_[sample.thread.value - 1])
    return part;
  if (endpoints_ && !is_of_chosen(*endpoints_, chosen_, sample)) return part;
  if (states_ != 0 && (states_ & states_of(sample)) == 0) return part;
  const Nanoseconds end = sample.start + sample.wall;
  const Nanoseconds from = std::max(sample.start, from_), to = std::min(end, to_);
  if (sample.wall == 0 ? sample.start < from_ || sample.start >= to_ : from >= to) return part;
  part.passes = true;
  if (rule_) part.doing = rule_->of(sample);
  part.start = from;
  part.wall = sample.wall == 0 ? 0 : to - from;
  part.cpu = sample.cpu;
  part.samples = sample.samples;
  part.value = sample.value;
  if (part.wall < sample.wall) {
    const double share = double(part.wall) / double(sample.wall);
    part.cpu = std::llround(double(sample.cpu) * share);
    part.value = std::llround(double(sample.value) * share);
    part.samples =
        std::min<int64_t>(part.samples, std::max<int64_t>(1, std::llround(double(sample.samples) * share)));
  }
  switch (weight_) {
    case Weight::wall:
      part.weight = part.wall;
      break;
    case Weight::cpu:
      part.weight = part.cpu;
      break;
    case Weight::samples:
      part.weight = part.samples;
      break;
    case Weight::count:
    case Weight::bytes:
      part.weight = part.value;
      break;
  }
  return part;
}

}  // namespace phlox::view
