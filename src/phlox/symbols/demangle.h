// Readable names: C++ and Rust (legacy and v0) by libiberty, Cython's by cython_name. Pure.
#pragma once

#include <string>
#include <string_view>

namespace phlox::symbols {

// "_ZN4core3fmt5write17h0123456789abcdefE" -> "core::fmt::write". A name that is not mangled is returned
// unchanged. Additions of a linker or a compiler stay after the name: "f(int)@plt", "f(int) [clone .cold]".
std::string demangle(std::string_view name);

// Without parameters, template arguments, return type and all but the last two parts: for narrow places.
// "std::vector<int, std::allocator<int> >::push_back(int const&)" -> "vector::push_back".
std::string short_name(std::string_view demangled);

}  // namespace phlox::symbols
