#include "phlox/importers/firefox_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "phlox/importers/event_numbers.h"
#include "phlox/importers/foreign_rows.h"
#include "phlox/importers/json_input.h"

namespace phlox::importers {
namespace {

constexpr Number kMillisecond = 1e6L;
// A hundred years in nanoseconds.
constexpr Number kLongestFirefoxTime = 3.15e18L;

enum class FirefoxWeights { counts, time, bytes };

// Stacks, frames, functions and names, which a thread has for itself or (since version 56) shares with all
// others.
class Tables {
 public:
  Tables(const Json& file, const Json* thread, ForeignRows& rows)
      : file_(file), thread_(thread), shared_(member(&file, "shared")), rows_(rows) {
    strings_ = table("stringArray");
    if (strings_ == nullptr) strings_ = table("stringTable");
    stacks_ = table("stackTable");
    frames_ = table("frameTable");
    functions_ = table("funcTable");
    resources_ = table("resourceTable");
    sources_ = table("sources");
    read_stacks();
  }

  bool is_known(uint64_t row) const { return row < ids_.size() && good_[row]; }
  profile::StackId stack(uint64_t row) const { return ids_[row]; }
  uint64_t refused() const { return refused_; }

 private:
  const Json* table(const char* name) const {
    const Json* own = member(thread_, name);
    return own != nullptr ? own : member(shared_, name);
  }

  std::string_view name_of(const Json* index) const {
    const auto row = index_of(index);
    return row ? text(element(strings_, *row)) : std::string_view();
  }

  // A row's prefix comes before it.
  void read_stacks() {
    const Json* prefixes = member(stacks_, "prefix");
    const Json* frames = member(stacks_, "frame");
    const size_t count = length(frames);
    frame_ids_.resize(length(member(frames_, "func")));
    for (size_t i = 0; i < count; ++i) {
      const auto frame = index_of(element(frames, i));
      const auto prefix = index_of(element(prefixes, i));
      const bool good = frame && *frame < frame_ids_.size() && (!prefix || is_known(*prefix));
      const auto id =
          good ? rows_.interner().stack(prefix ? ids_[*prefix] : profile::StackId(), frame_of(*frame))
               : profile::StackId();
      ids_.push_back(id);
      good_.push_back(good);
      refused_ += !good;
    }
  }

  profile::FrameId frame_of(uint64_t row) {
    auto& known = frame_ids_[row];
    if (!known) known = rows_.interner().frame(read_frame(row));
    return *known;
  }

  profile::Frame read_frame(uint64_t row) const {
    const uint64_t function = index_of(element(member(frames_, "func"), row)).value_or(~uint64_t{0});
    profile::Frame frame;
    frame.qualified_name = name_of(element(member(functions_, "name"), function));
    frame.function = frame.qualified_name;
    frame.file = file_of(function);
    frame.line = line(element(member(frames_, "line"), row));
    frame.first_line = line(element(member(functions_, "lineNumber"), function));
    frame.kind = kind_of(row, frame);
    if (frame.kind == profile::FrameKind::python) {
      const size_t dot = frame.qualified_name.rfind('.');
      if (dot != std::string::npos && dot + 1 < frame.qualified_name.size())
        frame.function = frame.qualified_name.substr(dot + 1);
    }
    if (frame.kind == profile::FrameKind::native) add_module(row, function, frame);
    return frame;
  }

  std::string_view file_of(uint64_t function) const {
    const auto source = index_of(element(member(functions_, "source"), function));
    if (source) return name_of(element(member(sources_, "filename"), *source));
    return name_of(element(member(functions_, "fileName"), function));
  }

  profile::FrameKind kind_of(uint64_t row, const profile::Frame& frame) const {
    const auto category = index_of(element(member(frames_, "category"), row));
    const Json* categories = member(member(&file_, "meta"), "categories");
    const std::string_view name =
        category ? text(member(element(categories, *category), "name")) : std::string_view();
    const std::string& words = frame.qualified_name;
    if (name == "Python" || is_python_source(frame.file)) return profile::FrameKind::python;
    if (name == "Kernel") return profile::FrameKind::kernel;
    if (frame.file.empty() &&
        ((words.starts_with('(') && words.ends_with(')')) || words == "<native>" || words == "<GC>"))
      return profile::FrameKind::marker;
    return profile::FrameKind::native;
  }

  void add_module(uint64_t row, uint64_t function, profile::Frame& frame) const {
    const auto resource = index_of(element(member(functions_, "resource"), function));
    const auto library = resource ? index_of(element(member(resources_, "lib"), *resource)) : std::nullopt;
    // Up to version 41 each thread had its own list of libraries.
    const Json* libraries = member(thread_, "libs");
    if (libraries == nullptr) libraries = member(&file_, "libs");
    const Json* lib = library ? element(libraries, *library) : nullptr;
    if (lib == nullptr) return;
    frame.module = rows_.module(text(member(lib, "path")), text(member(lib, "codeId")));
    frame.address = index_of(element(member(frames_, "address"), row)).value_or(0);
  }

