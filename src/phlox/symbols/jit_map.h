// Names for code that has no file: perf maps (/tmp/perf-PID.map, "start size name" in hex) and jitdump
// (tools/perf/Documentation/jitdump-specification.txt, kernel 6.1). From bytes; the target writes both, so
// they are hostile.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/address.h"

namespace phlox::symbols {

class JitMap {
 public:
  struct Found {
    std::string_view name;
    uint64_t offset = 0;
    std::string_view file;  // jitdump with debug information only
    int32_t line = 0;
  };

  JitMap() = default;
  // Keeps only what find() needs for these addresses: a compiler may have written millions of functions.
  explicit JitMap(std::vector<RemoteAddress> only);

  // Later lines replace earlier ones at the same place, because memory is reused.
  void add_perf_map(std::string_view text);
  void add_jitdump(std::span<const std::byte> bytes);
  std::optional<Found> find(RemoteAddress address) const;
  size_t size() const { return ranges_.size(); }
  // Invalid lines or records.
  size_t refused() const { return refused_; }

 private:
  struct Line {
    uint64_t offset = 0;  // from the start of the code
    int32_t line = 0;
    uint32_t file = 0;  // into Code::files
  };
  struct Code {
    std::string name;
    std::vector<Line> lines;  // sorted
    std::vector<std::string> files;
  };
  // Code that was partly overwritten stays as its remaining ranges.
  struct Range {
    uint64_t end = 0;
    uint64_t origin = 0;  // where the code started
    std::shared_ptr<const Code> code;
  };
  static Code parse_lines(std::span<const std::byte> record);
  bool wants(uint64_t start, uint64_t size) const;
  void want_moved(std::span<const std::byte> bytes, size_t header);
  void put(uint64_t start, uint64_t size, std::shared_ptr<const Code> code);

  bool all_ = true;
  std::vector<RemoteAddress> only_;   // sorted; unless all_
  std::map<uint64_t, Range> ranges_;  // by start, free of overlaps
  size_t refused_ = 0;
};

}  // namespace phlox::symbols
