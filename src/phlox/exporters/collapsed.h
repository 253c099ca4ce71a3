// The collapsed (folded) format of flame graph scripts: one line for each stack, root first, frames joined by
// ';', a space, an integer weight. Read by inferno, flamegraph.pl, speedscope, Pyroscope and many more.
// docs/formats.md is the reference.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "phlox/view/view.h"

namespace phlox::exporters {

// The name of a frame: "name (file)" for a function, "name (file:line)" where frames are lines.
std::string collapsed_frame(const view::Label& label, bool by_line);

// Backslash, ';' and control characters become \\, \x3b,
// , \xNN: neither separator occurs in a name, and unescape_collapsed returns the name, byte for byte.
std::string escape_collapsed(std::string_view name);
std::string unescape_collapsed(std::string_view text);

// One line for every node with weight of its own, in the order of the tree. The weights add up to the tree's
// total.
void write_collapsed(const view::CallTree& tree, bool by_line, std::ostream& out);

}  // namespace phlox::exporters
