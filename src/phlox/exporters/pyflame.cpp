#include "phlox/exporters/pyflame.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "phlox/exporters/collapsed.h"
#include "phlox/profile/counters.h"

namespace phlox::exporters {
namespace {

using profile::GilState;
using profile::Profile;
using profile::Sample;

// Without a GIL, the running threads are what Pyflame would have seen.
bool holds_interpreter(const Sample& sample) {
  return sample.gil_state == GilState::holds ||
         (sample.gil_state == GilState::not_applicable && sample.cpu_state == profile::CpuState::running);
}

std::string frame_text(const profile::Frame& frame, bool line_numbers) {
  if (frame.kind == profile::FrameKind::marker) return escape_collapsed(frame.function);
  std::string text = escape_collapsed(frame.file) + ":" + escape_collapsed(frame.function);
  if (line_numbers) text += ":" + std::to_string(frame.line);
  return text;
}

// Leaf first. Parents have smaller ids than their children, so the loop ends.
std::vector<std::string> frames_of(const Profile& profile, profile::StackId stack, bool line_numbers) {
  std::vector<std::string> frames;
  while (stack) {
    const profile::Stack& row = profile.stack(stack);
    frames.push_back(frame_text(profile.frame(row.frame), line_numbers));
    if (row.parent >= stack) break;
    stack = row.parent;
  }
  return frames;
}

// Root first, built once for each stack.
class StackTexts {
 public:
  StackTexts(const Profile& profile, bool line_numbers, bool ends_in_separator)
      : profile_(profile), line_numbers_(line_numbers), ends_(ends_in_separator) {}
  const std::string& of(profile::StackId stack) {
    std::string& text = texts_[stack.value];
    if (text.empty()) {
      const auto frames = frames_of(profile_, stack, line_numbers_);
      for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
        if (!ends_ && frame != frames.rbegin()) text += ';';
        text += *frame;
        if (ends_) text += ';';
      }
    }
    return text;
  }

 private:
  const Profile& profile_;
  bool line_numbers_;
  bool ends_;
  std::unordered_map<uint32_t, std::string> texts_;
};

int64_t meta_number(const Profile& profile, std::string_view key) {
  const auto found = profile.meta().find(key);
  return found == profile.meta().end() ? 0 : std::strtoll(found->second.c_str(), nullptr, 10);
}

}  // namespace

void write_pyflame(const Profile& profile, const PyflameOptions& options, std::ostream& out) {
  StackTexts texts(profile, options.line_numbers, false);
  std::map<std::string, uint64_t> counts;
  uint64_t failed = 0, holding = 0;
  for (const Sample& sample : profile.samples()) {
    if (holds_interpreter(sample)) holding += sample.samples;
    if (sample.quality == profile::Quality::rejected) {
      failed += sample.samples;
    } else if (sample.samples > 0 && sample.stack && (options.threads || holds_interpreter(sample))) {
      counts[texts.of(sample.stack)] += sample.samples;
    }
  }
  const auto moments =
      static_cast<uint64_t>(std::max<int64_t>(profile.counter(profile::counters::kTicks), 0));
  const uint64_t idle = moments > holding + failed ? moments - holding - failed : 0;
  if (!options.threads && !options.exclude_idle && idle > 0) out << "(idle) " << idle << "\n";
  if (failed > 0) out << "(failed) " << failed << "\n";
  for (const auto& [stack, count] : counts) out << stack << ' ' << count << '\n';
}

void write_pyflame_flamechart(const Profile& profile, const PyflameOptions& options, std::ostream& out) {
  StackTexts texts(profile, options.line_numbers, true);
  struct Moment {
    Nanoseconds time = 0;
    const std::string* stack = nullptr;
  };
  static const std::string kFailed = "(failed)", kIdle = "(idle)";
  std::vector<Moment> moments;
  for (const Sample& sample : profile.samples()) {
    const bool rejected = sample.quality == profile::Quality::rejected;
    if (!options.threads && !rejected && !holds_interpreter(sample)) continue;
    if (!rejected && !sample.stack) continue;
    const std::string* text = rejected ? &kFailed : &texts.of(sample.stack);
    // A span of equal samples counts as its samples, evenly spaced.
    for (uint32_t i = 1; i <= sample.samples; ++i) {
      moments.push_back({sample.start + sample.wall * i / sample.samples, text});
    }
  }
  std::stable_sort(moments.begin(), moments.end(),
                   [](const Moment& a, const Moment& b) { return a.time < b.time; });
  // From the monotonic clock to calendar time.
  const Nanoseconds start = meta_number(profile, "start_monotonic_ns");
  const Nanoseconds shift = meta_number(profile, "start_unix_ns") - start;
  // One of the two is 0.
  const int64_t rate_mhz =
      profile.counter(profile::counters::kAskedRate) + profile.counter(profile::counters::kMostRate);
  const Nanoseconds interval = rate_mhz > 0 ? kSecond * 1000 / rate_mhz : kSecond / 100;
  const auto write = [&](Nanoseconds time, const std::string& text) {
    out << (time + shift) / 1000 << '\n' << text << '\n';
  };
  const bool fill = !options.threads && !options.exclude_idle;
  Nanoseconds last = start;
  const auto fill_until = [&](Nanoseconds end) {
    // Samples lie up to one and a half intervals apart; in a wider gap no thread held the GIL.
    for (last += interval; fill && last + interval / 2 < end; last += interval) write(last, kIdle);
  };
  for (const Moment& moment : moments) {
    fill_until(moment.time);
    write(moment.time, *moment.stack);
    last = moment.time;
  }
  fill_until(meta_number(profile, "end_monotonic_ns"));
}

void write_pyflame_dump(const Profile& profile, const PyflameOptions& options, std::ostream& out) {
  // The last sample of each thread.
  std::map<uint32_t, const Sample*> last;
  for (const Sample& sample : profile.samples()) {
    if (sample.samples > 0) last[sample.thread.value] = &sample;
  }
  bool first = true;
  for (const auto& [id, sample] : last) {
    const profile::Thread& thread = profile.thread(profile::ThreadId(id));
    if (thread.python_id == 0 && !sample->stack) continue;
    if (!first) out << '\n';
    first = false;
    out << thread.python_id << (holds_interpreter(*sample) ? "*" : "") << ":\n";
    for (const std::string& frame : frames_of(profile, sample->stack, options.line_numbers))
      out << frame << '\n';
  }
}

}  // namespace phlox::exporters
