#include "phlox/importers/registry.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "phlox/importers/collapsed.h"
#include "phlox/importers/cpuprofile.h"
#include "phlox/importers/perf_data.h"
#include "phlox/importers/perf_file.h"
#include "phlox/importers/perf_script.h"
#include "phlox/importers/pprof_file.h"
#include "phlox/importers/speedscope_file.h"

namespace phlox::importers {
namespace {

const Format kFormats[] = {
    {"perf", "perf.data, what perf record wrote", PerfFile::recognise, import_perf_data},
    {"pprof", "profile.proto of Go, pprof, Pyroscope", recognise_pprof, import_pprof},
    {"speedscope", "speedscope's own format", recognise_speedscope, import_speedscope},
    {"cpuprofile", "Chrome's and Node's .cpuprofile", recognise_cpuprofile, import_cpuprofile},
    {"perf-script", "the text of perf script", recognise_perf_script, import_perf_script},
    {"collapsed", "collapsed stacks, a line and a number each; py-spy record -f raw", recognise_collapsed,
     import_collapsed},
};

}  // namespace

std::span<const Format> formats() {
  return kFormats;
}

const Format* find_format(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return f.name == name; });
  return found == std::end(kFormats) ? nullptr : found;
}

const Format* recognise(Input& input) {
  std::vector<std::byte> head(FileInput::kHead);
  head.resize(input.read_at(0, head));
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [&](const Format& f) { return f.recognise(head); });
  return found == std::end(kFormats) ? nullptr : found;
}

std::string format_names() {
  std::string names;
  for (const Format& format : kFormats) {
    if (!names.empty()) names += ", ";
    names += format.name;
  }
  return names;
}

}  // namespace phlox::importers
