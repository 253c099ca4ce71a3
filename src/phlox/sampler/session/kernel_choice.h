// Whether the recorder samples inside the kernel: decided once before the programs are found, and once more
// with them. Only decides; KernelSources samples.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/sampler/session/finder.h"
#include "phlox/sampler/session/host.h"
#include "phlox/sampler/session/kernel_sources.h"
#include "phlox/sampler/session/recorder.h"

namespace phlox::sampler {

// The capture inside the kernel, if it is requested, or if it is possible and nothing else is requested.
// Null: threads of ours sample; `why_not` has the reason if it was not requested.
Result<std::unique_ptr<KernelSources>> open_kernel(Host& host, const std::vector<pid_t>& roots,
                                                   const Options& options, std::string& why_not);

// If this mode is requested, it must work for the present programs, or there is an error; later ones may be
// sampled in another mode. Otherwise it is used if any of these can be sampled that way.
Result<void> check_kernel(std::unique_ptr<KernelSources>& kernel, const std::vector<Finder::Found>& programs,
                          const Options& options, std::string& why_not);

}  // namespace phlox::sampler
