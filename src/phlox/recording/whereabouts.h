// Where an open file is now: others may rename, replace or remove it.
#pragma once

#include <string>

#include "phlox/base/descriptor.h"
#include "phlox/base/place.h"

namespace phlox::recording {

// Whether the name in the folder leads to this file. True if that cannot be found out.
bool is_in_place(const Descriptor& file, const Place& place);
// A path that leads to it: `path` if that does, otherwise the kernel's path. Empty: none is known.
std::string path_of(const Descriptor& file, const std::string& path);
// Whether it has no name left.
bool is_removed(const Descriptor& file);

}  // namespace phlox::recording
