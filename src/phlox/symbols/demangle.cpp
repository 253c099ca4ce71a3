#include "phlox/symbols/demangle.h"

#include <libiberty/demangle.h>

#include <cctype>
#include <cstdlib>
#include <memory>

#include "phlox/symbols/cython_name.h"

namespace phlox::symbols {
namespace {

// libiberty recurses with the name's nesting; the longest names of real programs have some 10,000 characters.
constexpr size_t kLongest = 32 * 1024;

}  // namespace

std::string demangle(std::string_view name) {
  if (name.size() > kLongest) return std::string(name);
  if (std::string cython = cython_name(name).name; !cython.empty()) return cython;
  if (name.substr(0, 2) != "_Z" && name.substr(0, 2) != "_R" && name.substr(0, 3) != "__Z")
    return std::string(name);
  // ".cold", ".part.0", ".llvm.123": kept behind the name as libiberty's " [clone .cold]" (C++), dropped by
  // Rust.
  const std::string terminated(name);
  const std::unique_ptr<char, decltype(&std::free)> text(
      cplus_demangle(terminated.c_str(), DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO), &std::free);
  return text == nullptr ? terminated : std::string(text.get());
}

std::string short_name(std::string_view demangled) {
  // Drops everything in <>, () and [], but keeps "operator<", "operator()" and "(anonymous namespace)".
  std::string flat;
  int depth = 0;
  for (size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    if (depth == 0 && demangled.substr(i, 8) == "operator" &&
        (i == 0 ||
         (std::isalnum(static_cast<unsigned char>(demangled[i - 1])) == 0 && demangled[i - 1] != '_'))) {
      size_t end = i + 8;
      while (end < demangled.size() &&
             std::string_view("<>=!+-*/%^&|~").find(demangled[end]) != std::string_view::npos)
        ++end;
      if (demangled.substr(end, 2) == "()" || demangled.substr(end, 2) == "[]") end += 2;
      flat += demangled.substr(i, end - i);
      i = end - 1;
      continue;
    }
    constexpr std::string_view kAnonymous = "(anonymous namespace)";
    if (depth == 0 && demangled.substr(i, kAnonymous.size()) == kAnonymous) {
      flat += kAnonymous;
      i += kAnonymous.size() - 1;
      continue;
    }
    if (c == '<' || c == '(' || c == '[' || c == '{') {
      if (c == '(' && depth == 0 && !flat.empty()) break;  // the parameters: nothing of the name follows
      if (c == '{') {                                      // {{closure}}, {lambda()#1}
        size_t end = demangled.find('}', i);
        if (end != std::string_view::npos && demangled.substr(i, 2) == "{{" &&
            demangled.substr(end, 2) == "}}")
          ++end;
        if (end != std::string_view::npos && depth == 0) {
          flat += demangled.substr(i, end - i + 1);
          i = end;
          continue;
        }
      }
      ++depth;
    } else if (c == '>' || c == ')' || c == ']' || c == '}') {
      if (depth > 0) --depth;
    } else if (depth == 0) {
      flat += c;
    }
  }
  while (!flat.empty() && flat.back() == ' ') flat.pop_back();
  // The return type of a template stands before a space.
  const size_t op = flat.find("operator");
  const size_t space = flat.rfind(' ', op == std::string::npos ? std::string::npos : op);
  constexpr std::string_view kTail = "namespace)";
  if (space != std::string::npos && flat.compare(space + 1, kTail.size(), kTail) != 0)
    flat.erase(0, space + 1);
  while (flat.substr(0, 2) == "::") flat.erase(0, 2);
  // The last two parts; empty ones come from "<T as Trait>::method".
  size_t end = flat.size(), parts = 0;
  while (parts < 2) {
    const size_t at = end == 0 ? std::string::npos : flat.rfind("::", end - 1);
    if (at == std::string::npos) return flat.empty() ? std::string(demangled) : flat;
    end = at;
    ++parts;
  }
  const std::string last = flat.substr(end + 2);
  return last.empty() ? std::string(demangled) : last;
}

}  // namespace phlox::symbols
