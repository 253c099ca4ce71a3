#include "phlox/python/layout_table.h"

#include <array>

namespace phlox::python {
namespace {

// A row's offsets are derived from that version's headers (rows/*.inc, by tools/layouts); what cannot be read off a header, how the
// version behaves, is said here, as the difference from the version before.
Layout row(std::string_view name, uint8_t major, uint8_t minor, void (*offsets)(Layout&), void (*traits)(Traits&)) {
  Layout l;
  l.name = name;
  l.major = major;
  l.minor = minor;
  offsets(l);
  traits(l.traits);
  return l;
}

void objects(Traits& t) {  // what 3.6 to 3.9 share
  t.anchor = FrameAnchor::frame_object;
  t.instruction = InstructionUnit::lasti_bytes;
  t.lines = LineTable::lnotab;
  t.code_proof = CodeProof::contents;
  t.gil = GilPlace::runtime;
  t.owner.entry = 255;
  t.managed_dict = ManagedDict::none;
  t.has_data_stack = false;
  t.interpreter_frames = false;
}
void python27(Traits& t) {
  objects(t);
  t.lines = LineTable::lnotab_unsigned;
  t.gil = GilPlace::symbols;
  t.python2 = true;
}
void python36(Traits& t) {
  objects(t);
  t.gil = GilPlace::symbols;
}
void python310(Traits& t) {
  objects(t);
  t.instruction = InstructionUnit::lasti_code_units;
  t.lines = LineTable::pep626;
}
void python311(Traits& t) {
  t = Traits{};
  t.anchor = FrameAnchor::cframe;
  t.instruction = InstructionUnit::prev_instr;
  t.code_proof = CodeProof::contents;
  t.gil = GilPlace::runtime;
  t.owner.entry = 255;
  t.managed_dict = ManagedDict::two_words;
}
void python312(Traits& t) {
  python311(t);
  t.code_proof = CodeProof::co_version;
  t.gil = GilPlace::interpreter;
  t.owner.entry = 3;  // FRAME_OWNED_BY_CSTACK (Include/internal/pycore_frame.h)
  t.managed_dict = ManagedDict::tagged;
}
void python313(Traits& t) {
  python312(t);
  t.anchor = FrameAnchor::current_frame;
  t.instruction = InstructionUnit::instr_ptr;
  t.managed_dict = ManagedDict::inline_values;
}

const std::array kRows = {
    row("2.7", 2, 7, [](Layout& l) {
#include "phlox/python/rows/2.7.inc"
    }, python27),
    row("3.6", 3, 6, [](Layout& l) {
#include "phlox/python/rows/3.6.inc"
    }, python36),
    row("3.7", 3, 7, [](Layout& l) {
#include "phlox/python/rows/3.7.inc"
    }, objects),
    row("3.8", 3, 8, [](Layout& l) {
#include "phlox/python/rows/3.8.inc"
    }, objects),
    row("3.9", 3, 9, [](Layout& l) {
#include "phlox/python/rows/3.9.inc"
    }, objects),
    row("3.10", 3, 10, [](Layout& l) {
#include "phlox/python/rows/3.10.inc"
    }, python310),
    row("3.11", 3, 11, [](Layout& l) {
#include "phlox/python/rows/3.11.inc"
    }, python311),
    row("3.12", 3, 12, [](Layout& l) {
#include "phlox/python/rows/3.12.inc"
    }, python312),
    row("3.13", 3, 13, [](Layout& l) {
#include "phlox/python/rows/3.13.inc"
    }, python313),
};

}  // namespace

std::span<const Layout> layouts() { return kRows; }

const Layout* find_layout(uint8_t major, uint8_t minor, Build build) {
  for (const Layout& layout : kRows) {
    if (layout.major == major && layout.minor == minor && layout.traits.debug == build.debug &&
        layout.traits.free_threaded == build.free_threaded) {
      return &layout;
    }
  }
  return nullptr;
}

}  // namespace phlox::python
