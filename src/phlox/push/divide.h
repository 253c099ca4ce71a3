// Divides a body that is too large for a server. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace phlox::push {

// A protobuf message, gzipped or not, whose repeated field `carried` is what it carries: two messages with
// half of these each, and everything else in both. Compressed as it was. None if it carries only one, or is
// not such a message.
std::optional<std::pair<std::string, std::string>> divided(std::string_view body, uint32_t carried);

}  // namespace phlox::push
