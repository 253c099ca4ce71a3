// The entries of an open folder; closed with the object.
#pragma once

#include <dirent.h>

#include <memory>

#include "phlox/base/descriptor.h"

namespace phlox {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

// Takes over the descriptor (dirfd() returns it); nullptr: not open, or no folder.
inline Folder list_folder(Descriptor opened) {
  Folder folder(opened ? ::fdopendir(opened.get()) : nullptr);
  if (folder) opened.release();
  return folder;
}

}  // namespace phlox
