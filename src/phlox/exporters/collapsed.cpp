#include "phlox/exporters/collapsed.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "phlox/exporters/words.h"

namespace phlox::exporters {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// inferno and difffolded.pl take "a;b 12 34" for a pair of counts, so a leaf called "b 12" must not end in a
// number.
void keep_last_word_apart(std::string& leaf) {
  size_t at = leaf.size();
  while (at > 0 && (is_digit(leaf[at - 1]) || leaf[at - 1] == '.')) --at;
  if (at > 0 && at < leaf.size() && leaf[at - 1] == ' ') leaf.replace(at - 1, 1, "\\x20");
}

}  // namespace

std::string escape_collapsed(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  for (size_t at = 0; at < name.size();) {
    const char c = name[at];
    const size_t visible = visible_character(name.substr(at));
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == ';' || visible == 0) {
      // Byte by byte: the later bytes of an invisible character do not begin a visible one.
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += name.substr(at, visible);
    }
    at += std::max<size_t>(visible, 1);
  }
  return out;
}

std::string unescape_collapsed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string_view rest = text.substr(i);
    if (rest.starts_with("\\\\")) {
      out += '\\';
      i += 1;
    } else if (rest.starts_with("\\n")) {
      out += '\n';
      i += 1;
    } else if (rest.starts_with("\\x") && rest.size() >= 4 && hex_value(rest[2]) >= 0 &&
               hex_value(rest[3]) >= 0) {
      out += static_cast<char>(hex_value(rest[2]) * 16 + hex_value(rest[3]));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string collapsed_frame(const view::Label& label, bool by_line) {
  std::string location = label.file;
  if (by_line && label.line != 0 && !location.empty()) location += fmt::format(":{}", label.line);
  // Native functions need their library; for Python the file is enough.
  if (label.kind == profile::FrameKind::native && !label.module.empty())
    location = location.empty() ? label.module : label.module + ": " + location;
  return location.empty() ? label.whole_name() : fmt::format("{} ({})", label.whole_name(), location);
}

void write_collapsed(const view::CallTree& tree, bool by_line, std::ostream& out) {
  std::vector<std::string> names;
  names.reserve(tree.labels.size());
  for (const view::Label& label : tree.labels)
    names.push_back(escape_collapsed(collapsed_frame(label, by_line)));

  std::vector<uint32_t> path;
  std::string line;
  for (uint32_t i = 0; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].self == 0) continue;
    path.clear();
    for (uint32_t node = i; node != 0; node = tree.nodes[node].parent) path.push_back(node);
    // Weight of the root itself has no frame.
    if (path.empty()) path.push_back(0);
    line.clear();
    for (size_t k = path.size(); k-- > 0;) {
      std::string name = names[tree.nodes[path[k]].label];
      if (k == 0) keep_last_word_apart(name);
      line += name;
      line += k == 0 ? ' ' : ';';
    }
    // It would be taken for a comment.
    if (line.starts_with('#')) line.replace(0, 1, "\\x23");
    out << line << tree.nodes[i].self << '\n';
  }
}

}  // namespace phlox::exporters
