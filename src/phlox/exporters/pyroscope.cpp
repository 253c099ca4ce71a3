#include "phlox/exporters/pyroscope.h"

#include <protozero/pbf_writer.hpp>

#include "phlox/exporters/process_series.h"

namespace phlox::exporters {
namespace {

enum PushField : protozero::pbf_tag_type { kPushSeries = 1 };
enum SeriesField : protozero::pbf_tag_type { kSeriesLabels = 1, kSeriesSamples = 2 };
enum LabelPairField : protozero::pbf_tag_type { kLabelName = 1, kLabelValue = 2 };
enum RawSampleField : protozero::pbf_tag_type { kRawProfile = 1, kRawId = 2 };

}  // namespace

Result<std::string> pyroscope_message(const profile::Profile& profile, const view::Choices& choices,
                                      const PyroscopeFacts& facts) {
  const auto all = process_series(profile, choices, facts.rate_hz, Unnamed::name_of_address);
  if (!all) return fail(all);
  std::string bytes;
  protozero::pbf_writer message(bytes);
  for (const ProcessSeries& one : *all) {
    protozero::pbf_writer series(message, kPushSeries);
    for (const auto& [name, value] : one.labels) {
      protozero::pbf_writer pair(series, kSeriesLabels);
      pair.add_string(kLabelName, name);
      pair.add_string(kLabelValue, value);
    }
    protozero::pbf_writer sample(series, kSeriesSamples);
    sample.add_bytes(kRawProfile, one.pprof);
    if (facts.profile_id) sample.add_string(kRawId, facts.profile_id());
  }
  return bytes;
}

}  // namespace phlox::exporters
