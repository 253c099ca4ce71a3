#include "phlox/unwind/decoded_code.h"

#include <new>

namespace phlox::unwind {

Code::Code(std::span<const std::byte> bytes)
    : bytes_(bytes), notes_(static_cast<Note*>(std::calloc(bytes.size() + 1, sizeof(Note)))) {
  if (notes_ == nullptr) throw std::bad_alloc();
}

const Instruction& Code::at(uint32_t offset) {
  static const Instruction kOutside;
  if (offset >= bytes_.size()) return kOutside;
  Note& n = note(offset);
  if (n.instruction == 0) {
    known_.push_back(decode_x86_64(bytes_.subspan(offset)));
    n.instruction = static_cast<uint32_t>(known_.size());
  }
  return known_[n.instruction - 1];
}

}  // namespace phlox::unwind
