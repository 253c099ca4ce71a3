#include "phlox/symbols/demangle.h"

#include <libiberty/demangle.h>

#include <algorithm>
#include <cctype>
#include <csetjmp>
#include <cstdint>
#include <memory>
#include <vector>

#include "phlox/base/text.h"
#include "phlox/symbols/cython_name.h"

namespace phlox::symbols {
namespace {

// libiberty recurses with the name's nesting; the longest names of real programs have some 10,000 characters.
constexpr size_t kLongest = 32 * 1024;

struct Demangled {
  std::string text;
  std::jmp_buf too_long;
};

void append_demangled(const char* piece, size_t size, void* to) {
  auto& demangled = *static_cast<Demangled*>(to);
  // Jumps back into run(): only C frames are in between, and nothing else ends them. 200 letters can stand
  // for 2^40.
  if (size > kLongest - demangled.text.size()) std::longjmp(demangled.too_long, 1);
  demangled.text.append(piece, size);
}

using Demangler = int (*)(const char*, int, demangle_callbackref, void*);

enum class Outcome : uint8_t { mangled_otherwise, done, too_long };

// Has no object of its own, whose destructor a jump would skip.
Outcome run(Demangler demangler, const char* name, Demangled& to) {
  if (setjmp(to.too_long) != 0) return Outcome::too_long;
  const int known = demangler(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO, append_demangled, &to);
  return known != 0 ? Outcome::done : Outcome::mangled_otherwise;
}

// Empty: not mangled, or too long when demangled.
std::string demangled(std::string_view name) {
  const std::string terminated(name);
  const auto to = std::make_unique<Demangled>();
  to->text.reserve(kLongest);
  for (const Demangler demangler : {&rust_demangle_callback, &cplus_demangle_v3_callback}) {
    to->text.clear();
    const Outcome outcome = run(demangler, terminated.c_str(), *to);
    if (outcome == Outcome::done) return to->text;
    if (outcome == Outcome::too_long) return {};
  }
  return {};
}

// Where a legacy Rust name ends, after "17h", 16 digits and "E"; npos: it is none.
size_t end_of_rust(std::string_view name) {
  constexpr size_t kDigits = 16;
  for (size_t at = name.find("17h"); at != std::string_view::npos; at = name.find("17h", at + 1)) {
    const std::string_view digits = name.substr(at + 3, kDigits);
    const size_t end = at + 3 + kDigits;
    if (digits.find_first_not_of("0123456789abcdef") == std::string_view::npos && name.substr(end, 1) == "E")
      return end + 1;
  }
  return std::string_view::npos;
}

std::string with_suffix(std::string name, std::string_view suffix) {
  if (suffix.empty()) return name;
  if (suffix.front() == '@') return name + std::string(suffix);
  // Rust's own tools omit the number of a codegen unit, like a name's hash.
  return suffix.substr(0, 6) == ".llvm." ? name : name + " [clone " + std::string(suffix) + "]";
}

}  // namespace

std::string demangle(std::string_view name) {
  if (name.size() > kLongest) return shortened(name, kLongest);
  if (std::string cython = cython_name(name).name; !cython.empty()) return cython;
  if (name.substr(0, 2) != "_Z" && name.substr(0, 2) != "_R" && name.substr(0, 3) != "__Z")
    return std::string(name);
  // No mangled name contains "@": it begins "@plt", or a version.
  const size_t version = std::min(name.find('@'), name.size());
  const std::string_view behind = name.substr(version), symbol = name.substr(0, version);
  if (const size_t end = end_of_rust(symbol); end < symbol.size()) {
    if (const std::string text = demangled(symbol.substr(0, end)); !text.empty())
      return with_suffix(with_suffix(text, symbol.substr(end)), behind);
  }
  // libiberty knows ".cold" and ".part.0", as " [clone .cold]". Suffixes that it does not know are removed
  // from the end until it knows the rest.
  constexpr int kMostSuffixes = 8;
  size_t end = symbol.size();
  for (int i = 0; i <= kMostSuffixes && end != std::string_view::npos && end > 2; ++i) {
    if (const std::string text = demangled(symbol.substr(0, end)); !text.empty())
      return with_suffix(with_suffix(text, symbol.substr(end)), behind);
    end = symbol.rfind('.', end - 1);
  }
  return std::string(name);
}

namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

// After the bracket that closes the one at `at`; the end if none does. The arrow of "fn() -> T" closes
// nothing.
size_t behind_brackets(std::string_view text, size_t at) {
  size_t depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}' || (c == '>' && text[at - 1] != '-')) {
      if (--depth == 0) return at + 1;
    }
  }
  return at;
}

// "operator<<", "operator()", "operator bool", "operator new[]" at `at`: where it ends; `at` if it is none.
size_t behind_operator(std::string_view text, size_t at) {
  constexpr std::string_view kWord = "operator";
  if (text.substr(at, kWord.size()) != kWord || (at > 0 && is_word(text[at - 1]))) return at;
  size_t end = at + kWord.size();
  if (end < text.size() && is_word(text[end])) return at;
  if (text.substr(end, 2) == "()" || text.substr(end, 2) == "[]") return end + 2;
  const size_t symbol = end;
  while (end < text.size() && std::string_view("<>=!+-*/%^&|~,").find(text[end]) != std::string_view::npos)
    ++end;
  if (end > symbol) return end;
  // A conversion, or new or delete: up to the parameters.
  while (end < text.size() && text[end] != '(') ++end;
  return end;
}

