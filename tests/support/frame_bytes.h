// Hand-made call frame information and stacks for the unwinder's tests.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "phlox/unwind/table_builder.h"

namespace phlox::test {

// An .eh_frame (or .debug_frame) at a fixed image address.
//
//   FrameBytes cfi;  const size_t cie = cfi.cie({0x0c, 7, 8, 0x90, 1});
//   cfi.fde(cie, 0x1000, 0x20, {0x41, 0x0e, 16});
class FrameBytes {
 public:
  static constexpr uint64_t kAddress = 0x100000;

  // Returns the entry's offset. code_align 1, data_align -8, absolute 8-byte addresses unless `augmentation`
  // has "R".
  size_t cie(std::initializer_list<uint8_t> instructions, std::string_view augmentation = "",
             uint8_t encoding = 0, uint8_t ra = 16) {
    std::vector<uint8_t> body;
    put32(body, debug_frame ? 0xffffffff : 0);
    body.push_back(1);
    for (const char c : augmentation) body.push_back(static_cast<uint8_t>(c));
    body.push_back(0);
    body.push_back(1);
    body.push_back(0x78);
    body.push_back(ra);
    if (!augmentation.empty()) {
      const bool has_encoding = augmentation.find('R') != std::string_view::npos;
      body.push_back(has_encoding ? 1 : 0);
      if (has_encoding) body.push_back(encoding);
    }
    body.insert(body.end(), instructions);
    return entry(body);
  }
  size_t fde(size_t cie_at, uint64_t start, uint64_t size, std::vector<uint8_t> instructions,
             bool augmented = false) {
    std::vector<uint8_t> body;
    put32(body, static_cast<uint32_t>(debug_frame ? cie_at : bytes.size() + 4 - cie_at));
    put64(body, start);
    put64(body, size);
    if (augmented) body.push_back(0);
    body.insert(body.end(), instructions.begin(), instructions.end());
    return entry(body);
  }
  size_t entry(std::vector<uint8_t> body) {
    while (body.size() % 4 != 0) body.push_back(0);
    const size_t at = bytes.size();
    put32(bytes, static_cast<uint32_t>(body.size()));
    bytes.insert(bytes.end(), body.begin(), body.end());
    return at;
  }
  unwind::FrameSection section() const {
    return {std::as_bytes(std::span(bytes)), ImageAddress(kAddress), debug_frame, {}, {}};
  }
  unwind::UnwindTable table(uint16_t machine = EM_X86_64) const {
    const auto one = section();
    return unwind::build_table({&one, 1}, machine);
  }

  static void put32(std::vector<uint8_t>& to, uint32_t v) {
    for (int i = 0; i < 4; ++i) to.push_back(static_cast<uint8_t>(v >> (8 * i)));
  }
  static void put64(std::vector<uint8_t>& to, uint64_t v) {
    put32(to, static_cast<uint32_t>(v));
    put32(to, static_cast<uint32_t>(v >> 32));
  }

  bool debug_frame = false;
  std::vector<uint8_t> bytes;
};

}  // namespace phlox::test
