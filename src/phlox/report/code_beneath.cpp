#include "phlox/report/code_beneath.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "phlox/report/estimate.h"
#include "phlox/view/native_frames.h"

namespace phlox::report {
namespace {

// For one function or line: samples that found it on a CPU, and how many of them in each library.
struct SampleCounts {
  uint64_t all = 0;
  std::map<std::string, uint64_t> in;
};

CodeBeneath most_of(const SampleCounts& samples) {
  const auto most = std::max_element(samples.in.begin(), samples.in.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == samples.in.end() || !are_most(most->second, samples.all)) return {};
  return {most->first, double(most->second) / double(samples.all)};
}

}  // namespace

bool are_most(uint64_t some, uint64_t samples) {
  return samples > 0 && least_share(double(some) / double(samples), double(samples)) > 0.5;
}

void put_code_beneath(const profile::Profile& profile, const view::SampleFilter& filter, Analysis& analysis) {
  const auto& samples = profile.samples();
  if (std::none_of(samples.begin(), samples.end(), [](const auto& one) { return bool(one.code_file); }))
    return;
  std::vector<SampleCounts> by_frame(profile.frames().size() + 1);
  for (const profile::Sample& sample : samples) {
    const bool has_leaf = sample.stack && sample.stack.value <= profile.stacks().size() &&
                          sample.quality != profile::Quality::rejected;
    if (!has_leaf || sample.cpu_state != profile::CpuState::running || sample.samples == 0) continue;
    const auto part = filter.part(sample);
    if (!part.passes) continue;
    SampleCounts& counts = by_frame[profile.stack(sample.stack).frame.value];
    counts.all += static_cast<uint64_t>(part.samples);
    const std::string library = view::code_library(profile, sample);
    if (!library.empty()) counts.in[library] += static_cast<uint64_t>(part.samples);
  }
  std::vector<SampleCounts> functions(analysis.functions.size() + 1);
  using Line = std::tuple<uint32_t, std::string_view, int32_t>;
  std::map<Line, SampleCounts> lines;
  const auto line_of = [&](uint32_t frame, int32_t line) {
    return Line(analysis.function_of[frame], profile.frames()[frame - 1].file, line);
  };
  for (uint32_t frame = 1; frame < by_frame.size(); ++frame) {
    const SampleCounts& counts = by_frame[frame];
    if (counts.all == 0) continue;
    for (SampleCounts* sum : {&functions[analysis.function_of[frame]],
                              &lines[line_of(frame, profile.frames()[frame - 1].line)]}) {
      sum->all += counts.all;
      for (const auto& [library, some] : counts.in) sum->in[library] += some;
    }
  }
  for (size_t i = 0; i < analysis.functions.size(); ++i)
    analysis.functions[i].code = most_of(functions[i + 1]);
  for (Entry& line : analysis.lines) {
    const auto found = lines.find(line_of(line.frame.value, line.line));
    if (found != lines.end()) line.code = most_of(found->second);
  }
}

}  // namespace phlox::report
