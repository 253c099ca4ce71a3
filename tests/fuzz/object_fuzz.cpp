// The input is a target's memory: whatever lies in it, code objects and thread names are read without a
// crash, an endless loop or a gigantic allocation. The first byte chooses the row.
#include <algorithm>
#include <cstring>

#include "phlox/python/code_object.h"
#include "phlox/python/layout_table.h"
#include "phlox/python/thread_names.h"

namespace {

constexpr uint64_t kStart = 0x10000;

class InputMemory : public phlox::memory::RemoteMemory {
 public:
  explicit InputMemory(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t read(std::span<const phlox::memory::Range> ranges) override {
    for (size_t i = 0; i < ranges.size(); ++i) {
      const uint64_t at = ranges[i].address.value - kStart;
      if (at > bytes_.size() || ranges[i].into.size() > bytes_.size() - at) return i;
      if (!ranges[i].into.empty())
        std::memcpy(ranges[i].into.data(), bytes_.data() + at, ranges[i].into.size());
    }
    return ranges.size();
  }
  using RemoteMemory::read;
  const std::byte* find(phlox::RemoteAddress address, size_t size) {
    const uint64_t at = address.value - kStart;
    return at <= bytes_.size() && size <= bytes_.size() - at ? bytes_.data() + at : nullptr;
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox;
  if (size < 1) return 0;
  const auto rows = python::layouts();
  python::Layout layout = rows[data[0] % rows.size()];
  layout.interpreter.modules = 0;
  InputMemory memory(std::as_bytes(std::span(data + 1, size - 1)));
  python::CodeCapture capture;
  if (python::capture_code(layout, memory, RemoteAddress(kStart), capture)) {
    const auto code = python::decode_code(layout, capture);
    if (code) {
      for (int32_t offset : {-1, 0, 10, 1000}) (void)code->line(offset);
    }
    const python::CodeIdentity identity(layout, capture);
    if (!identity.holds(memory)) __builtin_trap();
  }
  (void)python::read_thread_names(layout, memory, RemoteAddress(kStart));
  return 0;
}
