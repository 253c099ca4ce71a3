#include "phlox/exporters/otlp.h"

#include <array>
#include <map>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "phlox/base/utf8.h"
#include "phlox/exporters/recording_picture.h"
#include "phlox/exporters/time_kinds.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/markers.h"
#include "phlox/view/native_frames.h"
#include "phlox/view/quality.h"
#include "phlox/view/resource.h"
#include "phlox/view/shown_event.h"
#include "phlox/view/trace_parts.h"

namespace phlox::exporters {
namespace {

using OtlpField = protozero::pbf_tag_type;

enum DataField : OtlpField { kResourceProfiles = 1, kDictionary = 2 };
enum DictionaryField : OtlpField {
  kMappingTable = 1,
  kLocationTable = 2,
  kFunctionTable = 3,
  kLinkTable = 4,
  kOtlpStringTable = 5,
  kAttributeTable = 6,
  kStackTable = 7,
};
enum ResourceProfilesField : OtlpField { kResourceOfProfiles = 1, kScopeProfiles = 2 };
enum ResourceField : OtlpField { kResourceAttributes = 1 };
enum ScopeProfilesField : OtlpField { kScope = 1, kProfiles = 2 };
enum ScopeField : OtlpField { kScopeName = 1, kScopeVersion = 2 };
enum KeyValueField : OtlpField { kKey = 1, kKeyValue = 2 };
enum AnyValueField : OtlpField { kStringValue = 1, kIntValue = 3 };
enum OtlpProfileField : OtlpField {
  kProfileType = 1,
  kProfileSamples = 2,
  kTimeUnixNano = 3,
  kDurationNano = 4,
  kProfileId = 7,
};
enum OtlpTypeField : OtlpField { kTypeText = 1, kUnitText = 2 };
enum OtlpSampleField : OtlpField {
  kStackIndex = 1,
  kSampleAttributes = 2,
  kLinkIndex = 3,
  kSampleValues = 4,
};
enum OtlpMappingField : OtlpField { kMappingFilename = 4, kMappingAttributes = 5 };
enum OtlpStackField : OtlpField { kLocationIndices = 1 };
enum OtlpLocationField : OtlpField {
  kMappingIndex = 1,
  kLocationAddress = 2,
  kLocationLines = 3,
  kLocationAttributes = 4,
};
enum OtlpLineField : OtlpField { kFunctionIndex = 1, kLineOfFunction = 2 };
enum OtlpFunctionField : OtlpField { kFunctionName = 1, kFunctionFile = 3, kFunctionStart = 4 };
enum AttributeField : OtlpField { kAttributeKey = 1, kAttributeValue = 2 };
enum LinkField : OtlpField { kTraceId = 1, kSpanId = 2 };

// The tables that all profiles of a message share. Entry 0 of each is its zero value.
class OtlpDictionary {
 public:
  explicit OtlpDictionary(bool by_line) : by_line_(by_line), out_(bytes_) {
    for (const auto table : {kMappingTable, kLocationTable, kFunctionTable, kAttributeTable, kStackTable})
      out_.add_message(table, std::string());
    put_link({});
    out_.add_string(kOtlpStringTable, "");
  }

  int32_t string(std::string_view text) {
    // A receiver refuses a whole message for one byte that is not UTF-8.
    const auto [at, added] = strings_.try_emplace(valid_utf8(text), static_cast<int32_t>(strings_.size()));
    if (added) out_.add_string(kOtlpStringTable, at->first);
    return at->second;
  }

  int32_t attribute(std::string_view key, const view::Attribute& value) {
    const std::pair<int32_t, std::string> known{string(key), value_bytes(value)};
    const auto [at, added] = attributes_.try_emplace(known, next(attributes_));
    if (added) {
      protozero::pbf_writer row(out_, kAttributeTable);
      row.add_int32(kAttributeKey, known.first);
      row.add_message(kAttributeValue, known.second);
    }
    return at->second;
  }

  // `is_named`: otherwise it has its address alone.
  int32_t location(const profile::Profile& profile, const view::Label& label, bool is_named = true) {
    const int32_t of_function = is_named ? function(label) : 0;
    const int32_t of_module = mapping(profile, label);
    const int32_t kind = kind_attribute(label.kind);
    const int32_t line_number = by_line_ ? label.line : 0;
    const auto [at, added] =
        locations_.try_emplace({of_function, of_module, line_number, label.address, kind}, next(locations_));
    if (!added) return at->second;
    protozero::pbf_writer row(out_, kLocationTable);
    if (of_module != 0) row.add_int32(kMappingIndex, of_module);
    if (label.address != 0) row.add_uint64(kLocationAddress, label.address);
    if (is_named) {
      protozero::pbf_writer line(row, kLocationLines);
      line.add_int32(kFunctionIndex, of_function);
      if (line_number > 0) line.add_int64(kLineOfFunction, line_number);
    }
    if (kind != 0) row.add_packed_int32(kLocationAttributes, &kind, &kind + 1);
    return at->second;
  }

