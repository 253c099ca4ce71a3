#include "phlox/cli/features.h"

#include "phlox/base/machine.h"
#include "phlox/http/curl_http.h"
#include "phlox/sampler/kernel/kernel_capture.h"

namespace phlox::cli {

std::vector<Feature> features() {
  return {{"kernel capture", sampler::kernel_capture_missing()},
          {"instruction decoder", kOnAarch64 ? "it decodes x86-64 only" : ""},
          {"debuginfod", http::missing()},
          {"agent", http::missing()}};
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
