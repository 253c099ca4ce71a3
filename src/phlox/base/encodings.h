// Bytes as text, and back: percent codes of URLs and headers, and base64.
#pragma once

#include <string>
#include <string_view>

namespace phlox {

// "%2C" is ",". What is no such code stays.
std::string percent_decoded(std::string_view text);
// Codes only what OTEL_RESOURCE_ATTRIBUTES and the baggage header need: "%", "," and "=".
std::string percent_encoded(std::string_view text);

// RFC 4648, section 4. Decoding takes text with or without padding, and ends at any other character.
std::string base64(std::string_view bytes);
std::string base64_decoded(std::string_view text);

}  // namespace phlox