  // The leaf first.
  int32_t stack(const std::vector<int32_t>& locations) {
    const auto [at, added] = stacks_.try_emplace(locations, next(stacks_));
    if (added)
      protozero::pbf_writer(out_, kStackTable)
          .add_packed_int32(kLocationIndices, locations.begin(), locations.end());
    return at->second;
  }

  int32_t link(const profile::TraceIds& ids) {
    const auto [at, added] = links_.try_emplace(ids, next(links_));
    if (added) put_link(ids);
    return at->second;
  }

  const std::string& bytes() const { return bytes_; }

  static std::string value_bytes(const view::Attribute& attribute) {
    std::string bytes;
    protozero::pbf_writer value(bytes);
    if (attribute.number) {
      value.add_int64(kIntValue, *attribute.number);
    } else {
      value.add_string(kStringValue, valid_utf8(attribute.text));
    }
    return bytes;
  }

 private:
  void put_link(const profile::TraceIds& ids) {
    protozero::pbf_writer row(out_, kLinkTable);
    row.add_bytes(kTraceId, bytes_of(ids.trace));
    row.add_bytes(kSpanId, bytes_of(ids.span));
  }
  static std::string bytes_of(std::span<const uint8_t> id) { return {id.begin(), id.end()}; }

  template <class Table>
  static int32_t next(const Table& table) {
    return static_cast<int32_t>(table.size() + 1);
  }

  int32_t function(const view::Label& label) {
    const int32_t name = string(label.whole_name()), file = string(label.file);
    const int32_t first = by_line_ ? label.first_line : label.line;
    const auto [at, added] = functions_.try_emplace({name, file, first}, next(functions_));
    if (!added) return at->second;
    protozero::pbf_writer row(out_, kFunctionTable);
    row.add_int32(kFunctionName, name);
    if (file != 0) row.add_int32(kFunctionFile, file);
    if (first > 0) row.add_int64(kFunctionStart, first);
    return at->second;
  }

  int32_t mapping(const profile::Profile& profile, const view::Label& label) {
    if (label.kind != profile::FrameKind::native || !label.module_id ||
        label.module_id.value > profile.modules().size())
      return 0;
    const profile::Module& module = profile.modules()[label.module_id.value - 1];
    const int32_t file = string(module.path);
    const int32_t build_id =
        module.build_id.empty() ? 0 : attribute("process.executable.build_id.gnu", {"", module.build_id, {}});
    const auto [at, added] = mappings_.try_emplace({file, build_id}, next(mappings_));
    if (!added) return at->second;
    protozero::pbf_writer row(out_, kMappingTable);
    row.add_int32(kMappingFilename, file);
    if (build_id != 0) row.add_packed_int32(kMappingAttributes, &build_id, &build_id + 1);
    return at->second;
  }

  // 0: a marker is no frame of any language.
  int32_t kind_attribute(profile::FrameKind kind) {
    constexpr std::array<std::string_view, 3> kNames = {"cpython", "native", "kernel"};
    if (kind == profile::FrameKind::marker) return 0;
    return attribute("profile.frame.type", {"", std::string(kNames[static_cast<size_t>(kind)]), {}});
  }

  const bool by_line_;
  std::string bytes_;
  protozero::pbf_writer out_;
  std::map<std::string, int32_t> strings_ = {{"", 0}};
  std::map<std::pair<int32_t, std::string>, int32_t> attributes_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> functions_;
  std::map<std::pair<int32_t, int32_t>, int32_t> mappings_;
  std::map<std::tuple<int32_t, int32_t, int32_t, uint64_t, int32_t>, int32_t> locations_;
  std::map<std::vector<int32_t>, int32_t> stacks_;
  std::map<profile::TraceIds, int32_t> links_;
};

struct OtlpType {
  std::string name;
  const char* unit = "nanoseconds";
};

// What the values of a sample are, in order: the kinds of time, or else what the shown event counted; then
// the further events.
class OtlpTypes {
 public:
  OtlpTypes(const profile::Profile& profile, const view::Choices& choices) : weight_(choices.weight) {
    if (view::is_time(weight_)) {
      for (const std::string_view kind : kTimeKinds) types_.push_back({std::string(kind)});
    } else if (view::is_of_event(weight_)) {
      types_.push_back({view::shown_event(profile).name, unit_of(view::shown_event(profile).unit)});
    } else {
      types_.push_back({"samples", "count"});
    }
    const auto events = profile::sampled_events(profile);
    const std::vector<bool> there = view::sampled_but_not_shown(profile);
    for (size_t i = 0; i < events.size(); ++i) {
      // Without a name it is thread time next to await time: it was not requested.
      if (!there[i] || events[i].name.empty()) continue;
      others_[static_cast<uint16_t>(i + 1)] = {types_.size(), events[i].unit};
      types_.push_back({events[i].name, unit_of(events[i].unit)});
    }
  }

