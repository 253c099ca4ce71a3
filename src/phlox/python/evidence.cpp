#include "phlox/python/evidence.h"

#include <cstring>

namespace phlox::python {
namespace {

struct Wanted {
  size_t owner = 0;
  RemoteAddress address;
  std::span<const std::byte> before;
};

// Reads what is wanted and says of whom it differs or cannot be read.
void compare(memory::RemoteMemory& memory, std::span<const Wanted> wanted, std::vector<bool>& same) {
  size_t bytes = 0;
  for (const Wanted& one : wanted) bytes += one.before.size();
  std::vector<std::byte> now(bytes);
  std::vector<memory::Range> ranges;
  ranges.reserve(wanted.size());
  size_t at = 0;
  for (const Wanted& one : wanted) {
    ranges.push_back({one.address, std::span(now).subspan(at, one.before.size())});
    at += one.before.size();
  }
  for (size_t from = 0; from < ranges.size();) {
    const size_t whole = memory.read(std::span<const memory::Range>(ranges).subspan(from));
    for (size_t i = from; i < from + whole; ++i) {
      if (std::memcmp(ranges[i].into.data(), wanted[i].before.data(), ranges[i].into.size()) != 0)
        same[wanted[i].owner] = false;
    }
    from += whole;
    if (from < ranges.size()) same[wanted[from++].owner] = false;
  }
}

}  // namespace

std::vector<bool> still_hold(memory::RemoteMemory& memory, std::span<const Evidence> all) {
  std::vector<bool> same(all.size(), true);
  std::vector<Wanted> wanted;
  for (size_t owner = 0; owner < all.size(); ++owner) {
    for (const Evidence::Item& item : all[owner].items_) {
      wanted.push_back({owner, item.address, std::span(all[owner].bytes_).subspan(item.offset, item.size)});
      if (wanted.size() < memory::RemoteMemory::kMaxRanges) continue;
      compare(memory, wanted, same);
      wanted.clear();
    }
  }
  compare(memory, wanted, same);
  return same;
}

}  // namespace phlox::python
