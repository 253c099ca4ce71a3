// Which package of the target's own Debian brought a file: dpkg's lists, read beneath the target's root.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "phlox/base/descriptor.h"

namespace phlox::target {

// By path, as the target sees it. What no package brought is not in it; without a dpkg nothing is. `root`: of
// open_root(). No link leads out of it. Some 20 ms where 800 packages are installed.
std::map<std::string, std::string> packages_of(const Descriptor& root, const std::vector<std::string>& paths);

}  // namespace phlox::target
