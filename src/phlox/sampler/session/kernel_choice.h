// Whether the recorder looks from inside the kernel: asked once before the programs are found, and once more
// with them. Decides; what looks is KernelSources.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/sampler/session/kernel_sources.h"
#include "phlox/sampler/session/program_finder.h"
#include "phlox/sampler/session/recorder.h"

namespace phlox::sampler {

// What looks from inside the kernel, where that is asked for, or may be had and nothing else is asked for.
// Null: threads of ours look; `why_not` says why, where nobody asked.
Result<std::unique_ptr<KernelSources>> open_kernel(const std::vector<pid_t>& roots, const Options& options,
                                                   std::string& why_not);

// Who asks for this way gets it for what is there, or an error; what comes later may be looked at otherwise.
// Who does not has it where any of these can be looked at so.
Result<void> check_kernel(std::unique_ptr<KernelSources>& kernel,
                          const std::vector<ProgramFinder::Found>& programs, const Options& options,
                          std::string& why_not);

}  // namespace phlox::sampler
