#include "phlox/exporters/parca.h"

#include <protozero/pbf_writer.hpp>

#include "phlox/exporters/process_series.h"

namespace phlox::exporters {
namespace {

enum WriteRawField : protozero::pbf_tag_type { kRawSeries = 2, kNormalized = 3 };
enum RawSeriesField : protozero::pbf_tag_type { kLabelSet = 1, kSamplesOfSeries = 2 };
constexpr protozero::pbf_tag_type kLabelOfSet = 1, kNameOfLabel = 1, kValueOfLabel = 2, kRawPprof = 1;

}  // namespace

Result<std::string> parca_message(const profile::Profile& profile, const view::Choices& choices,
                                  double rate_hz) {
  const auto all = process_series(profile, choices, rate_hz, Unnamed::address);
  if (!all) return fail(all);
  std::string bytes;
  protozero::pbf_writer message(bytes);
  for (const ProcessSeries& one : *all) {
    protozero::pbf_writer series(message, kRawSeries);
    {
      protozero::pbf_writer labels(series, kLabelSet);
      for (const auto& [name, value] : one.labels) {
        protozero::pbf_writer label(labels, kLabelOfSet);
        label.add_string(kNameOfLabel, name);
        label.add_string(kValueOfLabel, value);
      }
    }
    protozero::pbf_writer sample(series, kSamplesOfSeries);
    sample.add_bytes(kRawPprof, one.pprof);
  }
  // Addresses are those in the files (pprof.cpp).
  if (!bytes.empty()) message.add_bool(kNormalized, true);
  return bytes;
}

}  // namespace phlox::exporters
