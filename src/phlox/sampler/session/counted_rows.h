// Rows of a recording that count something, by what they count: those that have grown are passed on. Called
// by the recorder's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace phlox::sampler {

template <class Key, class RowId, class Row>
class CountedRows {
 public:
  // Of one program.
  static constexpr size_t kMost = 10'000;

  // `ids`: the number of rows so far, of all programs.
  explicit CountedRows(uint32_t& ids) : ids_(ids) {}

  bool has_room_for(const Key& key) const { return rows_.size() < kMost || rows_.contains(key); }
  void count(const Key& key, const Row& row) {
    auto found = rows_.find(key);
    if (found == rows_.end()) found = rows_.emplace(key, One{RowId(++ids_), row}).first;
    ++found->second.row.seen;
    found->second.has_grown = true;
  }
  template <class Put>
  void put(Put&& put) {
    for (auto& [key, one] : rows_) {
      if (std::exchange(one.has_grown, false)) put(one.id, one.row);
    }
  }

 private:
  struct One {
    RowId id;
    Row row;
    bool has_grown = false;
  };
  uint32_t& ids_;
  std::map<Key, One> rows_;
};

}  // namespace phlox::sampler
