#include "phlox/report/hot_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/report/finding_limits.h"
#include "phlox/report/table.h"
#include "phlox/report/waits.h"
#include "phlox/view/native_frames.h"

namespace phlox::report {
namespace {

constexpr double kHotFunction = 0.15;  // of the CPU time
constexpr double kHotLine = 0.15;      // of the CPU time

class HotFindings {
 public:
  HotFindings(const profile::Profile& profile, const Analysis& analysis, const Report& report)
      : profile_(profile), analysis_(analysis), report_(report) {}

  std::vector<Finding> all() const {
    uint64_t on_cpu = 0;
    for (const ThreadRow& thread : report_.threads) on_cpu += thread.on_cpu;
    std::vector<Finding> found;
    if (on_cpu < kFewSamples) return found;
    std::vector<const Entry*> entries;
    for (const Entry& entry : analysis_.functions) {
      if (time_share(cpu_of(entry), analysis_.cpu) >= kHotFunction &&
          part_of_recording(report_, cpu_of(entry)) >= kWorthSaying)
        entries.push_back(&entry);
    }
    std::sort(entries.begin(), entries.end(),
              [&](const Entry* a, const Entry* b) { return cpu_of(*a) > cpu_of(*b); });
    for (const Entry* entry : entries) {
      const double share = time_share(cpu_of(*entry), analysis_.cpu);
      if (is_proved(share)) found.push_back(finding_of(*entry, share));
    }
    return found;
  }

 private:
  // If there is no Python function, the native one is named.
  int64_t cpu_of(const Entry& entry) const {
    return profile_.frame(entry.frame).kind == profile::FrameKind::python ? entry.self_cpu : entry.alone_cpu;
  }

  // The lower end of its interval must be at least half of the share: a few long runs between two samples may
  // all be in one place by chance.
  bool is_proved(double share) const {
    const double cpu = double(analysis_.cpu);
    return analysis_.cpu_squares > 0 && least_share(share, cpu * cpu / analysis_.cpu_squares) >= share / 2;
  }

  Finding finding_of(const Entry& entry, double share) const {
    const auto label = view::function_label(profile_, entry.frame);
    std::string text =
        fmt::format("{} of the CPU time is spent in {} itself{}", share_words(share), plain(label.name),
                    label.file.empty() ? "" : " (" + location_words(label.file, label.line) + ")");
    Numbers numbers = {{"cpu_share", share}, {"cpu_ns", double(cpu_of(entry))}};
    Names names = {{"function", label.whole_name()}, {"file", label.file}};
    const Entry* line = hottest_line(entry);
    const double line_share = line != nullptr ? time_share(cpu_of(*line), analysis_.cpu) : 0;
    const bool is_line = line_share >= kHotLine && is_proved(line_share);
    if (is_line) {
      text += fmt::format(", {} in line {}", share_words(line_share), line->line);
      numbers.insert(numbers.end(), {{"line", double(line->line)}, {"line_cpu_share", line_share}});
    }
    if (const CodeBeneath& code = is_line ? line->code : entry.code; !code.library.empty()) {
      text += fmt::format("; {} of the CPU time {} is in C code of {}: --native shows it",
                          share_words(code.share), is_line ? "on this line" : "in this function",
                          plain(code.library));
      numbers.emplace_back("c_code_share", code.share);
      names.emplace_back("c_code_module", code.library);
    }
    if (entry.foreign * 2 > entry.self.weight) add_native(entry, text, names);
    return {"hot_function", part_of_recording(report_, cpu_of(entry)), std::move(text), std::move(numbers),
            std::move(names)};
  }

  // If most of the function's own time is not the interpreter's.
  void add_native(const Entry& entry, std::string& text, Names& names) const {
    const profile::FrameRole role =
        entry.native ? profile_.frame(entry.native).role : profile::FrameRole::none;
    if (!entry.native || role == view::kInterpreterCode) return;
    const NativeBeneath native = native_beneath(profile_, entry.native);
    text += fmt::format("; {} of its time is in native code, {} in {}{}",
                        share_words(time_share(entry.foreign, entry.self.weight)),
                        share_words(time_share(entry.native_weight, entry.self.weight)),
                        fitted_name(plain(native.name), kWidestName),
                        native.module.empty() ? "" : " (" + plain(native.module) + ")");
    names.insert(names.end(), {{"native_function", native.full}, {"native_module", native.module}});
  }

  // The hottest line of this function.
  const Entry* hottest_line(const Entry& function) const {
    const uint32_t wanted = analysis_.function_of[function.frame.value];
    const Entry* hottest = nullptr;
    for (const Entry& line : analysis_.lines) {
      if (analysis_.function_of[line.frame.value] != wanted) continue;
      if (hottest == nullptr || cpu_of(line) > cpu_of(*hottest)) hottest = &line;
    }
    return hottest;
  }

  const profile::Profile& profile_;
  const Analysis& analysis_;
  const Report& report_;
};

}  // namespace

std::vector<Finding> hot_findings(const profile::Profile& profile, const Analysis& analysis,
                                  const Report& report) {
  return HotFindings(profile, analysis, report).all();
}

}  // namespace phlox::report
