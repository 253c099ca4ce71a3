#include "phlox/exporters/speedscope.h"

#include <fmt/format.h>
#include <rapidjson/ostreamwrapper.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "phlox/exporters/words.h"

namespace phlox::exporters {
namespace {

using Json = rapidjson::Writer<rapidjson::OStreamWrapper>;

struct Passed {
  Nanoseconds start = 0;
  int64_t weight = 0;
  profile::StackId stack;
};

void put_key(Json& json, std::string_view key) {
  json.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
}

void put(Json& json, std::string_view key, const std::string& text) {
  put_key(json, key);
  std::string valid = displayable(text);  // JSON must be UTF-8
  json.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

void put(Json& json, std::string_view key, int64_t value) {
  put_key(json, key);
  json.Int64(value);
}

// Samples that pass, by thread, in the order of time.
std::vector<std::vector<Passed>> passed_by_thread(const profile::Profile& profile,
                                                  const profile::SampleFilter& filter) {
  std::vector<std::vector<Passed>> threads(profile.threads().size());
  for (const profile::Sample& sample : profile.samples()) {
    profile::SampleFilter::Part part = filter.part(sample);
    if (part.passes && part.weight > 0)
      threads[sample.thread.value - 1].push_back({part.start, part.weight, sample.stack});
  }
  for (std::vector<Passed>& samples : threads) {
    std::stable_sort(samples.begin(), samples.end(),
                     [](const Passed& a, const Passed& b) { return a.start < b.start; });
  }
  return threads;
}

// Which of the threads that are written computes most.
size_t busiest(const profile::Profile& profile, const profile::SampleFilter& filter,
               const std::vector<std::vector<Passed>>& threads) {
  std::vector<Nanoseconds> computing(threads.size(), 0);
  for (const profile::Sample& sample : profile.samples()) {
    const bool waits =
        sample.cpu_state == profile::CpuState::blocked && sample.gil_state != profile::GilState::waits;
    if (const auto part = filter.part(sample); part.passes && !waits)
      computing[sample.thread.value - 1] += part.wall;
  }
  size_t index = 0, written = 0;
  Nanoseconds most = -1;
  for (size_t i = 0; i < threads.size(); ++i) {
    if (threads[i].empty()) continue;
    if (computing[i] > most) {
      most = computing[i];
      index = written;
    }
    ++written;
  }
  return index;
}

// "libfoo: src/run.rs": the format has no place for a library.
std::string native_location(const profile::Label& label) {
  if (label.kind != profile::FrameKind::native || label.module.empty()) return label.file;
  return label.file.empty() ? label.module : label.module + ": " + label.file;
}

// Frames of the recording that look alike in this view are one; written to `frames` of the file as they are
// numbered.
class FrameTable {
 public:
  FrameTable(const profile::Profile& profile, bool by_line) {
    numbers_.reserve(profile.frames().size());
    for (uint32_t id = 1; id <= profile.frames().size(); ++id) {
      profile::FrameId frame(id);
      profile::Label label = by_line ? line_label(profile, frame) : function_label(profile, frame);
      auto [at, added] = known_.try_emplace(
          {label.kind, label.whole_name(), label.file.empty() ? label.module : label.file, label.line},
          labels_.size());
      if (added) labels_.push_back(std::move(label));
      numbers_.push_back(at->second);
    }
  }

  size_t number(profile::FrameId frame) const { return numbers_[frame.value - 1]; }

  void write(Json& json) const {
    put_key(json, "frames");
    json.StartArray();
    for (const profile::Label& label : labels_) {
      json.StartObject();
      put(json, "name", label.whole_name());
      if (!label.file.empty() || label.kind == profile::FrameKind::native)
        put(json, "file", native_location(label));
      if (label.line > 0) put(json, "line", int64_t{label.line});
      json.EndObject();
    }
    json.EndArray();
  }

 private:
  std::map<std::tuple<profile::FrameKind, std::string, std::string, int32_t>, size_t> known_;
  std::vector<profile::Label> labels_;
  std::vector<size_t> numbers_;
};

// Root first, as numbers of frames.
void put_stack(Json& json, const profile::Profile& profile, const FrameTable& frames, profile::StackId id) {
  std::vector<size_t> path;
  while (id && id.value <= profile.stacks().size()) {
    const profile::Stack& stack = profile.stack(id);
    if (stack.frame && stack.frame.value <= profile.frames().size())
      path.push_back(frames.number(stack.frame));
    // Parents come before children: whatever a file says, this ends.
    id = stack.parent < id ? stack.parent : profile::StackId();
  }
  json.StartArray();
  for (size_t i = path.size(); i-- > 0;) json.Uint64(path[i]);
  json.EndArray();
}

void put_thread(Json& json, const profile::Profile& profile, const FrameTable& frames,
                const std::string& name, const std::vector<Passed>& samples, profile::Weight weight) {
  int64_t total = 0;
  for (const Passed& sample : samples) total += sample.weight;
  json.StartObject();
  put(json, "type", "sampled");
  put(json, "name", name);
  put(json, "unit", weight == profile::Weight::samples ? "none" : "nanoseconds");
  put(json, "startValue", int64_t{0});
  put(json, "endValue", total);
  put_key(json, "samples");
  json.StartArray();
  for (const Passed& sample : samples) put_stack(json, profile, frames, sample.stack);
  json.EndArray();
  put_key(json, "weights");
  json.StartArray();
  for (const Passed& sample : samples) json.Int64(sample.weight);
  json.EndArray();
  json.EndObject();
}

}  // namespace

Result<void> write_speedscope(const profile::Profile& profile, const profile::Choices& choices,
                              const std::string& title, std::ostream& out) {
  Result<profile::SampleFilter> filter = profile::SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);
  std::vector<std::vector<Passed>> threads = passed_by_thread(profile, *filter);
  FrameTable frames(profile, choices.by.line);

  rapidjson::OStreamWrapper stream(out);
  Json json(stream);
  json.StartObject();
  put(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
  put(json, "name", title);
  put(json, "exporter", "phlox " PHLOX_VERSION);
  put_key(json, "shared");
  json.StartObject();
  frames.write(json);
  json.EndObject();
  // The thread that computes most is looked at first.
  if (const size_t first = busiest(profile, *filter, threads); first != 0)
    put(json, "activeProfileIndex", static_cast<int64_t>(first));
  put_key(json, "profiles");
  json.StartArray();
  bool empty = true;
  for (size_t i = 0; i < threads.size(); ++i) {
    if (threads[i].empty()) continue;
    const profile::Thread& thread = profile.threads()[i];
    std::string name = profile::thread_label(thread);
    bool several = profile.processes().size() > 1 && thread.process &&
                   thread.process.value <= profile.processes().size();
    if (several) name = process_label(profile.process(thread.process)) + ": " + name;
    put_thread(json, profile, frames, name, threads[i], choices.weight);
    empty = false;
  }
  // A file without any profile is not opened.
  if (empty) put_thread(json, profile, frames, "no samples", {}, choices.weight);
  json.EndArray();
  json.EndObject();
  return {};
}

}  // namespace phlox::exporters
