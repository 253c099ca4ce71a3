#include "phlox/exporters/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/number_words.h"
#include "phlox/base/utf8.h"

namespace phlox::exporters {
std::string displayable(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  for (size_t at = 0; at < name.size();) {
    const auto [code, bytes, valid] = first_character(name.substr(at));
    if (is_control(code)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(code));
    } else if (is_deceiving(code)) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    } else if (!valid || code == 0xfffe || code == 0xffff) {
      out += "\xef\xbf\xbd";
    } else {
      out += name.substr(at, bytes);
    }
    at += bytes;
  }
  return out;
}

size_t visible_character(std::string_view text) {
  if (text.empty()) return 0;
  const auto [code, bytes, valid] = first_character(text);
  return valid && !is_control(code) && !is_deceiving(code) ? bytes : 0;
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string fit_columns(std::string_view text, size_t columns) {
  if (text.size() <= columns || columns_of(text) <= columns) return std::string(text);
  if (columns < 3) return {};
  std::string out(first_columns(text, columns - 1));
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  if (std::count_if(out.begin(), out.end(), begins) < 2) return {};
  while (out.ends_with(' ')) out.pop_back();
  return out + "…";
}

std::string fit_name(std::string_view name, size_t columns) {
  const size_t plus = name.rfind("+0x");
  const bool unnamed = plus != std::string_view::npos && plus > 0 &&
                       name.find_first_not_of("0123456789abcdef", plus + 3) == std::string_view::npos;
  if (!unnamed || columns_of(name) <= columns) return fit_columns(name, columns);
  const std::string_view address = name.substr(plus);
  if (columns < address.size() + 1) return fit_columns(name, columns);
  std::string module = fit_columns(name.substr(0, plus), columns - address.size());
  return (module.empty() ? "…" : module) + std::string(address);
}

std::vector<std::string> wrap_columns(std::string_view text, size_t columns) {
  std::vector<std::string> lines;
  std::string line;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(' ', at), text.size());
    std::string word(text.substr(at, end - at));
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > columns) {
      lines.push_back(std::move(line));
      line = std::move(word);
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    at = end + 1;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

// These characters occur in JSON only inside strings, where \u escapes mean the same.
std::string safe_in_markup(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string weight_words(int64_t value, view::Weight weight) {
  if (weight == view::Weight::samples) {
    return count_words(static_cast<uint64_t>(value)) + (value == 1 ? " sample" : " samples");
  }
  if (weight == view::Weight::count) return count_words(static_cast<uint64_t>(std::max<int64_t>(0, value)));
  if (weight == view::Weight::bytes) return byte_words(static_cast<uint64_t>(std::max<int64_t>(0, value)));
  return time_words(value);
}

std::string share_words(double part, double whole) {
  return phlox::share_words(whole > 0 ? part / whole : 0);
}

std::string size_words(uint64_t bytes) {
  return fmt::format("{:.1f} MB", double(bytes) / 1e6);
}

}  // namespace phlox::exporters
