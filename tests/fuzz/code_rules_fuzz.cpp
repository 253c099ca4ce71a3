// Any bytes as code: no crash, no endless loop, and no rule beyond them.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "phlox/unwind/code_rules.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox::unwind;
  if (size < 2) return 0;
  // The first byte says how far apart functions start, the second where something might.
  const auto code = std::as_bytes(std::span(data + 2, size - 2));
  std::vector<uint32_t> functions, maybe;
  for (uint32_t at = 0; at < code.size(); at += data[0] + 1U) functions.push_back(at);
  if (data[1] < code.size()) maybe.push_back(data[1]);
  const CodeRegion region(code, functions, maybe);
  for (uint32_t at = 0; at < std::min<size_t>(code.size(), 64); ++at) {
    const auto rule = region.find(at), back = region.until_return(at);
    if (rule.kind == RuleKind::signal || back.kind == RuleKind::end) std::abort();
  }
  if (region.find(static_cast<uint32_t>(code.size())).kind != RuleKind::none) std::abort();
  return 0;
}
