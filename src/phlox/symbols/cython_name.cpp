#include "phlox/symbols/cython_name.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace phlox::symbols {
namespace {

constexpr size_t kLongestCythonName = 4096;
constexpr size_t kMostParts = 64;

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// Removes a number of up to four digits at the front; 0 if there is none.
size_t take_length(std::string_view& text) {
  size_t number = 0, digits = 0;
  while (digits < text.size() && digits < 4 && is_digit(text[digits]))
    number = number * 10 + static_cast<size_t>(text[digits++] - '0');
  text.remove_prefix(digits);
  return number;
}

// "_ZL24__pyx_pw_4fast_1computeP7_objectS0_" -> "__pyx_pw_4fast_1compute"; "f.constprop.0" -> "f".
std::string_view identifier_of(std::string_view symbol) {
  for (const std::string_view prefix : {"_ZL", "_Z"}) {
    if (!symbol.starts_with(prefix)) continue;
    std::string_view rest = symbol.substr(prefix.size());
    const size_t length = take_length(rest);
    if (length > 0 && length <= rest.size()) return rest.substr(0, length);
  }
  return symbol.substr(0, symbol.find('.'));
}

// Removes a part of the scope: its length, itself, '_'. A dot in it is written "_dot_" and counted as one
// character. Empty if there is none.
std::string take_scope(std::string_view& text) {
  std::string_view rest = text;
  const size_t length = take_length(rest);
  if (length == 0) return {};
  if (length + 1 < rest.size() && rest[length] == '_') {
    text = rest.substr(length + 1);
    return std::string(rest.substr(0, length));
  }
  std::string part;
  while (part.size() < length && !rest.empty()) {
    const bool dot = rest.starts_with("_dot_");
    part += dot ? '.' : rest.front();
    rest.remove_prefix(dot ? 5 : 1);
  }
  if (part.size() < length || rest.size() < 2 || rest.front() != '_') return {};
  text = rest.substr(1);
  return part;
}

struct Kind {
  std::string_view prefix;
  CythonPart part;
  bool counted;             // a counter precedes the function's own name
  std::string_view behind;  // what the name lacks
};

// Cython/Compiler/Naming.py of 0.29 to 3.1.
constexpr Kind kKinds[] = {
    {"__pyx_pw_", CythonPart::wrapper, true, ""},
    {"__pyx_pf_", CythonPart::body, true, ""},
    {"__pyx_gb_", CythonPart::body, true, ""},
    {"__pyx_f_", CythonPart::function, false, ""},
    {"__pyx_getprop_", CythonPart::slot, false, ".__get__"},
    {"__pyx_setprop_", CythonPart::slot, false, ".__set__"},
    {"__pyx_tp_new_", CythonPart::none, false, ".tp_new"},
    {"__pyx_tp_dealloc_", CythonPart::none, false, ".tp_dealloc"},
    {"__pyx_tp_traverse_", CythonPart::none, false, ".tp_traverse"},
    {"__pyx_tp_clear_", CythonPart::none, false, ".tp_clear"},
};

// Whether an apparent scope is a counter and the function's first word: "3get_value" is get_value, since a
// wrapper's counter is odd and always present, and a body's is even, and omitted if it is 0.
bool is_counter(const Kind& kind, std::string_view scope, bool first, std::string_view stem,
                std::string_view rest) {
  if (!kind.counted || first || is_digit(rest.front())) return false;
  if (scope == stem || rest == "__get__" || rest == "__set__" || rest == "__del__") return false;
  if (kind.part == CythonPart::wrapper) return true;
  return scope.size() % 2 == 0 && std::isupper(static_cast<unsigned char>(scope.front())) == 0;
}

std::string name_of(const Kind& kind, std::string_view text, std::string_view stem) {
  std::vector<std::string> parts;
  while (parts.size() < kMostParts) {
    std::string_view rest = text;
    std::string scope = take_scope(rest);
    if (scope.empty() || is_counter(kind, scope, parts.empty(), stem, rest)) break;
    parts.push_back(std::move(scope));
    text = rest;
  }
  if (parts.empty()) return {};
  if (kind.counted) take_length(text);
  if (text.empty()) return {};
  std::string name;
  for (const std::string& part : parts) name += part + '.';
  return name.append(text).append(kind.behind);
}

}  // namespace

CythonName cython_name(std::string_view symbol, std::string_view stem) {
  if (symbol.size() > kLongestCythonName) return {};
  const std::string_view identifier = identifier_of(symbol);
  if (!identifier.starts_with("__pyx_")) return {};
  constexpr std::string_view kModuleBody = "__pyx_pymod_exec_";
  if (identifier.starts_with(kModuleBody))
    return {std::string(identifier.substr(kModuleBody.size())) + ".<module>", CythonPart::none};
  // In a specialised function, or one that a slot was made for, the prefix follows other words:
  // "__pyx_fuse_0__pyx_pw_4fast_3sum", "__pyx_specialmethod___pyx_pw_4fast_1C_3__next__".
  const Kind* kind = nullptr;
  size_t at = std::string_view::npos;
  for (const Kind& k : kKinds) {
    const size_t found = identifier.find(k.prefix);
    if (found < at) {
      at = found;
      kind = &k;
    }
  }
  if (kind == nullptr) return {};
  CythonName out{name_of(*kind, identifier.substr(at + kind->prefix.size()), stem), kind->part};
  if (out.name.empty()) return {};
  if (identifier.starts_with("__pyx_specialmethod_")) out.part = CythonPart::slot;
  return out;
}

}  // namespace phlox::symbols