  const Json& file_;
  const Json* thread_;
  const Json* shared_;
  ForeignRows& rows_;
  const Json *strings_ = nullptr, *stacks_ = nullptr, *frames_ = nullptr, *functions_ = nullptr,
             *resources_ = nullptr, *sources_ = nullptr;
  std::vector<profile::StackId> ids_;
  std::vector<bool> good_;
  std::vector<std::optional<profile::FrameId>> frame_ids_;
  uint64_t refused_ = 0;
};

class FirefoxImport {
 public:
  FirefoxImport(const Json& file, profile::Sink& sink)
      : file_(file), meta_(member(&file, "meta")), rows_(sink, recorder()), numbers_(sink) {}

  ImportOutcome run() {
    const Json* threads = member(&file_, "threads");
    for (size_t i = 0; i < length(threads); ++i)
      with_values_ = with_values_ || has_values(member(element(threads, i), "samples"));
    origin_ = origin_of(threads);
    std::optional<Tables> shared;
    if (member(member(&file_, "shared"), "stackTable") != nullptr) shared.emplace(file_, nullptr, rows_);
    for (size_t i = 0; i < length(threads); ++i) {
      const Json* thread = element(threads, i);
      if (member(thread, "stackTable") != nullptr) {
        const Tables own(file_, thread, rows_);
        refused_ += own.refused();
        read_thread(thread, own);
      } else if (shared) {
        read_thread(thread, *shared);
      }
    }
    if (shared) refused_ += shared->refused();
    ImportOutcome out =
        rows_.finish(latest_, fmt::format("Firefox Profiler, version {}: {} samples of {} threads{}",
                                          index_of(member(meta_, "preprocessedProfileVersion")).value_or(0),
                                          rows_.samples(), length(threads),
                                          timed_ ? "" : "; their weights tell of no time, and are counted"));
    warn(out, refused_, "sample or stack made no sense and was left out",
         "samples or stacks made no sense and were left out");
    warn(out, freed_,
         "weight is below zero, memory that was freed or a difference of two profiles: --event 'NAME (less)' "
         "shows what became less",
         "weights are below zero, memory that was freed or a difference of two profiles: --event 'NAME "
         "(less)' "
         "shows what became less");
    warn(out, weightless_, "sample has no weight, although others have one: it counts as 1",
         "samples have no weight, although others have one: it counts as 1");
    warn(out, fractions_, "weight has a fraction: rounded so that the sum stays the same",
         "weights have fractions: rounded so that the sum stays the same");
    if (numbers_.left_out()) out.warnings.push_back(EventNumbers::kLeftOut);
    return out;
  }

 private:
  std::string recorder() const {
    const auto from = text(member(meta_, "importedFrom"));
    return std::string(from.empty() ? text(member(meta_, "product")) : from);
  }

  // "4711", "4711.2", 4711.
  static int32_t leading_number(const Json* value) {
    if (const auto whole = index_of(value)) return *whole <= 0x7fffffff ? static_cast<int32_t>(*whole) : 0;
    const std::string_view words = text(value);
    int32_t number = 0;
    std::from_chars(words.data(), words.data() + words.size(), number);
    return std::max(number, 0);
  }

  FirefoxWeights weights_of(const Json* samples) const {
    const std::string_view type = text(member(samples, "weightType"));
    if (type == "tracing-ms") return FirefoxWeights::time;
    return type.empty() || type == "samples" ? FirefoxWeights::counts : FirefoxWeights::bytes;
  }

  // A unit of threadCPUDelta in nanoseconds; 0 if it is no time.
  Number cpu_unit() const {
    const std::string_view unit = text(member(member(meta_, "sampleUnits"), "threadCPUDelta"));
    return unit == "ns" ? 1 : unit == "\xc2\xb5s" || unit == "us" ? 1e3 : 0;
  }

