#include "phlox/exporters/speedscope.h"

#include <algorithm>
#include <vector>

#include "phlox/exporters/json.h"
#include "phlox/exporters/timeline.h"

namespace phlox::exporters {
namespace {

void put_frames(JsonWriter& json, const FrameTable& frames) {
  put_key(json, "frames");
  json.StartArray();
  for (const view::Label& label : frames.labels()) {
    json.StartObject();
    put(json, "name", label.whole_name());
    if (!label.file.empty() || label.kind == profile::FrameKind::native)
      put(json, "file", native_location(label));
    if (label.line > 0) put(json, "line", int64_t{label.line});
    json.EndObject();
  }
  json.EndArray();
}

// Among the profiles of the file: threads without samples have none.
size_t place_of_busiest(const SamplesByThread& threads) {
  const auto end = threads.begin() + static_cast<ptrdiff_t>(busiest_thread(threads).value_or(0));
  return static_cast<size_t>(
      std::count_if(threads.begin(), end, [](const auto& samples) { return !samples.empty(); }));
}

void put_thread(JsonWriter& json, const FrameTable& frames, const std::string& name,
                const std::vector<ThreadSample>& samples, view::Weight weight) {
  int64_t total = 0;
  for (const ThreadSample& sample : samples) total += sample.part.weight;
  json.StartObject();
  put(json, "type", "sampled");
  put(json, "name", name);
  put(json, "unit", is_time(weight) ? "nanoseconds" : weight == view::Weight::bytes ? "bytes" : "none");
  put(json, "startValue", int64_t{0});
  put(json, "endValue", total);
  put_key(json, "samples");
  json.StartArray();
  std::vector<size_t> path;
  for (const ThreadSample& sample : samples) {
    frames.stack(sample.sample->stack, path);
    json.StartArray();
    for (const size_t frame : path) json.Uint64(frame);
    json.EndArray();
  }
  json.EndArray();
  put_key(json, "weights");
  json.StartArray();
  for (const ThreadSample& sample : samples) json.Int64(sample.part.weight);
  json.EndArray();
  json.EndObject();
}

}  // namespace

Result<void> write_speedscope(const profile::Profile& profile, const view::Choices& choices,
                              const std::string& title, std::ostream& out) {
  Result<view::SampleFilter> filter = view::SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);
  const SamplesByThread threads = samples_by_thread(profile, *filter);
  const FrameTable frames(profile, choices);

  rapidjson::OStreamWrapper stream(out);
  JsonWriter json(stream);
  json.StartObject();
  put(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
  put(json, "name", title);
  put(json, "exporter", "phlox " PHLOX_VERSION);
  put_key(json, "shared");
  json.StartObject();
  put_frames(json, frames);
  json.EndObject();
  // The thread that computes most is shown first.
  if (const size_t first = place_of_busiest(threads); first != 0)
    put(json, "activeProfileIndex", static_cast<int64_t>(first));
  put_key(json, "profiles");
  json.StartArray();
  bool empty = true;
  for (size_t i = 0; i < threads.size(); ++i) {
    if (threads[i].empty()) continue;
    put_thread(json, frames, thread_title(profile, profile.threads()[i]), threads[i], choices.weight);
    empty = false;
  }
  // speedscope does not open a file without profiles.
  if (empty) put_thread(json, frames, "no samples", {}, choices.weight);
  json.EndArray();
  json.EndObject();
  return {};
}

}  // namespace phlox::exporters
