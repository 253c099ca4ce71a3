// The program's source in a page, if requested: which files, and how much they add. Pure: a function of the
// caller provides the texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/exporters/page_tables.h"
#include "phlox/exporters/registry.h"

namespace phlox::exporters {

struct PageSources {
  std::string json;     // [["/app/app.py", "text"], ...], the hottest file first; empty: not requested
  uint64_t packed = 0;  // bytes that it adds to a page
  size_t files = 0;
  size_t missing = 0;   // hot files that could not be read
  size_t left_out = 0;  // had no room
};

Result<PageSources> collect_sources(const PageTables& tables, const SourceOf& source);

}  // namespace phlox::exporters
