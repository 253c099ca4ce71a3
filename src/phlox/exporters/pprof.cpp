#include "phlox/exporters/pprof.h"

#include <map>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <tuple>
#include <vector>

#include "phlox/exporters/gzip_stream.h"
#include "phlox/view/await_time.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/native_frames.h"
#include "phlox/view/shown_event.h"

namespace phlox::exporters {
namespace {

enum ProfileField : protozero::pbf_tag_type {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kComment = 13,
  kDefaultSampleType = 14,
};
enum ValueTypeField : protozero::pbf_tag_type { kType = 1, kUnit = 2 };
enum SampleField : protozero::pbf_tag_type { kLocationId = 1, kValue = 2, kLabel = 3 };
enum LabelField : protozero::pbf_tag_type { kLabelKey = 1, kLabelText = 2 };
enum MappingField : protozero::pbf_tag_type {
  kMappingNumber = 1,
  kMappingFile = 5,
  kMappingBuildId = 6,
  kHasFunctions = 7,
  kHasFiles = 8,
  kHasLines = 9,
  kHasInlined = 10,
};
enum LocationField : protozero::pbf_tag_type { kLocationNumber = 1, kMappingId = 2, kAddress = 3, kLine = 4 };
enum LineField : protozero::pbf_tag_type { kFunctionId = 1, kLineNumber = 2 };
enum FunctionField : protozero::pbf_tag_type {
  kFunctionNumber = 1,
  kName = 2,
  kFilename = 4,
  kStartLine = 5
};

// The string table, whose entry 0 must be empty.
class PprofStrings {
 public:
  int64_t index(const std::string& text) {
    auto [at, added] = indices_.try_emplace(text, static_cast<int64_t>(strings_.size()));
    if (added) strings_.push_back(text);
    return at->second;
  }
  void write(protozero::pbf_writer& message) const {
    for (const std::string& text : strings_) message.add_string(kStringTable, text);
  }

 private:
  std::map<std::string, int64_t> indices_ = {{"", 0}};
  std::vector<std::string> strings_ = {""};
};

void add_value_type(protozero::pbf_writer& message, PprofStrings& strings, const std::string& type,
                    const std::string& unit, ProfileField field = kSampleType) {
  protozero::pbf_writer value(message, field);
  value.add_int64(kType, strings.index(type));
  value.add_int64(kUnit, strings.index(unit));
}

// Libraries. Their load addresses are not written: addresses are those in the files, which readers use
// unchanged if a mapping begins and ends at 0. Readers take the first mapping for the program.
class Mappings {
 public:
  Mappings(protozero::pbf_writer& message, PprofStrings& strings, const PprofFacts& facts)
      : message_(message),
        strings_(strings),
        modules_(facts.modules),
        leaves_addresses_(facts.leaves_addresses_of != nullptr) {}
  uint64_t of(const view::Label& label) {
    if (label.kind != profile::FrameKind::native) return 0;
    const bool known = modules_ != nullptr && label.module_id && label.module_id.value <= modules_->size();
    const profile::Module* module = known ? &(*modules_)[label.module_id.value - 1] : nullptr;
    if (module == nullptr && label.module.empty()) return 0;
    if (ids_.empty()) add("python", nullptr);
    return add(module == nullptr ? label.module : module->path, module);
  }

 private:
  uint64_t add(const std::string& file, const profile::Module* module) {
    const std::string build_id = module == nullptr ? "" : module->build_id;
    const auto [at, added] = ids_.try_emplace({file, build_id}, ids_.size() + 1);
    if (!added) return at->second;
    protozero::pbf_writer out(message_, kMapping);
    out.add_uint64(kMappingNumber, at->second);
    out.add_int64(kMappingFile, strings_.index(file));
    if (!build_id.empty()) out.add_int64(kMappingBuildId, strings_.index(build_id));
    // Otherwise pprof would look for the file, and if it finds no name there, drop ours, "libfoo+0x1a40".
    if (leaves_addresses_ && !build_id.empty()) return at->second;
    for (const auto has : {kHasFunctions, kHasFiles, kHasLines, kHasInlined}) out.add_bool(has, true);
    return at->second;
  }

  protozero::pbf_writer& message_;
  PprofStrings& strings_;
  const std::vector<profile::Module>* modules_;
  const bool leaves_addresses_;
  std::map<std::pair<std::string, std::string>, uint64_t> ids_;  // file, build-id
};

// One location for each label of a tree, one function for each (name, file, first line): lines of one
// function share it, and so do trees.
class Locations {
 public:
  Locations(protozero::pbf_writer& message, PprofStrings& strings, const PprofFacts& facts)
      : message_(message),
        strings_(strings),
        by_line_(facts.by_line),
        leaves_addresses_of_(facts.leaves_addresses_of),
        mappings_(message, strings, facts) {}

  // Returns the number of the first label's location; those of the others follow.
  uint64_t add(const view::CallTree& tree) {
    const uint64_t first = last_ + 1;
    for (const view::Label& label : tree.labels) add(label);
    return first;
  }

 private:
  void add(const view::Label& label) {
    const uint64_t of_function = function(label), mapping = mappings_.of(label);
    protozero::pbf_writer location(message_, kLocation);
    location.add_uint64(kLocationNumber, ++last_);
    if (mapping != 0) location.add_uint64(kMappingId, mapping);
    if (mapping != 0 && label.address != 0) location.add_uint64(kAddress, label.address);
    if (leaves_addresses_of_ != nullptr && view::is_address_of_known_file(*leaves_addresses_of_, label))
      return;
    protozero::pbf_writer line(location, kLine);
    line.add_uint64(kFunctionId, of_function);
    if (label.line > 0) line.add_int64(kLineNumber, label.line);
  }

