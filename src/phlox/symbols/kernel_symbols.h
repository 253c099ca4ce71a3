// Functions of the running kernel by address, from /proc/kallsyms as a process with the right to it reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phlox::symbols {

class KernelSymbols {
 public:
  // Lines of "address type name [module]". Without the right (kernel.kptr_restrict) every address is 0, and
  // nothing is found.
  explicit KernelSymbols(std::string text);
  // The host's: some 200,000 lines, 10 MB.
  static KernelSymbols read();

  size_t size() const { return rows_.size(); }
  // The function that contains an address. The view lives as long as this.
  std::optional<std::string_view> find(uint64_t address) const;

 private:
  struct Row {
    uint64_t address = 0;
    uint32_t name = 0, length = 0;  // in text_
    bool preferred = false;
  };
  std::string text_;
  std::vector<Row> rows_;
};

}  // namespace phlox::symbols
