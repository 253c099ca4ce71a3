// Why something could not be read from a running target. Normal, small, counted by the caller: the thread
// moved on, a page was unmapped, a torn pointer led to a wrong place. Never an exception, never a zero that
// looks like a value.
#pragma once

#include <cstdint>
#include <tl/expected.hpp>

#include "phlox/base/address.h"

namespace phlox::python {

enum class FaultKind : uint8_t {
  unreadable,   // no bytes at the address
  implausible,  // bytes that cannot be the expected object: a length, a kind, a pointer
  too_large,    // more than the cap allows
  unsupported,  // the layout does not know a field that is needed
};

struct ReadFault {
  FaultKind kind = FaultKind::unreadable;
  RemoteAddress address;
};

template <class T>
using Read = tl::expected<T, ReadFault>;

inline tl::unexpected<ReadFault> fault(FaultKind kind, RemoteAddress address) {
  return tl::unexpected<ReadFault>(ReadFault{kind, address});
}

}  // namespace phlox::python
