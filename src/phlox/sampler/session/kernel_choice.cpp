#include "phlox/sampler/session/kernel_choice.h"

#include <fmt/format.h>

#include "phlox/sampler/observe/plan.h"

namespace phlox::sampler {

Result<std::unique_ptr<KernelSources>> open_kernel(Host& host, const std::vector<pid_t>& roots,
                                                   const Options& options, std::string& why_not) {
  if (!wants_kernel({options.mode, options.native})) return nullptr;
  const std::string retry = roots.size() == 1 && !options.launched
                                ? fmt::format("record --mode kernel -p {}", roots.front())
                                : std::string("record --mode kernel");
  auto kernel = KernelSources::open(host, options.rate_hz, options.max_overhead_percent,
                                    options.native.has_value(), options.follow, retry);
  if (kernel || options.mode == Mode::kernel) return kernel;
  why_not = kernel.error().message;
  return nullptr;
}

Result<void> check_kernel(std::unique_ptr<KernelSources>& kernel, const std::vector<Finder::Found>& programs,
                          const Options& options, std::string& why_not) {
  if (!kernel) return {};
  bool any = programs.empty();
  for (const auto& one : programs) {
    const auto place = kernel->place(*one.program, one.pidfd);
    if (!place && options.mode == Mode::kernel) return fail(place);
    any |= place.has_value();
    if (!place) why_not = place.error().message;
  }
  if (!any) kernel.reset();
  return {};
}

}  // namespace phlox::sampler
