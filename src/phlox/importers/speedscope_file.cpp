#include "phlox/importers/speedscope_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "phlox/importers/foreign_rows.h"
#include "phlox/importers/json_input.h"
#include "phlox/importers/thread_name.h"

namespace phlox::importers {
namespace {

constexpr size_t kMostFrames = 8192;
// A hundred years in nanoseconds: sums with it do not overflow.
constexpr double kLongest = 3.15e18;

// What a weight of 1 is in nanoseconds; 0: it is no time.
double scale_of(std::string_view unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"nanoseconds", 1}, {"microseconds", 1e3}, {"milliseconds", 1e6}, {"seconds", 1e9}};
  for (const auto& [name, scale] : kUnits) {
    if (unit == name) return scale;
  }
  return 0;
}

class SpeedscopeImport {
 public:
  SpeedscopeImport(const Json& file, profile::Sink& sink)
      : file_(file), rows_(sink, std::string(text(member(&file, "exporter")))) {}

  ImportOutcome run() {
    read_frames();
    process_ = rows_.process(0, text(member(&file_, "name")));
    const Json* profiles = member(&file_, "profiles");
    for (size_t i = 0; i < length(profiles); ++i) read_profile(element(profiles, i));
    ImportOutcome out = rows_.finish(static_cast<Nanoseconds>(longest_),
                                     fmt::format("speedscope: {} profile{} of {} frames", length(profiles),
                                                 length(profiles) == 1 ? "" : "s", frames_.size()));
    if (refused_ > 0)
      out.warnings.push_back(fmt::format("{} samples or events made no sense and were left out", refused_));
    return out;
  }

 private:
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
    const auto scale = scale_of(text(member(profile, "unit")));
    const double start = number(member(profile, "startValue")).value_or(0);
    const std::string_view name = text(member(profile, "name"));
    const auto thread = thread_name(name);
    thread_ = thread ? rows_.thread(process_, thread->tid, thread->name) : rows_.thread(process_, 0, name);
    if (text(member(profile, "type")) == "evented") {
      read_events(member(profile, "events"), scale, start);
    } else {
      read_samples(member(profile, "samples"), member(profile, "weights"), scale, start);
    }
  }

  void read_samples(const Json* samples, const Json* weights, double scale, double at) {
    for (size_t i = 0; i < length(samples); ++i) {
      const Json* row = element(samples, i);
      const double weight = number(element(weights, i)).value_or(scale == 0 ? 1 : 0);
      profile::StackId stack;
      bool good = weight >= 0;
      for (size_t k = 0; k < std::min(length(row), kMostFrames); ++k) {
        const auto frame = index_of(element(row, k));
        good = good && frame && *frame < frames_.size();
        if (good) stack = rows_.interner().stack(stack, frames_[*frame]);
      }
      if (!good) {
        ++refused_;
        continue;
      }
      put(stack, at, weight, scale);
      at += weight;
    }
  }

  // What is open from one event to the next is a stretch.
  void read_events(const Json* events, double scale, double at) {
    std::vector<std::pair<uint64_t, profile::StackId>> open;
    for (size_t i = 0; i < length(events); ++i) {
      const Json* event = element(events, i);
      const auto frame = index_of(member(event, "frame"));
      const double time = number(member(event, "at")).value_or(at);
      if (!frame || *frame >= frames_.size() || time < at) {
        ++refused_;
        continue;
      }
      if (!open.empty() && time > at) put(open.back().second, at, time - at, scale);
      at = time;
      if (text(member(event, "type")) == "O") {
        if (open.size() < kMostFrames) {
          const profile::StackId parent = open.empty() ? profile::StackId() : open.back().second;
          open.emplace_back(*frame, rows_.interner().stack(parent, frames_[*frame]));
        } else {
          ++refused_;
        }
      } else if (!open.empty() && open.back().first == *frame) {
        open.pop_back();
      } else {
        ++refused_;
      }
    }
  }

  void put(profile::StackId stack, double start, double weight, double scale) {
    if (weight * std::max(scale, 1.0) > kLongest || std::abs(start) * scale > kLongest) {
      ++refused_;
      return;
    }
    profile::Sample sample;
    sample.thread = thread_;
    sample.stack = stack;
    sample.start = std::llround(start * scale);
    sample.wall = std::llround(weight * scale);
    longest_ = std::max(longest_, (start + weight) * scale);
    rows_.sample(sample, scale == 0 ? static_cast<uint64_t>(std::llround(weight)) : 1);
  }

  const Json& file_;
  ForeignRows rows_;
  profile::ProcessId process_;
  profile::ThreadId thread_;
  std::vector<profile::FrameId> frames_;
  double longest_ = 0;
  uint64_t refused_ = 0;
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
  if (member(member(&*file, "shared"), "frames") == nullptr)
    return fail(ErrorKind::input, "no speedscope file: it has no shared frames");
  return SpeedscopeImport(*file, sink).run();
}

}  // namespace phlox::importers
