#include "phlox/cli/features.h"

#include "phlox/base/machine.h"
#include "phlox/push/curl_http.h"
#include "phlox/sampler/kernel/kernel_capture.h"
#include "phlox/symbols/debug_files.h"

namespace phlox::cli {

std::vector<Feature> features() {
  return {{"kernel capture", sampler::kernel_capture_missing()},
          {"instruction decoder", kOnAarch64 ? "it decodes x86-64 only" : ""},
          {"debuginfod", symbols::has_debuginfod() ? "" : "a static program loads no library"},
          {"agent", push::sending_missing()}};
}

std::string features_line(const std::vector<Feature>& all) {
  std::string line;
  for (const Feature& one : all) {
    line += (line.empty() ? "features: " : ", ") + one.name;
    line += one.missing.empty() ? " yes" : " no (" + one.missing + ")";
  }
  return line;
}

}  // namespace phlox::cli