  void read_thread(const Json* thread, const Tables& tables) {
    const Json* samples = member(thread, "samples");
    const Json* stacks = member(samples, "stack");
    const auto process =
        rows_.process(leading_number(member(thread, "pid")), text(member(thread, "processName")));
    const auto id =
        rows_.thread(process, leading_number(member(thread, "tid")), text(member(thread, "name")));
    const FirefoxWeights weights = weights_of(samples);
    const Json* weights_there = member(samples, "weight");
    const Number unit = cpu_unit();
    Number time = 0;
    for (size_t i = 0; i < length(stacks); ++i) {
      if (const auto at = number(element(member(samples, "time"), i))) {
        time = *at;
      } else {
        time += number(element(member(samples, "timeDeltas"), i)).value_or(0);
      }
      const Json* stack = element(stacks, i);
      if (stack->IsNull()) continue;
      const auto row = index_of(stack);
      profile::Sample sample;
      sample.thread = id;
      // The CPU time until the next sample is stored with that sample.
      const Number cpu = number(element(member(samples, "threadCPUDelta"), i + 1)).value_or(0) * unit;
      const auto stated = number(element(weights_there, i));
      weightless_ += !stated && length(weights_there) > 0;
      const Number weight = stated.value_or(1);
      const bool good =
          row && tables.is_known(*row) && cpu >= 0 && cpu <= kLongestFirefoxTime &&
          (weights != FirefoxWeights::time || std::abs(weight) * kMillisecond <= kLongestFirefoxTime) &&
          std::abs(time - origin_) * kMillisecond <= kLongestFirefoxTime;
      if (!good) {
        ++refused_;
        continue;
      }
      sample.stack = tables.stack(*row);
      sample.start = std::llround((time - origin_) * kMillisecond);
      sample.cpu = std::llround(cpu);
      put(sample, weight, weights);
    }
  }

  // Weights that cannot be a row's number of samples, and bytes, are values of an event. If one weight is,
  // all are.
  bool has_values(const Json* samples) const {
    if (weights_of(samples) == FirefoxWeights::bytes) return true;
    const bool is_count = weights_of(samples) == FirefoxWeights::counts;
    const Json* weights = member(samples, "weight");
    for (size_t i = 0; i < length(weights); ++i) {
      const Number weight = number(element(weights, i)).value_or(0);
      if (weight < 0 || (is_count && weight > std::numeric_limits<uint32_t>::max())) return true;
    }
    return false;
  }

  // Times are relative to the recording's start; some files have times since 1970, which no recording holds.
  Number origin_of(const Json* threads) const {
    constexpr Number kNoBeginning = 5e17L / kMillisecond;
    std::optional<Number> first;
    for (size_t i = 0; i < length(threads); ++i) {
      const Json* samples = member(element(threads, i), "samples");
      const Json* times = member(samples, "time");
      const auto at = number(element(length(times) > 0 ? times : member(samples, "timeDeltas"), 0));
      if (at && (!first || *at < *first)) first = at;
    }
    return first && *first > kNoBeginning ? *first : 0;
  }

  uint16_t event_of(FirefoxWeights weights, bool less) {
    if (!with_values_) return 0;
    const bool is_time = weights == FirefoxWeights::time, is_count = weights == FirefoxWeights::counts;
    const std::string name = is_time ? "time" : is_count ? "weight" : "bytes";
    const auto unit = is_time    ? profile::Unit::nanoseconds
                      : is_count ? profile::Unit::count
                                 : profile::Unit::bytes;
    // Numbered first so that it is the one shown, whichever comes first in the file.
    const uint16_t more = numbers_.of({name, unit});
    return less ? numbers_.of({name + std::string(profile::kLess), unit}) : more;
  }

  // Freed memory has a negative weight.
  void put(profile::Sample& sample, Number weight, FirefoxWeights weights) {
    sample.event = event_of(weights, weight < 0);
    freed_ += weight < 0;
    uint64_t samples = 1;
    if (weights == FirefoxWeights::time) {
      sample.wall = std::llround(std::abs(weight) * kMillisecond);
      timed_ |= sample.wall > 0;
    } else {
      fractions_ += weight != std::floor(weight);
      const uint64_t whole = (weight < 0 ? less_ : weights_).take(std::abs(weight));
      if (with_values_) {
        sample.value = numbers_.take(whole);
      } else {
        samples = whole;
      }
    }
    latest_ = std::max(latest_, sample.start + sample.wall);
    if (samples > 0) rows_.sample(sample, samples);
  }

  const Json& file_;
  const Json* meta_;
  ForeignRows rows_;
  EventNumbers numbers_;
  Nanoseconds latest_ = 0;
  bool timed_ = false, with_values_ = false;
  Number origin_ = 0;            // of times, in milliseconds
  WholeWeights weights_, less_;  // less_: negative ones
  uint64_t refused_ = 0, freed_ = 0, weightless_ = 0, fractions_ = 0;
};

}  // namespace

bool recognise_firefox(std::span<const std::byte> head) {
  return is_json_with(head, {"meta", "preprocessedProfileVersion"});
}

Result<ImportOutcome> import_firefox(Input& input, const ImportOptions&, profile::Sink& sink) {
  const auto file = parse_json(input);
  if (!file) return fail(file);
  const Json* meta = member(&**file, "meta");
  if (member(meta, "version") != nullptr && member(meta, "preprocessedProfileVersion") == nullptr) {
    return fail(ErrorKind::input, "what Firefox itself records is no processed profile",
                "open it with profiler.firefox.com, and save it there");
  }
  if (member(&**file, "threads") == nullptr) {
    return fail(ErrorKind::input, "no processed profile of the Firefox Profiler: it has no threads");
  }
  return FirefoxImport(**file, sink).run();
}

}  // namespace phlox::importers
