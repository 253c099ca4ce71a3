// Records of the ring of the capture inside the kernel, and the samples that are made of them: no crash, no
// read outside, an end. The first byte chooses the layout, and whether there are native halves; then each
// record has its length before it, two bytes.
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "phlox/python/layout_table.h"
#include "phlox/sampler/kernel/kernel_records.h"
#include "phlox/sampler/kernel/kernel_source.h"
#include "phlox/sampler/observe/records.h"
#include "phlox/sampler/session/kernel_starts.h"

namespace {

class NoMemory : public phlox::memory::RemoteMemory {
 public:
  using RemoteMemory::read;
  size_t read(std::span<const phlox::memory::Range>) override { return 0; }
};

// What the consumer would be given, and frees.
void empty(phlox::sampler::Ring& ring, const phlox::python::Layout& layout) {
  for (auto bytes = ring.front(); bytes.data() != nullptr; bytes = ring.front()) {
    phlox::sampler::CodeRecord record;
    if (bytes.size() >= sizeof record) std::memcpy(&record, bytes.data(), sizeof record);
    if (bytes.size() == sizeof record && record.kind == phlox::sampler::RecordKind::code) {
      (void)phlox::python::decode_code(layout, *ring.take_handed().code);
    }
    ring.pop();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox::sampler;
  if (size < 1) return 0;
  const auto layouts = phlox::python::layouts();
  phlox::python::Interpreter interpreter;
  interpreter.layout = layouts[data[0] % 128 % layouts.size()];
  auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  NoMemory memory;
  Ring ring(size_t{1} << 16);
  KernelSource source(interpreter, memory, ring, data[0] >= 128, [] {});
  KernelStarts starts;
  while (bytes.size() > 2) {
    uint16_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes = bytes.subspan(2);
    const auto one = bytes.first(std::min<size_t>(length, bytes.size()));
    bytes = bytes.subspan(one.size());
    const KernelRecord record = parse_kernel_record(one);
    if (const auto* sample = std::get_if<KernelSample>(&record)) source.take(*sample);
    if (const auto* code = std::get_if<KernelCode>(&record)) source.take(*code);
    if (const auto* trace = std::get_if<kernel_trace>(&record)) source.take(*trace);
    if (const auto* native = std::get_if<KernelNative>(&record)) source.take(*native);
    if (const auto* wait_target = std::get_if<KernelWaitTarget>(&record)) source.take(*wait_target);
    if (const auto* exit = std::get_if<kernel_exit>(&record)) source.take(*exit);
    if (const auto* exec = std::get_if<kernel_exec>(&record)) {
      source.take(exec->ended);
      starts.add(*exec, (exec->ended.thread & 1) != 0);
    }
    if (const auto* birth = std::get_if<kernel_birth>(&record)) starts.add(*birth);
    if (const auto* exit = std::get_if<kernel_exit>(&record)) starts.take(*exit);
    empty(ring, interpreter.layout);
  }
  source.end_all(0, [](pid_t) { return std::optional<kernel_thread>(); });
  empty(ring, interpreter.layout);
  return 0;
}
