// Every row of the layout table as a test parameter, and a valid GoogleTest name for it.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "phlox/python/layout_table.h"

namespace phlox::test {

// Rows for which `wanted` is true.
inline std::vector<const python::Layout*> layout_rows(bool (*wanted)(const python::Layout&) = nullptr) {
  std::vector<const python::Layout*> rows;
  for (const python::Layout& row : python::layouts()) {
    if (wanted == nullptr || wanted(row)) rows.push_back(&row);
  }
  return rows;
}

inline std::string row_name(const testing::TestParamInfo<const python::Layout*>& row) {
  std::string name(row.param->name);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return "python_" + name;
}

}  // namespace phlox::test
