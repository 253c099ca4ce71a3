// A recording's tables in the page's form: a head of JSON with the data needed at the start, and one packed
// string of columns. web/src/model/head.ts and recording.ts read them; docs/formats.md describes them. Pure.
#pragma once

#include <span>
#include <string>

#include "phlox/base/result.h"
#include "phlox/exporters/page_size.h"
#include "phlox/exporters/page_source.h"
#include "phlox/exporters/page_tables.h"
#include "phlox/exporters/registry.h"

namespace phlox::exporters {

struct PageData {
  std::string title;
  std::string head;     // JSON that is valid in markup
  std::string columns;  // zlib, base64
};

// One of the page's recordings.
struct PageSide {
  const profile::Profile* profile = nullptr;
  std::string name;  // "before", "after"; empty: the only one
};

// For one recording, or for two: then the tables are those of combine_pages. `merge`: the merges that were
// applied to the tables, or nothing.
Result<PageData> make_page_data(std::span<const PageSide> sides, const view::Choices& choices,
                                const ExportOptions& options, const PageTables& tables,
                                const PageMerge& merge, const PageSources& sources);

}  // namespace phlox::exporters
