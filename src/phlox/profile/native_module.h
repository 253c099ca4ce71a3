// Where the file of a module can be opened by whoever gives names to native frames, once capture or import is
// over. Not a part of the recording.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_user.h"
#include "phlox/profile/model.h"

namespace phlox::profile {

enum class NativeFile { module, jitdump, perf_map };

// A module that frames name: for symbols::ModuleNames. Or what a JIT compiler wrote, without an id: for
// symbols::JitMap. Opened while it was there, where the process may be gone when names are asked for.
struct NativeModule {
  NativeFile kind = NativeFile::module;
  ModuleId id;
  std::string path;       // as the target sees it
  std::string open_path;  // where it can be opened here, as long as the descriptor lives; empty: nowhere
  std::shared_ptr<Descriptor> descriptor;
  std::shared_ptr<Descriptor> root;  // the folder that the target sees as its root
  // What a JIT compiler wrote names these frames alone, those of its process. None: all that have no module.
  std::shared_ptr<const std::set<FrameId>> code = {};
  std::optional<FileUser> user = {};  // with whose rights files that it names are opened; none: ours
};

}  // namespace phlox::profile
