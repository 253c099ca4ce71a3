// The column of the native code that Python rows call.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "phlox/report/report.h"
#include "phlox/report/table.h"

namespace phlox::report {

// "dgemm_kernel (libopenblas) 96 %"; without native frames "libopenblas 96 % of CPU"; empty: no native code
// is known there.
std::string native_words(const NativeBeneath& native);

// For a table in which some rows call native code.
template <class Row>
void add_native_column(Table& table, const std::vector<Row>& rows) {
  const auto any = std::find_if(rows.begin(), rows.end(), [](const Row& row) {
    return !row.native.name.empty() || row.native.is_library();
  });
  if (any == rows.end()) return;
  table.columns.push_back(
      {any->native.is_library() ? "in C code of (--native shows it)" : "most native time in", false,
       Fit::name});
  for (size_t i = 0; i < rows.size(); ++i) table.rows[i].push_back(native_words(rows[i].native));
}

}  // namespace phlox::report
