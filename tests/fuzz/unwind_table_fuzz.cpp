// Any .eh_frame or .debug_frame, any stack: no crash, no endless loop, a table that its own bytes give back.
#include <elf.h>

#include <cstdlib>
#include <cstring>

#include "phlox/unwind/table_builder.h"
#include "phlox/unwind/table_format.h"
#include "phlox/unwind/unwinder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox;
  using namespace phlox::unwind;
  if (size < 1) return 0;
  const uint16_t machine = (data[0] & 1) != 0 ? EM_AARCH64 : EM_X86_64;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  const FrameSection section{bytes, ImageAddress(0x1000), (data[0] & 2) != 0, ImageAddress(0x1000),
                             ImageAddress(0x1000)};
  const UnwindTable table = build_table({&section, 1}, machine);
  const auto kept = table_bytes(table);
  const auto back = parse_table(kept);
  if (back == nullptr || !(*back == table)) std::abort();
  parse_table(bytes);
  for (size_t i = 1; i < table.row_count(); ++i) {
    if (table.row_start(i) <= table.row_start(i - 1)) std::abort();
  }
  if (table.row_count() == 0) return 0;
  ModuleMap map;
  map.add(RemoteAddress(4096), RemoteAddress(uint64_t{1} << 47), 0, 0);
  map.settle();
  Unwinder unwinder(map, machine, [&table](uint32_t) { return &table; });
  UnwindInput input;
  input.stack = bytes;
  input.stack_start = RemoteAddress(0x7ffe0000);
  NativeStack out;
  for (size_t i = 0; i < table.row_count() && i < 64; ++i) {
    input.registers = {
        RemoteAddress(table.row_start(i).value), RemoteAddress(0x7ffe0000), 0x7ffe0010, 0x2000, true, true};
    unwinder.unwind(input, out);
    if (out.frames.size() > Unwinder::kMaxFrames) std::abort();
  }
  return 0;
}
