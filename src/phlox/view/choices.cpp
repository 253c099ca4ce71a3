#include "phlox/view/choices.h"

namespace phlox::view {

using namespace profile;

std::string_view show_name(Show show) {
  switch (show) {
    case Show::everything:
      return "everything";
    case Show::work:
      return "work";
    case Show::computing:
      return "computing";
    case Show::waiting:
      return "waiting";
  }
  return "";
}

}  // namespace phlox::view
