// Two recordings in one page: the tables of both as one, so that every view and filter of the page works on
// them together, and either can be chosen. Pure.
#pragma once

#include "phlox/exporters/page_tables.h"

namespace phlox::exporters {

// What makes functions of two recordings the same is what `phlox diff` goes by: kind, qualified name, last
// part of the file's path; a line is counted from its function's first one. Both are shown as `after` has
// them. Threads of `after` are numbered behind the `before_threads` of `before`. Both tables are settled; so
// is the result.
PageTables combine_pages(const PageTables& before, const PageTables& after, size_t before_threads);

}  // namespace phlox::exporters
