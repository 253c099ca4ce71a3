#include "phlox/importers/speedscope_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/importers/event_numbers.h"
#include "phlox/importers/foreign_rows.h"
#include "phlox/importers/json_input.h"
#include "phlox/importers/thread_name.h"

namespace phlox::importers {
namespace {

constexpr size_t kMostSpeedscopeFrames = 8192;
// A hundred years in nanoseconds: sums with it do not overflow.
constexpr Number kLongestSpeedscopeTime = 3.15e18L;

// A row of the model counts no more samples.
constexpr Number kMostSamples = std::numeric_limits<uint32_t>::max();

// What a weight of 1 is in nanoseconds; 0: it is no time.
Number scale_of(std::string_view unit) {
  constexpr std::pair<std::string_view, Number> kUnits[] = {
      {"nanoseconds", 1}, {"microseconds", 1e3}, {"milliseconds", 1e6}, {"seconds", 1e9}};
  for (const auto& [name, scale] : kUnits) {
    if (unit == name) return scale;
  }
  return 0;
}

class SpeedscopeImport {
 public:
  SpeedscopeImport(const Json& file, profile::Sink& sink)
      : file_(file), rows_(sink, std::string(text(member(&file, "exporter")))), numbers_(sink) {}

  ImportOutcome run() {
    read_frames();
    process_ = rows_.process(0, text(member(&file_, "name")));
    const Json* profiles = member(&file_, "profiles");
    choose_events(profiles);
    for (size_t i = 0; i < length(profiles); ++i) read_profile(element(profiles, i));
    ImportOutcome out =
        rows_.finish(longest_, fmt::format("speedscope: {} profile{} of {} frames", length(profiles),
                                           length(profiles) == 1 ? "" : "s", frames_.size()));
    say(out, refused_, "samples or events made no sense and were left out");
    say(out, weightless_, "samples have no weight and were left out: speedscope refuses such a file");
    say(out, crossed_, "calls ended before calls that they had made: each keeps its own times");
    say(out, open_at_end_, "calls have no end: they last until their profile ends");
    if (numbers_.left_out()) out.warnings.push_back(EventNumbers::kLeftOut);
    say(out, fractions_, "weights have fractions: each was rounded so that their sum stays the same");
    return out;
  }

 private:
  static void say(ImportOutcome& out, uint64_t count, std::string_view what) {
    if (count > 0) out.warnings.push_back(fmt::format("{} {}", count, what));
  }

  // Weights that no row counts as samples, and bytes, are values of an event. Where there is one, times are
  // too.
  void choose_events(const Json* profiles) {
    bool values = false;
    for (size_t i = 0; i < length(profiles); ++i) {
      const Json* profile = element(profiles, i);
      const std::string_view unit = text(member(profile, "unit"));
      const Json* weights = member(profile, "weights");
      // What an event of such a profile counts is at most its whole length.
      const Number whole =
          number(member(profile, "endValue")).value_or(0) - number(member(profile, "startValue")).value_or(0);
      bool large = scale_of(unit) == 0 && text(member(profile, "type")) == "evented" && whole > kMostSamples;
      for (size_t k = 0; scale_of(unit) == 0 && k < length(weights); ++k)
        large = large || number(element(weights, k)).value_or(0) > kMostSamples;
      values = values || unit == "bytes" || large;
    }
    with_events_ = values;
  }

  // 0: the weights of this unit are samples.
  uint16_t event_of(std::string_view unit) {
    if (!with_events_) return 0;
    if (scale_of(unit) > 0) return numbers_.of({"time", profile::Unit::nanoseconds});
    if (unit == "bytes") return numbers_.of({"bytes", profile::Unit::bytes});
    return numbers_.of({"weight", profile::Unit::count});
  }

  void read_frames() {
    const Json* frames = member(member(&file_, "shared"), "frames");
    for (size_t i = 0; i < length(frames); ++i) {
      const Json* row = element(frames, i);
      profile::Frame frame = frame_of_text(text(member(row, "name")));
      if (const auto file = text(member(row, "file")); !file.empty()) {
        frame.file = file;
        if (is_python_source(file)) frame.kind = profile::FrameKind::python;
      }
      if (const int32_t at = line(member(row, "line")); at > 0) frame.line = at;
      frames_.push_back(rows_.interner().frame(frame));
    }
  }

  void read_profile(const Json* profile) {
    const std::string_view unit = text(member(profile, "unit"));
    const Number start = number(member(profile, "startValue")).value_or(0);
    const std::string_view name = text(member(profile, "name"));
    const auto thread = thread_name(name);
    thread_ = thread ? rows_.thread(process_, thread->tid, thread->name) : rows_.thread(process_, 0, name);
    scale_ = scale_of(unit);
    event_ = event_of(unit);
    if (text(member(profile, "type")) == "evented") {
      read_events(member(profile, "events"), start, number(member(profile, "endValue")));
    } else {
      read_samples(member(profile, "samples"), member(profile, "weights"), start);
    }
  }

