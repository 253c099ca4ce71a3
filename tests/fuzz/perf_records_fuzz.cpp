// A ring of perf records between two positions, and what rides on our own ring: no crash, no read outside, an
// end. The first bytes choose the machine, what the event asks for, and where in the ring reading begins.
#include <elf.h>
#include <linux/perf_event.h>

#include <cstdlib>
#include <cstring>

#include "phlox/perf/records.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/capture/perf_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox::sampler;
  namespace perf = phlox::perf;
  if (size < 8) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(8);
  perf::Shape shape = perf::native_shape((data[0] & 1) != 0 ? EM_AARCH64 : EM_X86_64);
  if ((data[0] & 2) != 0) shape.sample_type |= PERF_SAMPLE_CALLCHAIN;
  if ((data[0] & 4) != 0) shape.sample_id_all = false;
  uint16_t start = 0;
  std::memcpy(&start, data + 2, sizeof start);

  std::vector<std::byte> ring(4096);
  const size_t used = std::min(bytes.size(), ring.size());
  for (size_t i = 0; i < used; ++i) ring[(start + i) % ring.size()] = bytes[i];
  perf::RingReader reader(ring, start, start + used);
  size_t seen = 0;
  Preempted state;
  for (auto record = reader.next(); !record.empty(); record = reader.next()) {
    if ((seen += record.size()) > used) std::abort();
    const perf::Record parsed = perf::parse_record(record, shape);
    state.take(parsed);
    if (state.kernel_frames().size() > kMostKernelFrames) std::abort();
    if (const auto* sample = std::get_if<perf::SampleRecord>(&parsed)) {
      if (sample->stack.size() + sample->callchain.size() > record.size()) std::abort();
    }
    if (const auto* map = std::get_if<perf::MapRecord>(&parsed)) {
      if (map->path.size() + map->build_id.size() > record.size()) std::abort();
    }
  }
  NativeSample sample;
  if (parse_native_sample(bytes, sample) && sample.stack.size() +
                                                    sample.starts.size() * sizeof(EvaluationStart) +
                                                    sample.kernel.size() * sizeof(uint64_t) >
                                                bytes.size()) {
    std::abort();
  }
  return 0;
}