  const std::vector<OtlpType>& all() const { return types_; }

  void add(const profile::Sample& sample, const view::SampleFilter::Part& part,
           std::vector<int64_t>& values) const {
    if (!view::is_time(weight_)) {
      values[0] += part.weight;
      return;
    }
    const KindTimes times = times_of(sample, part.wall, part.cpu);
    for (size_t i = 0; i < times.size(); ++i) values[i] += times[i];
  }
  void add_other(const profile::Sample& sample, const view::SampleFilter::Part& part,
                 std::vector<int64_t>& values) const {
    const auto found = others_.find(profile::event_number(sample));
    if (found == others_.end()) return;
    const auto& [place, unit] = found->second;
    values[place] += unit == profile::Unit::nanoseconds ? part.wall : part.value;
  }

 private:
  static const char* unit_of(profile::Unit unit) {
    return unit == profile::Unit::nanoseconds ? "nanoseconds"
           : unit == profile::Unit::bytes     ? "bytes"
                                              : "count";
  }
  view::Weight weight_;
  std::vector<OtlpType> types_;
  std::map<uint16_t, std::pair<size_t, profile::Unit>> others_;  // by event: its place and unit
};

// Sums over all samples, and the message made of them.
class OtlpWriter {
 public:
  OtlpWriter(const profile::Profile& profile, const view::Choices& choices, const OtlpFacts& facts)
      : profile_(profile),
        choices_(choices),
        facts_(facts),
        types_(profile, choices),
        tables_(choices.by.line),
        endpoints_(profile),
        traces_(profile) {}

  Result<std::string> message() {
    const auto filter = view::SampleFilter::make(profile_, choices_);
    if (!filter) return fail(filter);
    for (const profile::Sample& sample : profile_.samples()) {
      each_part(*filter, sample, [&](const auto& part, auto& values) { types_.add(sample, part, values); });
    }
    for (const profile::Sample& sample : profile_.samples_of_others()) {
      each_part(*filter, sample,
                [&](const auto& part, auto& values) { types_.add_other(sample, part, values); });
    }
    std::string bytes;
    protozero::pbf_writer out(bytes);
    for (const auto& [process, sums] : sums_) {
      const std::string resource = resource_profiles(process, sums);
      if (!resource.empty()) out.add_message(kResourceProfiles, resource);
    }
    if (!bytes.empty()) out.add_message(kDictionary, tables_.bytes());
    return bytes;
  }

 private:
  using SampleKey = std::tuple<int32_t, std::vector<int32_t>, int32_t>;  // stack, attributes, link
  using SampleSums = std::map<SampleKey, std::vector<int64_t>>;

  // Calls add(part, values) for each part that belongs to another span.
  template <class Add>
  void each_part(const view::SampleFilter& filter, const profile::Sample& sample, Add&& add) {
    const auto whole = filter.part(sample);
    if (!whole.passes) return;
    traces_.each_part(sample, whole, [&](const view::SampleFilter::Part& part, uint32_t index) {
      const bool linked = index != view::TraceParts::kNone;
      add(part, values_of(sample, linked ? tables_.link(profile_.trace_times()[index].ids) : 0));
    });
  }

  std::vector<int64_t>& values_of(const profile::Sample& sample, int32_t link) {
    const bool known = sample.thread && sample.thread.value <= profile_.threads().size();
    const profile::ProcessId process = known ? profile_.thread(sample.thread).process : profile::ProcessId();
    auto attributes = thread_attributes(sample.thread, known);
    if (const auto endpoint = endpoint_attribute(endpoints_.of(sample))) attributes.push_back(*endpoint);
    auto& values = sums_[process][{stack(sample.stack), std::move(attributes), link}];
    if (values.empty()) values.resize(types_.all().size());
    return values;
  }

  const std::vector<int32_t>& thread_attributes(profile::ThreadId id, bool known) {
    const auto [at, added] = threads_.try_emplace(id.value);
    if (!added || !known) return at->second;
    const profile::Thread& thread = profile_.thread(id);
    const std::string& name = thread.name.empty() ? thread.kernel_name : thread.name;
    if (thread.tid != 0) at->second.push_back(tables_.attribute("thread.id", {"", "", int64_t{thread.tid}}));
    if (!name.empty()) at->second.push_back(tables_.attribute("thread.name", {"", name, {}}));
    return at->second;
  }

