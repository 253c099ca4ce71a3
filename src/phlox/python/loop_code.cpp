#include "phlox/python/loop_code.h"

#include <algorithm>
#include <string_view>

namespace phlox::python {
namespace {

// _PyEval_EvalFrameDefault is the loop since 3.6, PyEval_EvalFrameEx before. Compilers split off parts, whose
// names have a suffix (".cold", ".cold.0" of BOLT, ".localalias").
bool names_loop(std::string_view name) {
  for (const std::string_view loop : {"_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx"}) {
    if (name == loop || (name.starts_with(loop) && name[loop.size()] == '.')) return true;
  }
  return false;
}

}  // namespace

LoopCode loop_code(const elf::ElfFile& file) {
  LoopCode loop;
  bool pre_ex = true;
  file.for_each_symbol([&](const auto& symbol) {
    if (symbol.size == 0 || !names_loop(symbol.name)) return true;
    // Since 3.6 PyEval_EvalFrameEx only calls the loop.
    const bool old = symbol.name.starts_with("PyEval");
    if (!old && pre_ex) loop.clear();
    if (!old) pre_ex = false;
    if (old && !pre_ex) return true;
    loop.emplace_back(symbol.address.value, symbol.address.value + symbol.size);
    return true;
  });
  return loop;
}

bool is_in(const LoopCode& loop, ImageAddress address) {
  return std::any_of(loop.begin(), loop.end(), [at = address.value](const auto& range) {
    return at >= range.first && at < range.second;
  });
}

}  // namespace phlox::python
