// What Parca's profile store takes: a WriteRawRequest of parca-dev/parca,
// proto/parca/profilestore/v1alpha1/profilestore.proto, with the series of process_series.h.
#pragma once

#include <string>

#include "phlox/base/result.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

// Empty: nothing passes the choices.
Result<std::string> parca_message(const profile::Profile& profile, const view::Choices& choices,
                                  double rate_hz);

}  // namespace phlox::exporters
