// Compresses a whole body, and back. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace phlox::push {

std::string gzip(std::string_view bytes);
// None: it is no gzip, or larger than `most`.
std::optional<std::string> gunzip(std::string_view bytes, size_t most);

}  // namespace phlox::push
