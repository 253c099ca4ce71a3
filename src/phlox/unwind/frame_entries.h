// The entries of .eh_frame and .debug_frame: the CIEs, each the common part of several functions, and the
// FDEs, each one function's range and instructions. Called by TableBuilder. It executes no instruction
// (cfi_machine.h does) and never follows a pointer out of the section. The bytes are hostile: reading ends
// after one pass for the CIEs and one for the FDEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/base/byte_reader.h"

namespace phlox::unwind {

// A section of frame information, as it is in the image.
struct FrameSection {
  std::span<const std::byte> bytes;
  ImageAddress address;      // of its first byte, for pc-relative pointers
  bool debug_frame = false;  // .debug_frame: another form of the CIE pointer
  ImageAddress data_base;    // data-relative pointers count from here (.eh_frame_hdr)
  ImageAddress text_base;
};

// Call frame instructions, and the address of the first.
struct CfiCode {
  std::span<const std::byte> bytes;
  uint64_t address = 0;
};

struct Cie {
  uint64_t code_align = 1;
  int64_t data_align = 1;
  uint8_t encoding = 0;  // of FDE addresses
  bool has_augmentation_size = false;
  bool signal = false;
  CfiCode code;  // comes before that of each function
};

struct Fde {
  uint64_t start = 0, end = 0;
  const Cie* cie = nullptr;
  CfiCode code;
};

struct FrameEntries {
  std::deque<Cie> cies;   // never moved: FDEs point at them
  std::vector<Fde> fdes;  // in the order of the section
  size_t damaged = 0;     // CIEs and FDEs that are damaged or of an unknown form
};

// `return_address`: the number of its column; a CIE with another one is of an unknown form.
FrameEntries read_entries(const FrameSection& section, uint64_t return_address);

// A pointer in one of .eh_frame's encodings; `start` is the address of the cursor's first byte.
std::optional<uint64_t> read_pointer(ByteReader& in, uint8_t encoding, uint64_t start,
                                     const FrameSection& section);

}  // namespace phlox::unwind
