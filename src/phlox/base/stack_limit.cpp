#include "phlox/base/stack_limit.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>

namespace phlox {
namespace {

constexpr rlim_t kLeast = rlim_t{1} << 20;
// The limit at the start; nothing to restore if `changed` is false.
rlimit before{};
bool changed = false;

// The C library read the limit at the program's start, for its later threads.
void enlarge_later_threads() {
  pthread_attr_t attributes;
  size_t size = 0;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  if (::pthread_attr_getstacksize(&attributes, &size) == 0 && size < kLeast &&
      ::pthread_attr_setstacksize(&attributes, kLeast) == 0)
    ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

}  // namespace

bool ensure_stack() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeast) return true;
  before = limit;
  limit.rlim_cur = kLeast;
  limit.rlim_max = std::max(limit.rlim_max, kLeast);
  if (::setrlimit(RLIMIT_STACK, &limit) != 0) return false;
  changed = true;
  enlarge_later_threads();
  return true;
}

void restore_stack_limit() {
  if (changed) ::setrlimit(RLIMIT_STACK, &before);
}

}  // namespace phlox
