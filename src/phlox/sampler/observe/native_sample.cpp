#include "phlox/sampler/observe/native_sample.h"

#include <cstring>

namespace phlox::sampler {

bool parse_native_sample(std::span<const std::byte> bytes, NativeSample& into) {
  if (bytes.size() < sizeof(NativeHead)) return false;
  std::memcpy(&into.head, bytes.data(), sizeof(NativeHead));
  bytes = bytes.subspan(sizeof(NativeHead));
  if (into.head.stack > bytes.size()) return false;
  into.stack = bytes.first(into.head.stack);
  bytes = bytes.subspan(into.head.stack);
  if (into.head.groups > bytes.size() / sizeof(EvaluationStart)) return false;
  const size_t starts = into.head.groups * sizeof(EvaluationStart);
  if (into.head.kernel != (bytes.size() - starts) / sizeof(uint64_t)) return false;
  into.starts.resize(into.head.groups);
  if (!into.starts.empty()) std::memcpy(into.starts.data(), bytes.data(), starts);
  into.kernel.resize(into.head.kernel);
  if (!into.kernel.empty()) {
    std::memcpy(into.kernel.data(), bytes.data() + starts, into.kernel.size() * sizeof(uint64_t));
  }
  return true;
}

}  // namespace phlox::sampler
