#include "phlox/sampler/session/kernel_backend.h"

namespace phlox::sampler {
namespace {

// Less than a thirtieth of the kernel's smallest ring.
constexpr size_t kLittleOfKernel = size_t{512} << 10;

}  // namespace

Backend::Begin KernelBackend::prepare(Program& program, const Descriptor& pidfd) {
  if (program.kernel_id)
    return [this, &program](Ring& ring) { return Begun{kernel_->begin_born(program, ring), {}}; };
  kernel_->note_start(program);
  auto place = kernel_->place(program, pidfd);
  // The kernel has its times, and reports its end.
  if (!place && host_.has_ended(pidfd)) return {};
  return [this, &program, place = std::move(place)](Ring& ring) { return begin(program, place, ring); };
}

Backend::Begun KernelBackend::begin(Program& program, const Result<kernel_process>& place, Ring& ring) {
  if (place) {
    if (auto source = kernel_->begin(program, *place, ring)) return {std::move(source), {}};
  }
  kernel_->forget_start(program);
  return {threads_->begin(program, ring), place ? "too many processes for that" : place.error().message};
}

bool KernelBackend::came_much() {
  return kernel_->came() > kLittleOfKernel;
}

bool KernelBackend::has_newborn(Nanoseconds now) const {
  return now - kernel_->last_birth() < KERNEL_NEWBORN_FOR;
}

}  // namespace phlox::sampler
