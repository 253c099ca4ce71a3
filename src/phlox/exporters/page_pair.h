// Two recordings in one page: the tables of both as one, so that every view and filter of the page works on
// them together, and either can be chosen. Pure.
#pragma once

#include "phlox/exporters/page_tables.h"

namespace phlox::exporters {

// Functions of two recordings are the same by the rule of `phlox diff`: kind, qualified name, last part of
// the file's path; a line counts from its function's first one. Both are shown as `after` has them. Threads
// of `after` have numbers after the `before_threads` of `before`. Both tables must be settled; the result is.
PageTables combine_pages(const PageTables& before, const PageTables& after, size_t before_threads);

}  // namespace phlox::exporters