  void read_samples(const Json* samples, const Json* weights, Number at) {
    for (size_t i = 0; i < length(samples); ++i) {
      const Json* row = element(samples, i);
      // A file without any weights counts its samples.
      const auto told = number(element(weights, i));
      if (!told && length(weights) > 0) {
        ++weightless_;
        continue;
      }
      const Number weight = told.value_or(scale_ == 0 ? 1 : 0);
      profile::StackId stack;
      bool good = weight >= 0;
      for (size_t k = 0; k < std::min(length(row), kMostSpeedscopeFrames); ++k) {
        const auto frame = index_of(element(row, k));
        good = good && frame && *frame < frames_.size();
        if (good) stack = rows_.interner().stack(stack, frames_[*frame]);
      }
      if (!good) {
        ++refused_;
        continue;
      }
      put(stack, at, weight);
      at += weight;
    }
  }

  // Frames that are open, outermost first, each with the stack that ends in it.
  using Open = std::vector<std::pair<uint64_t, profile::StackId>>;

  // What is open from one event to the next is a sample.
  void read_events(const Json* events, Number at, std::optional<Number> end) {
    Open open;
    for (size_t i = 0; i < length(events); ++i) {
      const Json* event = element(events, i);
      const auto frame = index_of(member(event, "frame"));
      const Number time = number(member(event, "at")).value_or(at);
      if (!frame || *frame >= frames_.size() || time < at) {
        ++refused_;
        continue;
      }
      if (!open.empty() && time > at) put(open.back().second, at, time - at);
      at = time;
      if (text(member(event, "type")) == "O" ? !enter(open, *frame) : !leave(open, *frame)) ++refused_;
    }
    open_at_end_ += open.size();
    if (!open.empty() && end && *end > at) put(open.back().second, at, *end - at);
  }

  bool enter(Open& open, uint64_t frame) {
    if (open.size() >= kMostSpeedscopeFrames) return false;
    const profile::StackId parent = open.empty() ? profile::StackId() : open.back().second;
    open.emplace_back(frame, rows_.interner().stack(parent, frames_[frame]));
    return true;
  }

  // The innermost call of that frame ends. Calls that it had made and that go on stay open, one place further
  // out.
  bool leave(Open& open, uint64_t frame) {
    const auto found =
        std::find_if(open.rbegin(), open.rend(), [&](const auto& call) { return call.first == frame; });
    if (found == open.rend()) return false;
    if (found != open.rbegin()) ++crossed_;
    auto at = open.erase(std::next(found).base());
    profile::StackId parent = at == open.begin() ? profile::StackId() : std::prev(at)->second;
    for (; at != open.end(); ++at) parent = at->second = rows_.interner().stack(parent, frames_[at->first]);
    return true;
  }

  // Rounded at both ends, so that the sum of what follows each other is not.
  void put(profile::StackId stack, Number start, Number weight) {
    const Number unit = scale_ == 0 ? 1 : scale_;
    // Where it lies says something of times only.
    if (scale_ == 0) start -= std::floor(start);
    if (weight * unit > kLongestSpeedscopeTime || std::abs(start) * unit > kLongestSpeedscopeTime ||
        std::abs(start + weight) * unit > kLongestSpeedscopeTime) {
      ++refused_;
      return;
    }
    const int64_t from = std::llround(start * unit), to = std::llround((start + weight) * unit);
    profile::Sample sample;
    sample.thread = thread_;
    sample.stack = stack;
    sample.event = event_;
    if (scale_ > 0) {
      sample.start = from;
      sample.wall = to - from;
      longest_ = std::max(longest_, to);
      rows_.sample(sample, 1);
      return;
    }
    fractions_ += weight != std::floor(weight);
    if (event_ == 0) {
      rows_.sample(sample, static_cast<uint64_t>(to - from));
      return;
    }
    sample.value = numbers_.take(static_cast<uint64_t>(to - from));
    rows_.sample(sample, 1);
  }

  const Json& file_;
  ForeignRows rows_;
  EventNumbers numbers_;
  profile::ProcessId process_;
  profile::ThreadId thread_;
  std::vector<profile::FrameId> frames_;
  Number scale_ = 0;  // of the profile: what a weight of 1 is in nanoseconds; 0: it is no time
  uint16_t event_ = 0;
  bool with_events_ = false;
  Nanoseconds longest_ = 0;
  uint64_t refused_ = 0, weightless_ = 0, crossed_ = 0, open_at_end_ = 0, fractions_ = 0;
};

}  // namespace

bool recognise_speedscope(std::span<const std::byte> head) {
  return is_json_with(head, {"$schema"}) &&
         std::string_view(reinterpret_cast<const char*>(head.data()), head.size()).find("speedscope") !=
             std::string_view::npos;
}

Result<ImportOutcome> import_speedscope(Input& input, const ImportOptions&, profile::Sink& sink) {
  const auto file = parse_json(input);
  if (!file) return fail(file);
  if (member(member(&**file, "shared"), "frames") == nullptr)
    return fail(ErrorKind::input, "no speedscope file: it has no shared frames");
  return SpeedscopeImport(**file, sink).run();
}

}  // namespace phlox::importers
