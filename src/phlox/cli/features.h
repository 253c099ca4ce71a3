// The features that this program was built with, for `phlox --version`: a build without one of these works,
// and does less.
#pragma once

#include <string>
#include <vector>

namespace phlox::cli {

struct Feature {
  std::string name;
  std::string missing;  // why it was left out; empty: it is included
};

std::vector<Feature> features();
// "features: NAME yes, NAME no (why)"
std::string features_line(const std::vector<Feature>& all);

}  // namespace phlox::cli
