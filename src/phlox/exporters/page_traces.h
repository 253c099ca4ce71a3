// The page's data about distributed traces: which thread worked for which one, when, and the longest of them.
#pragma once

#include <span>

#include "phlox/exporters/page_columns.h"
#include "phlox/exporters/page_data.h"
#include "phlox/exporters/page_json.h"
#include "phlox/view/choices.h"

namespace phlox::exporters {

// The most times in a page. If there are more, the shortest are left out.
inline constexpr size_t kMostTraceTimes = 100'000;

// `grid_first`: from where the starts of intervals count. Adds no column if there are no traces. Returns how
// many times had no room.
size_t add_trace_times(ColumnWriter& columns, std::span<const PageSide> sides, Nanoseconds grid_first);

// `traces`: the longest, and how many there are; of a page of one recording. `left_out`: of the times.
void put_traces(Json& head, const profile::Profile* profile, const profile::TaskRows* tasks,
                view::Choices choices, size_t left_out);

}  // namespace phlox::exporters
