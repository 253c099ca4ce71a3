// Names and numbers for people in a picture, escaped for their place. web/src/words.ts has the same number
// formats. Names come from a target: any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/text.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

// Valid UTF-8 that XML may contain and that shows what is there: invalid bytes become U+FFFD; control
// characters and those that change the direction of text become \xNN or \uNNNN in letters.
std::string displayable(std::string_view name);

// The bytes of the text's first character, if it is visible. 0: it is a control character or changes the
// direction of text, or the text does not begin with valid UTF-8.
size_t visible_character(std::string_view text);

// For text and attribute values of XML. The input is displayable.
std::string xml_escaped(std::string_view text);

// The longest beginning of at most `columns`, ending in "…" if the text is truncated; "" if there is no room
// for two characters and the dots.
std::string fit_columns(std::string_view text, size_t columns);

// The same for a function's name: in "libfoo.so+0x1a40", only the end distinguishes functions without a name,
// so the end stays: "lib…+0x1a40".
std::string fit_name(std::string_view name, size_t columns);

// Lines of at most `columns`, broken at spaces.
std::vector<std::string> wrap_columns(std::string_view text, size_t columns);

// JSON that is valid in markup: its <, > and & become \u escapes with the same meaning.
std::string safe_in_markup(std::string_view json);

std::string size_words(uint64_t bytes);  // "12.3 MB"
// "1.23 s", "1,234 samples", "1,234" of an event, "1.23 MB"
std::string weight_words(int64_t value, view::Weight weight);
std::string share_words(double part, double whole);  // "12.3 %", "< 0.01 %"

}  // namespace phlox::exporters
