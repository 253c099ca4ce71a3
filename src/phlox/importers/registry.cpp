#include "phlox/importers/registry.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "phlox/importers/austin_mojo.h"
#include "phlox/importers/austin_text.h"
#include "phlox/importers/collapsed.h"
#include "phlox/importers/cpuprofile.h"
#include "phlox/importers/firefox_file.h"
#include "phlox/importers/json_input.h"
#include "phlox/importers/perf_data.h"
#include "phlox/importers/perf_file.h"
#include "phlox/importers/perf_script.h"
#include "phlox/importers/pprof_file.h"
#include "phlox/importers/speedscope_file.h"
#include "phlox/importers/tachyon.h"

namespace phlox::importers {
namespace {

const Format kFormats[] = {
    {"perf", "perf.data, what perf record wrote", PerfFile::recognise, import_perf_data},
    {"tachyon", "profiling.sampling --binary of Python 3.15 and later", recognise_tachyon, import_tachyon},
    {"austin-mojo", "austin's binary format, MOJO", recognise_austin_mojo, import_austin_mojo},
    {"pprof", "profile.proto of Go, pprof, Pyroscope", recognise_pprof, import_pprof},
    {"speedscope", "speedscope's own format", recognise_speedscope, import_speedscope},
    {"firefox", "the Firefox Profiler's processed profile; samply, profiling.sampling --gecko",
     recognise_firefox, import_firefox},
    {"cpuprofile", "Chrome's and Node's .cpuprofile", recognise_cpuprofile, import_cpuprofile},
    {"perf-script", "the text of perf script", recognise_perf_script, import_perf_script},
    {"austin", "austin's text, and mojo2austin's", recognise_austin_text, import_austin_text},
    {"collapsed", "collapsed stacks, a line and a number each; py-spy -f raw, profiling.sampling --collapsed",
     recognise_collapsed, import_collapsed},
};

// Decides by the keys of the whole file, since a long table may come before the one that identifies the
// format.
const Format* recognise_json(Input& input) {
  struct Kind {
    std::string_view format, key, other_key;
  };
  constexpr Kind kKinds[] = {{"speedscope", "shared", "profiles"},
                             {"firefox", "meta", "threads"},
                             {"cpuprofile", "nodes", "samples"},
                             {"cpuprofile", "head", "samples"}};
  const std::vector<std::string> keys = outer_keys(input);
  const auto has = [&](std::string_view key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  for (const Kind& kind : kKinds) {
    if (has(kind.key) && has(kind.other_key)) return find_format(kind.format);
  }
  return nullptr;
}

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
  std::vector<std::byte> head(Forwards::kHead);
  head.resize(input.read_at(0, head));
  std::span<const std::byte> text = head;
  if (std::string_view(reinterpret_cast<const char*>(head.data()), head.size()).starts_with(kByteOrderMark))
    text = text.subspan(kByteOrderMark.size());
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [&](const Format& f) { return f.recognise(text); });
  if (found != std::end(kFormats)) return found;
  return is_json_with(text, {}) ? recognise_json(input) : nullptr;
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
