// The entries of an open folder: closed when nobody lists it any more.
#pragma once

#include <dirent.h>

#include <memory>

#include "phlox/base/descriptor.h"

namespace phlox {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

// Takes the descriptor over (dirfd() gives it); nullptr: it is not open, or no folder.
inline Folder list_folder(Descriptor opened) {
  Folder folder(opened ? ::fdopendir(opened.get()) : nullptr);
  if (folder) opened.release();
  return folder;
}

}  // namespace phlox