// The parts of "a::b<T>::c(int)" without what is in brackets; "{closure#0}" and "(anonymous namespace)" are
// separate parts. "<T as Trait>" at the start of a Rust name becomes the type's name.
std::vector<std::string> parts_of(std::string_view text, int depth);

// "&mut alloc::vec::Vec<T>" -> "Vec", "[T]" -> "[T]": for the type in "<... as Trait>".
std::string type_name(std::string_view type, int depth) {
  const auto drop = [&](std::string_view start) {
    const bool there = type.substr(0, start.size()) == start;
    if (there) type.remove_prefix(start.size());
    return there;
  };
  if (drop("impl ")) {
    if (const size_t at = type.find(" for "); at != std::string_view::npos) type.remove_prefix(at + 5);
  }
  while (drop("&") || drop("*") || drop("mut ") || drop("const ") || drop("dyn ") || drop(" ")) {
  }
  if (type.empty()) return {};
  if (type[0] == '[' || type[0] == '(') return std::string(type.substr(0, behind_brackets(type, 0)));
  auto parts = parts_of(type, depth + 1);
  return parts.empty() ? std::string(type) : parts.back();
}

// Up to " as " outside brackets.
std::string_view self_type(std::string_view inner) {
  for (size_t at = 0; at < inner.size(); ++at) {
    if (inner.substr(at, 4) == " as ") return inner.substr(0, at);
    if (inner[at] == '<' || inner[at] == '(' || inner[at] == '[' || inner[at] == '{')
      at = behind_brackets(inner, at) - 1;
  }
  return inner;
}

// "{closure#0}" without its parameters, if it has some.
std::string part_in_braces(std::string_view whole) {
  if (whole.substr(0, 6) == "{impl#") return {};  // the number in "Type::{impl#1}::method" is useless
  const size_t parameters = whole.find('(');
  std::string part(whole.substr(0, parameters));
  if (parameters != std::string_view::npos) part.append(whole.substr(behind_brackets(whole, parameters)));
  return part;
}

std::vector<std::string> parts_of(std::string_view text, int depth) {
  constexpr int kDeepest = 4;  // "<<<T as A>::B as C>::D as E>::f"
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::vector<std::string> parts;
  std::string part;
  const auto close = [&] {
    if (!part.empty()) parts.push_back(std::move(part));
    part.clear();
  };
  for (size_t at = 0; at < text.size();) {
    if (const size_t behind = behind_operator(text, at); behind != at) {
      part.append(text.substr(at, behind - at));
      at = behind;
    } else if (text.substr(at, 2) == "::") {
      close();
      at += 2;
    } else if (text.substr(at, kAnonymous.size()) == kAnonymous) {
      part.append(kAnonymous);
      at += kAnonymous.size();
    } else if (text[at] == '<') {
      const size_t end = behind_brackets(text, at);
      const std::string_view inner = end > at + 2 ? text.substr(at + 1, end - at - 2) : std::string_view();
      const bool first = parts.empty() && part.empty();
      if (depth < kDeepest && (first || (part.empty() && inner.substr(0, 5) == "impl ")))
        part = type_name(self_type(inner), depth);
      at = end;
    } else if (text[at] == '{') {
      const size_t end = behind_brackets(text, at);
      part += part_in_braces(text.substr(at, end - at));
      at = end;
    } else if (text[at] == '(') {
      at = behind_brackets(text, at);
      // Parameters: something within the function may follow, or the function after a "decltype(...)".
      const std::string_view rest = text.substr(at);
      const bool more =
          rest.substr(0, 2) == "::" || (rest.size() > 1 && rest[0] == ' ' && part == "decltype");
      if (!more && !(parts.empty() && part.empty())) break;
    } else if (text[at] == '[') {
      at = behind_brackets(text, at);  // an ABI tag, "[clone .cold]"
    } else if (text[at] == ' ') {
      // The text before was the return type, or "vtable for".
      if (text.substr(at, 2) != " [" && text.substr(at, 2) != " <") {  // "operator<< <char>"
        parts.clear();
        part.clear();
      }
      ++at;
    } else {
      const bool of_type = text[at] == '&' || text[at] == '*';  // "std::ostream& f"
      if (!of_type) part += text[at];
      ++at;
    }
  }
  close();
  return parts;
}

}  // namespace

std::string short_name(std::string_view demangled) {
  if (demangled.size() > kLongest) return shortened(demangled, kLongest);
  // "f(int)@plt": after the parameters.
  if (const size_t at = demangled.rfind('@');
      at != std::string_view::npos && at > 0 && demangled.find_first_of(" ()<>[]{}:", at) == demangled.npos)
    return short_name(demangled.substr(0, at)) + std::string(demangled.substr(at));
  const std::vector<std::string> parts = parts_of(demangled, 0);
  // A closure is identified by its function, a lambda's operator() by the lambda.
  size_t function = parts.size();
  bool within = false;
  while (function > 0) {
    const std::string& part = parts[function - 1];
    const bool called = part == "operator()" && function > 1 && parts[function - 2].starts_with('{');
    if (!called && !part.starts_with('{')) break;
    within = true;
    --function;
  }
  if (function == 0) return std::string(demangled);
  std::string out = !within && function > 1 ? parts[function - 2] + "::" : "";
  out += parts[function - 1];
  for (size_t i = function; i < parts.size(); ++i) {
    if (parts[i] != "operator()") out += "::" + parts[i];
  }
  return out;
}

}  // namespace phlox::symbols
