// Rows in a vector, by id.
#pragma once

#include <vector>

namespace phlox::profile {

// Ids count up from 1, so a row is replaced or appended; an id from a file that leaves a gap gets empty rows
// before it.
template <class Row, class RowId>
void put_row(std::vector<Row>& rows, RowId id, const Row& row) {
  if (!id) return;
  if (rows.size() < id.value) rows.resize(id.value);
  rows[id.value - 1] = row;
}

}  // namespace phlox::profile
