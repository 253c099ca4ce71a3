#include "phlox/process/cpu_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "phlox/process/cpu_set.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int first = 0;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc()) break;
    int last = first;
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc() || first < 0 || last >= kMostCpus) break;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = read.ptr;
    if (at == end || *at != ',') break;
    ++at;
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string describe_cpus(const std::vector<int>& cpus) {
  std::string words;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    words += words.empty() ? "" : ",";
    words += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return words;
}

std::vector<int> read_kept_free_cpus() {
  std::vector<int> cpus;
  for (const char* file : {"/sys/devices/system/cpu/isolated", "/sys/devices/system/cpu/nohz_full"}) {
    const auto text = read_text(file);
    const auto some = text ? parse_cpu_list(*text) : std::vector<int>();
    cpus.insert(cpus.end(), some.begin(), some.end());
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

}  // namespace phlox::process
