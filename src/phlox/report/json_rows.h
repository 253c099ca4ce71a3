// Parts of the JSON that report, diff and dump share.
#pragma once

#include <string_view>
#include <utility>

#include "phlox/report/json_text.h"
#include "phlox/report/report.h"

namespace phlox::report {

void write_estimate(JsonText& json, std::string_view name, const Estimate& estimate);
void write_place(JsonText& json, profile::FrameKind kind, std::string_view name, std::string_view file,
                 int32_t line, std::string_view module);
// Modules whose native frames lack names, and what would provide these.
void write_missing_names(JsonText& json, const std::vector<profile::Module>& modules);
// The numbers in the quality line.
void write_quality(JsonText& json, std::string_view name, const view::QualitySummary& quality);
std::string_view weight_key(view::Weight weight);
std::string_view kind_key(profile::FrameKind kind);

}  // namespace phlox::report