  std::optional<int32_t> endpoint_attribute(uint32_t number) {
    if (number == view::Endpoints::kNone || number == view::Endpoints::kNotRead) return {};
    const auto [at, added] = of_endpoints_.try_emplace(number, 0);
    if (added)
      at->second = tables_.attribute("endpoint", {"", endpoint_label(profile_, endpoints_, number), {}});
    return at->second;
  }

  int32_t stack(profile::StackId id) {
    if (id.value > profile_.stacks().size()) id = {};
    const auto [at, added] = stacks_.try_emplace(id.value, 0);
    if (!added) return at->second;
    std::vector<int32_t> path;
    if (!id) path.push_back(tables_.location(profile_, view::no_frames_label()));
    while (id) {
      const profile::Stack& row = profile_.stack(id);
      path.push_back(location(row.frame));
      // Parents come before children, so this ends for any file.
      id = row.parent < id ? row.parent : profile::StackId();
    }
    return at->second = tables_.stack(path);
  }

  int32_t location(profile::FrameId frame) {
    const auto [at, added] = locations_.try_emplace(frame.value, 0);
    if (!added) return at->second;
    const bool known = frame && frame.value <= profile_.frames().size();
    view::Choices wanted = choices_;
    wanted.by.place = true;
    const view::Label label =
        known ? view::frame_label(profile_, frame, wanted) : view::unknown_frame_label();
    const bool is_named = !facts_.leaves_addresses || !view::is_address_of_known_file(profile_, label);
    return at->second = tables_.location(profile_, label, is_named);
  }

  // Empty: no value but 0.
  std::string resource_profiles(profile::ProcessId process, const SampleSums& sums) {
    std::string profiles;
    protozero::pbf_writer scope(profiles);
    {
      protozero::pbf_writer name(scope, kScope);
      name.add_string(kScopeName, "phlox");
      name.add_string(kScopeVersion, PHLOX_VERSION);
    }
    bool any = false;
    for (size_t type = 0; type < types_.all().size(); ++type) any = write_profile(scope, sums, type) || any;
    if (!any) return {};
    std::string bytes;
    protozero::pbf_writer out(bytes);
    {
      protozero::pbf_writer resource(out, kResourceOfProfiles);
      for (const view::Attribute& attribute : view::resource_of(profile_, process)) {
        protozero::pbf_writer pair(resource, kResourceAttributes);
        pair.add_string(kKey, valid_utf8(attribute.key));
        pair.add_message(kKeyValue, OtlpDictionary::value_bytes(attribute));
      }
    }
    out.add_message(kScopeProfiles, profiles);
    return bytes;
  }

  bool write_profile(protozero::pbf_writer& scope, const SampleSums& sums, size_t type) {
    std::string samples;
    protozero::pbf_writer profile(samples);
    for (const auto& [key, values] : sums) {
      if (values[type] == 0) continue;
      protozero::pbf_writer sample(profile, kProfileSamples);
      const auto& [stack, attributes, link] = key;
      sample.add_int32(kStackIndex, stack);
      if (!attributes.empty())
        sample.add_packed_int32(kSampleAttributes, attributes.begin(), attributes.end());
      if (link != 0) sample.add_int32(kLinkIndex, link);
      sample.add_packed_int64(kSampleValues, &values[type], &values[type] + 1);
    }
    if (samples.empty()) return false;
    {
      protozero::pbf_writer kind(profile, kProfileType);
      kind.add_int32(kTypeText, tables_.string(types_.all()[type].name));
      kind.add_int32(kUnitText, tables_.string(types_.all()[type].unit));
    }
    if (const int64_t start = recording_start_time(profile_); start > 0)
      profile.add_fixed64(kTimeUnixNano, static_cast<uint64_t>(start));
    if (const Nanoseconds length = view::summarize_quality(profile_).elapsed; length > 0)
      profile.add_uint64(kDurationNano, static_cast<uint64_t>(length));
    if (facts_.profile_id) profile.add_bytes(kProfileId, facts_.profile_id());
    scope.add_message(kProfiles, samples);
    return true;
  }

  const profile::Profile& profile_;
  const view::Choices& choices_;
  const OtlpFacts& facts_;
  OtlpTypes types_;
  OtlpDictionary tables_;
  view::Endpoints endpoints_;
  view::TraceParts traces_;
  std::map<uint32_t, int32_t> of_endpoints_;  // attributes by number
  std::map<profile::ProcessId, SampleSums> sums_;
  std::map<uint32_t, std::vector<int32_t>> threads_;
  std::map<uint32_t, int32_t> stacks_, locations_;
};

}  // namespace

Result<std::string> otlp_message(const profile::Profile& profile, const view::Choices& choices,
                                 const OtlpFacts& facts) {
  return OtlpWriter(profile, choices, facts).message();
}

}  // namespace phlox::exporters
