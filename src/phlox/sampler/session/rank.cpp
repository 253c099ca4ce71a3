#include "phlox/sampler/session/rank.h"

#include <algorithm>
#include <array>

namespace phlox::sampler {
namespace {

// The rank in the whole job: the first one that is set.
constexpr std::array<std::string_view, 5> kWhole = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                                    "SLURM_PROCID"};
constexpr std::string_view kLocal = "LOCAL_RANK";
constexpr size_t kLongest = 8;  // digits

std::string_view value_of(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view entry = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(entry.size() + 1, environment.size()));
    if (!entry.starts_with(name) || entry.size() <= name.size() || entry[name.size()] != '=') continue;
    const std::string_view value = entry.substr(name.size() + 1);
    const bool number = !value.empty() && value.size() <= kLongest &&
                        std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
    return number ? value : std::string_view();
  }
  return {};
}

}  // namespace

std::string rank_words(std::string_view environment) {
  std::string words;
  for (const std::string_view name : kWhole) {
    if (const auto value = value_of(environment, name); !value.empty() && words.empty())
      words = std::string(name) + ' ' + std::string(value);
  }
  if (const auto value = value_of(environment, kLocal); !value.empty())
    words += (words.empty() ? "" : ", ") + std::string(kLocal) + ' ' + std::string(value);
  return words;
}

}  // namespace phlox::sampler