  uint64_t function(const view::Label& label) {
    const int32_t first_line = by_line_ ? label.first_line : label.line;
    auto [function, added] =
        functions_.try_emplace({label.whole_name(), label.file, first_line}, functions_.size() + 1);
    if (added) {
      protozero::pbf_writer out(message_, kFunction);
      out.add_uint64(kFunctionNumber, function->second);
      // Without a system name: if it equals the name, pprof removes the text in <> (its symbolizer.go), which
      // is all of "<module>", and the type in "<T as Clone>::clone".
      out.add_int64(kName, strings_.index(label.whole_name()));
      out.add_int64(kFilename, strings_.index(label.file));
      if (first_line > 0) out.add_int64(kStartLine, first_line);
    }
    return function->second;
  }

  protozero::pbf_writer& message_;
  PprofStrings& strings_;
  bool by_line_;
  const profile::Profile* leaves_addresses_of_;
  Mappings mappings_;
  std::map<std::tuple<std::string, std::string, int32_t>, uint64_t> functions_;
  uint64_t last_ = 0;
};

// The places of a tree's samples and weights among the `count` values of a sample; none if they are not
// written.
struct Values {
  size_t count = 1;
  std::optional<size_t> samples, weight;
};

// One sample for each node with weight of its own, the leaf's location first. Readers add up samples with the
// same stack. `strings`: the stacks begin with endpoints, which become labels; null: they do not.
void add_samples(protozero::pbf_writer& message, const view::CallTree& tree, uint64_t first_location,
                 const Values& which, PprofStrings* strings) {
  std::vector<uint64_t> own(tree.nodes.size());
  for (size_t i = tree.nodes.size(); i-- > 0;) {
    own[i] += tree.nodes[i].samples;
    if (i > 0) own[tree.nodes[i].parent] -= tree.nodes[i].samples;
  }
  std::vector<uint64_t> path;
  for (uint32_t i = 0; i < tree.nodes.size(); ++i) {
    if ((own[i] == 0 || !which.samples) && tree.nodes[i].self == 0) continue;
    path.clear();
    uint32_t outermost = 0;
    for (uint32_t node = i; node != 0; node = tree.nodes[node].parent) {
      path.push_back(tree.nodes[node].label + first_location);
      outermost = node;
    }
    const bool has_endpoint = strings != nullptr && outermost != 0;
    if (has_endpoint) path.pop_back();
    // Samples without frames keep the root's own name.
    if (path.empty()) path.push_back(tree.nodes[0].label + first_location);
    std::vector<int64_t> values(which.count);
    if (which.samples) values[*which.samples] = static_cast<int64_t>(own[i]);
    if (which.weight) values[*which.weight] = tree.nodes[i].self;
    protozero::pbf_writer sample(message, kSample);
    sample.add_packed_uint64(kLocationId, path.begin(), path.end());
    sample.add_packed_int64(kValue, values.begin(), values.end());
    const std::string& endpoint = tree.labels[tree.nodes[outermost].label].name;
    if (!has_endpoint || endpoint == view::kNoEndpoint || endpoint == view::kEndpointNotRead) continue;
    protozero::pbf_writer label(sample, kLabel);
    label.add_int64(kLabelKey, strings->index("endpoint"));
    label.add_int64(kLabelText, strings->index(endpoint));
  }
}

const char* unit_name(view::Weight weight) {
  return is_time(weight) ? "nanoseconds" : weight == view::Weight::bytes ? "bytes" : "count";
}

}  // namespace

std::string pprof_message(const view::CallTree& tree, const PprofFacts& facts) {
  std::string bytes;
  protozero::pbf_writer message(bytes);
  PprofStrings strings;
  const bool has_weight = facts.weight != view::Weight::samples;
  const std::string weight = facts.awaits                        ? std::string(view::kAwaitTime)
                             : is_of_event(facts.weight)         ? facts.event
                             : facts.weight == view::Weight::cpu ? "cpu"
                                                                 : "wall";
  add_value_type(message, strings, "samples", "count");
  if (has_weight) add_value_type(message, strings, weight, unit_name(facts.weight));
  for (const EventTree& other : facts.others)
    add_value_type(message, strings, other.event.name, unit_name(view::weight_of(other.event.unit)));
  Values which{1 + has_weight + facts.others.size(), 0, {}};
  if (has_weight) which.weight = 1;
  Locations locations(message, strings, facts);
  PprofStrings* const of_labels = facts.endpoint_labels ? &strings : nullptr;
  add_samples(message, tree, locations.add(tree), which, of_labels);
  which.samples.reset();
  which.weight = size_t{has_weight};
  for (const EventTree& other : facts.others) {
    ++*which.weight;
    add_samples(message, other.tree, locations.add(other.tree), which, of_labels);
  }
  if (facts.start > 0) message.add_int64(kTimeNanos, facts.start);
  if (facts.duration > 0) message.add_int64(kDurationNanos, facts.duration);
  if (facts.period > 0) {
    add_value_type(message, strings, "cpu", "nanoseconds", kPeriodType);
    message.add_int64(kPeriod, facts.period);
  }
  if (!facts.comment.empty()) message.add_int64(kComment, strings.index(facts.comment));
  message.add_int64(kDefaultSampleType, strings.index(has_weight ? weight : "samples"));
  strings.write(message);
  return bytes;
}

Result<void> write_pprof(const view::CallTree& tree, const PprofFacts& facts, std::ostream& out) {
  const std::string message = pprof_message(tree, facts);
  GzipStream gzip(out);
  gzip.stream().write(message.data(), static_cast<std::streamsize>(message.size()));
  return gzip.finish();
}

}  // namespace phlox::exporters
