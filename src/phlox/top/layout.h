// The lines of a screen of a given size. Pure: text and its meaning, no colours, no cursor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/top/controls.h"
#include "phlox/top/picture.h"

namespace phlox::top {

enum class Style : uint8_t { plain, title, header, chosen, faint, hot, warning, running, runnable, gil };

struct Span {
  std::string text;
  Style style = Style::plain;
};
using Line = std::vector<Span>;

struct Size {
  size_t columns = 80, rows = 24;
};

// The head, the same for every page.
struct Head {
  std::string title;   // "pid 4711: python3 app.py"
  std::string status;  // "live", "ended: exit 0", "still being recorded"
  Nanoseconds elapsed = 0;
};

// At most `size.rows` lines, none wider than `size.columns`.
std::vector<Line> layout(const Head& head, const Picture& picture, const Controls& controls, Size size);
// Rows of the page that fit.
size_t visible_rows(Size size);
// As text, without features of a terminal: the head and the first rows.
std::string as_text(const Head& head, const Picture& picture, const Controls& controls, Size size);

// Truncated to this many columns (the last one is then "…"), or padded with blanks.
std::string fit(std::string_view text, size_t columns);

}  // namespace phlox::top
