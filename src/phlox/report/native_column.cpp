#include "phlox/report/native_column.h"

namespace phlox::report {

std::string native_words(const NativeBeneath& native) {
  if (native.is_library())
    return fitted_name(plain(native.module), kWidestName - 20) + " " + share_words(native.share) + " of CPU";
  if (native.name.empty()) return {};
  const std::string share = share_words(native.share);
  const std::string library = native.module.empty() ? "" : " (" + plain(native.module) + ")";
  constexpr size_t kLeast = 20;
  const size_t rest = library.size() + share.size() + 1;
  const size_t room = kWidestName > rest + kLeast ? kWidestName - rest : kLeast;
  return fitted_name(plain(native.name), room) + library + " " + share;
}

}  // namespace phlox::report
