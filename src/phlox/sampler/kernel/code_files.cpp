#include "phlox/sampler/kernel/code_files.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "phlox/process/moved_code.h"
#include "phlox/python/recognise.h"

namespace phlox::sampler {
namespace {

// A library may have been loaded meanwhile: the maps are read again if an address is unknown, less and less
// often if that does not help.
constexpr Nanoseconds kShortestFilesPause = kSecond / 20, kLongestFilesPause = 10 * kSecond;
// Code is seldom unmapped and replaced by other code at its address.
constexpr Nanoseconds kRefreshFilesEvery = 5 * kSecond;
// The maximum numbers of files and of mappings.
constexpr size_t kMostFiles = 10'000, kMostRanges = 100'000;

// "[vdso]" and "/memfd:…" are no files that a user could inspect.
bool is_file(const process::Module& module) {
  return module.inode != 0 && module.path.starts_with('/') && !module.path.starts_with("/memfd:") &&
         !module.path.starts_with("/dev/");
}

}  // namespace

CodeFiles::CodeFiles(ReadMaps read_maps, std::string executable, RemoteAddress interpreter)
    : read_maps_(std::move(read_maps)),
      executable_(std::move(executable)),
      interpreter_(interpreter),
      refreshed_at_(std::numeric_limits<Nanoseconds>::min() / 2),
      pause_(kShortestFilesPause) {}

uint32_t CodeFiles::number_of(const std::string& path) {
  const auto known = std::find(paths_.begin(), paths_.end(), path);
  if (known != paths_.end()) return static_cast<uint32_t>(known - paths_.begin()) + 1;
  if (paths_.size() >= kMostFiles) return 0;
  paths_.push_back(path);
  return static_cast<uint32_t>(paths_.size());
}

// If the maps cannot be read any more, everything stays as it was.
void CodeFiles::refresh(Nanoseconds now) {
  refreshed_at_ = now;
  const auto maps = read_maps_();
  if (!maps) return;
  ranges_.clear();
  for (const process::Module& module : process::modules_of(*maps)) {
    const bool is_interpreter =
        std::any_of(module.mappings.begin(), module.mappings.end(),
                    [this](const process::Mapping& mapping) { return mapping.holds(interpreter_); });
    // Python may be linked into the program itself.
    const auto rank = python::rank_of(module, executable_);
    const bool is_other =
        !is_interpreter && rank != python::Rank::libpython && rank != python::Rank::executable;
    std::vector<process::Mapping> mappings = process::moved_code_of(*maps, module);
    mappings.insert(mappings.end(), module.mappings.begin(), module.mappings.end());
    for (const process::Mapping& mapping : mappings) {
      if (!mapping.executable || ranges_.size() >= kMostRanges) continue;
      ranges_.push_back(
          {mapping.start.value, mapping.end.value, is_other && is_file(module) ? module.path : "", 0});
    }
  }
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.start < b.start; });
}

CodeFiles::Range* CodeFiles::find(uint64_t instruction) {
  const auto behind = std::upper_bound(ranges_.begin(), ranges_.end(), instruction,
                                       [](uint64_t at, const Range& range) { return at < range.start; });
  if (behind == ranges_.begin()) return nullptr;
  Range& range = *(behind - 1);
  return instruction < range.end ? &range : nullptr;
}

uint32_t CodeFiles::of(uint64_t instruction, Nanoseconds now) {
  if (instruction == 0) return 0;
  Range* range = find(instruction);
  const Nanoseconds since = now - refreshed_at_;
  if (since >= kRefreshFilesEvery || (range == nullptr && since >= pause_)) {
    const bool was_known = range != nullptr;
    refresh(now);
    range = find(instruction);
    if (!was_known)
      pause_ = range != nullptr ? kShortestFilesPause : std::min(2 * pause_, kLongestFilesPause);
  }
  if (range == nullptr || range->path.empty()) return 0;
  if (range->number == 0) range->number = number_of(range->path);
  return range->number;
}

}  // namespace phlox::sampler
