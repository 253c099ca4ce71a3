// Where to open the file of a module in order to name native frames, after the capture or import. Not a part
// of the recording.
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

// A module that frames refer to, for symbols::ModuleNames; or, without an id, a file that a JIT compiler
// wrote, for symbols::JitMap. Opened while it existed, because the process may be gone when names are needed.
struct NativeModule {
  NativeFile kind = NativeFile::module;
  ModuleId id;
  std::string path;       // as the target sees it
  std::string open_path;  // where it can be opened here, as long as the descriptor lives; empty: nowhere
  std::shared_ptr<Descriptor> descriptor;
  std::shared_ptr<Descriptor> root;  // the folder that the target sees as its root
  // A JIT compiler's file names only these frames, those of its process. None: all frames without a module.
  std::shared_ptr<const std::set<FrameId>> code = {};
  std::optional<FileUser> user = {};  // the user whose rights open the files that it names; none: ours
};

// Gets these while a recording goes on, for names that do not wait for its end. For the recorder's thread.
class NativeFiles {
 public:
  virtual ~NativeFiles() = default;
  // As soon as frames refer to a module; now and then the files of a JIT compiler.
  virtual void add(ProcessId process, NativeModule module) = 0;
  // After the last frame of a process.
  virtual void note_end(ProcessId process) = 0;
};

}  // namespace phlox::profile
