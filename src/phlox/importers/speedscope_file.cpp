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

// A row of the model cannot count more samples.
constexpr Number kMostSamples = std::numeric_limits<uint32_t>::max();

// A weight of 1 in nanoseconds; 0 if it is no time.
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
    origin_ = origin_of(profiles);
    for (size_t i = 0; i < length(profiles); ++i) read_profile(element(profiles, i));
    ImportOutcome out =
        rows_.finish(longest_, fmt::format("speedscope: {} profile{} of {} frames", length(profiles),
                                           length(profiles) == 1 ? "" : "s", frames_.size()));
    warn(out, refused_, "sample or event made no sense and was left out",
         "samples or events made no sense and were left out");
    warn(out, weightless_, "sample has no weight and was left out: speedscope refuses such a file",
         "samples have no weight and were left out: speedscope refuses such a file");
    warn(out, stackless_, "weight is of no sample and was left out: speedscope refuses such a file",
         "weights are of no sample and were left out: speedscope refuses such a file");
    warn(out, deep_, "sample has more than 8192 frames: the innermost were left out",
         "samples have more than 8192 frames: their innermost were left out");
    warn(out, unordered_, "event stands after later ones: all were put in the order of time",
         "events stand after later ones: all were put in the order of time");
    warn(out, crossed_, "call ended before a call that it had made: each keeps its own times",
         "calls ended before calls that they had made: each keeps its own times");
    warn(out, open_at_end_, "call has no end: it lasts until its profile ends",
         "calls have no end: they last until their profile ends");
    if (nameless_ > 0) out.warnings.push_back(warning_of_no_names(nameless_));
    if (numbers_.left_out()) out.warnings.push_back(EventNumbers::kLeftOut);
    warn(out, fractions_, "weight has a fraction: it was rounded so that the sum stays the same",
         "weights have fractions: each was rounded so that their sum stays the same");
    return out;
  }

 private:
  // Weights that cannot be a row's number of samples, and bytes, are values of an event. If there are any,
  // times are too.
  void choose_events(const Json* profiles) {
    bool values = false;
    for (size_t i = 0; i < length(profiles); ++i) {
      const Json* profile = element(profiles, i);
      const std::string_view unit = text(member(profile, "unit"));
      const Json* weights = member(profile, "weights");
      // An event of such a profile counts at most the profile's whole length.
      const Number whole =
          number(member(profile, "endValue")).value_or(0) - number(member(profile, "startValue")).value_or(0);
      bool large = scale_of(unit) == 0 && text(member(profile, "type")) == "evented" && whole > kMostSamples;
      for (size_t k = 0; scale_of(unit) == 0 && k < length(weights); ++k)
        large = large || number(element(weights, k)).value_or(0) > kMostSamples;
      values = values || unit == "bytes" || large;
    }
    with_events_ = values;
  }

  // The zero of all times: speedscope shows each profile from its own start, and some times are since 1970.
  static Number origin_of(const Json* profiles) {
    std::optional<Number> origin;
    for (size_t i = 0; i < length(profiles); ++i) {
      const Json* profile = element(profiles, i);
      const Number scale = scale_of(text(member(profile, "unit")));
      const Number first = start_of(profile) * scale;
      if (scale > 0 && (!origin || first < *origin)) origin = first;
    }
    return origin.value_or(0);
  }

  // The start value, or the first event's time if that is earlier.
  static Number start_of(const Json* profile) {
    Number start = number(member(profile, "startValue")).value_or(0);
    const Json* events = member(profile, "events");
    for (size_t i = 0; i < length(events); ++i)
      start = std::min(start, number(member(element(events, i), "at")).value_or(start));
    return start;
  }

  // 0: weights of this unit are samples.
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
      std::string_view name = text(member(row, "name"));
      if (name.empty()) name = kNoName;
      nameless_ += name == kNoName;
      profile::Frame frame = frame_of_text(name);
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
    const std::string_view name = text(member(profile, "name"));
    const auto thread = thread_name(name);
    thread_ = thread ? rows_.thread(process_, thread->tid, thread->name) : rows_.thread(process_, 0, name);
    scale_ = scale_of(unit);
    event_ = event_of(unit);
    weights_ = {};
    base_ = scale_ > 0 ? origin_ / scale_ : 0;
    const Number start = start_of(profile) - base_;
    if (text(member(profile, "type")) == "evented") {
      read_events(member(profile, "events"), start, since_base(member(profile, "endValue")));
    } else {
      read_samples(member(profile, "samples"), member(profile, "weights"), start);
    }
  }

  std::optional<Number> since_base(const Json* time) const {
    const auto given = number(time);
    return given ? std::optional(*given - base_) : std::nullopt;
  }

  void read_samples(const Json* samples, const Json* weights, Number at) {
    if (length(weights) > length(samples)) stackless_ += length(weights) - length(samples);
    for (size_t i = 0; i < length(samples); ++i) {
      const Json* row = element(samples, i);
      // A file without weights counts its samples.
      const auto given = number(element(weights, i));
      if (!given && length(weights) > 0) {
        ++weightless_;
        continue;
      }
      const Number weight = given.value_or(scale_ == 0 ? 1 : 0);
      profile::StackId stack;
      bool good = weight >= 0;
      deep_ += length(row) > kMostSpeedscopeFrames;
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

  // Open frames, outermost first, each with the stack that ends in it.
  using Open = std::vector<std::pair<uint64_t, profile::StackId>>;

  struct Event {
    Number at = 0;
    uint64_t frame = 0;
    bool opens = false;
  };

  // In order of time. An event without a time gets that of the previous one.
  std::vector<Event> ordered(const Json* events, Number at) {
    std::vector<Event> out;
    out.reserve(length(events));
    Number latest = at;
    for (size_t i = 0; i < length(events); ++i) {
      const Json* row = element(events, i);
      const auto frame = index_of(member(row, "frame"));
      const std::string_view type = text(member(row, "type"));
      if (!frame || *frame >= frames_.size() || (type != "O" && type != "C")) {
        ++refused_;
        continue;
      }
      at = since_base(member(row, "at")).value_or(at);
      unordered_ += at < latest;
      latest = std::max(latest, at);
      out.push_back({at, *frame, type == "O"});
    }
    std::stable_sort(out.begin(), out.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
    return out;
  }

  // What is open between two events is a sample.
  void read_events(const Json* events, Number at, std::optional<Number> end) {
    Open open;
    for (const Event& event : ordered(events, at)) {
      if (!open.empty() && event.at > at) put(open.back().second, at, event.at - at);
      at = event.at;
      if (event.opens ? !enter(open, event.frame) : !leave(open, event.frame)) ++refused_;
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

  // Ends the innermost call of that frame. Calls made by it that continue stay open, one level further out.
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

  void put(profile::StackId stack, Number start, Number weight) {
    profile::Sample sample;
    sample.thread = thread_;
    sample.stack = stack;
    sample.event = event_;
    scale_ > 0 ? put_time(sample, start * scale_, weight * scale_) : put_count(sample, weight);
  }

  // Rounds both ends, so that the sum of adjacent samples is not rounded.
  void put_time(profile::Sample& sample, Number start, Number weight) {
    if (weight > kLongestSpeedscopeTime || std::abs(start) > kLongestSpeedscopeTime ||
        std::abs(start + weight) > kLongestSpeedscopeTime) {
      ++refused_;
      return;
    }
    const int64_t from = std::llround(start), to = std::llround(start + weight);
    sample.start = from;
    sample.wall = to - from;
    longest_ = std::max(longest_, to);
    rows_.sample(sample, 1);
  }

  void put_count(profile::Sample& sample, Number weight) {
    fractions_ += weight != std::floor(weight);
    const uint64_t whole = weights_.take(weight);
    if (event_ == 0) {
      rows_.sample(sample, whole);
      return;
    }
    sample.value = numbers_.take(whole);
    rows_.sample(sample, 1);
  }

  const Json& file_;
  ForeignRows rows_;
  EventNumbers numbers_;
  profile::ProcessId process_;
  profile::ThreadId thread_;
  std::vector<profile::FrameId> frames_;
  Number scale_ = 0;  // of the profile: a weight of 1 in nanoseconds; 0: it is no time
  uint16_t event_ = 0;
  bool with_events_ = false;
  Number origin_ = 0;  // of times, in nanoseconds
  Number base_ = 0;    // the same in the profile's unit
  WholeWeights weights_;
  Nanoseconds longest_ = 0;
  uint64_t refused_ = 0, weightless_ = 0, stackless_ = 0, deep_ = 0, crossed_ = 0, unordered_ = 0,
           open_at_end_ = 0, nameless_ = 0, fractions_ = 0;
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
