// Names the native frames of a recording, after the capture: each address once, module by module, from the
// files that the sampler kept open. Says for each module which names are missing and what would provide them.
// Opens no process.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/profile/native_module.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/sink.h"
#include "phlox/symbols/debug_files.h"
#include "phlox/symbols/kernel_symbols.h"
#include "phlox/symbols/module_names.h"

namespace phlox::naming {

// Passes every row on, and keeps the rows that need names.
class NativeRows : public profile::Sink {
 public:
  // Where the kernel's functions come from: this host (named here), or another recorder (named already).
  enum class Kernel { this_host, named_already };
  // Whether native frames are written at once and again with their names (for a recording that may end
  // before), or only once, at name(), if nothing reads the rows that refer to them before.
  enum class Put { at_once, when_named };
  explicit NativeRows(profile::Sink& sink, Kernel kernel = Kernel::this_host, Put put = Put::at_once)
      : sink_(sink), kernel_(kernel), put_(put) {}

  void receive(const profile::AnyRow& row) override;
  Result<void> commit() override { return sink_.commit(); }

  // Names that the frames of a module lack.
  struct Missing {
    profile::ModuleId module;
    std::shared_ptr<Descriptor> root;
    symbols::MissingNames names;
  };
  // CPU time for reading and looking up names, for one process and for all. Frames not named by then show
  // their address.
  struct Patience {
    Nanoseconds of_process = 30 * kSecond;
    Nanoseconds of_all = 120 * kSecond;
  };
  // Names every native frame received. Returns the missing names, worst first.
  std::vector<Missing> name(const std::vector<profile::NativeModule>& modules,
                            const symbols::DebugSearch& search, const Patience& patience);
  std::vector<Missing> name(const std::vector<profile::NativeModule>& modules,
                            const symbols::DebugSearch& search) {
    return name(modules, search, Patience());
  }
  // Looks up which packages would provide them, and stores that with the modules.
  void advise(std::vector<Missing>& missing);

 private:
  void take(profile::ModuleId id, const profile::Module& module);
  void take(profile::FrameId id, const profile::Frame& frame);
  class Stopwatch;
  std::vector<Missing> name_module(const profile::NativeModule& module, const std::vector<size_t>& frames,
                                   const symbols::DebugSearch& search, Stopwatch& stopwatch);
  void put_unnamed(size_t frame);
  void name_code_without_file(const std::vector<profile::FrameId>& frames,
                              const std::vector<profile::NativeModule>& modules);
  void name_kernel_frames();

  profile::Sink& sink_;
  Kernel kernel_;
  Put put_;
  std::vector<std::pair<profile::FrameId, profile::Frame>> frames_;  // native, in the order of their ids
  std::vector<std::pair<profile::FrameId, profile::Frame>> kernel_frames_;
  std::map<uint32_t, profile::Module> modules_;
  uint32_t last_frame_ = 0;
};

// If the module is opened by its own path, debug files next to it are found; only if that is still the file
// that was mapped.
std::string path_to_open(const profile::NativeModule& module);

// Names for a recording that its recorder has not named yet, if the mapped files still exist. Keeps its open
// files for the next time.
class NamesHere {
 public:
  using Kernel = NativeRows::Kernel;
  explicit NamesHere(symbols::DebugSearch search);
  ~NamesHere();
  // Names the native frames whose module has no names, and the kernel's if they are from the running host.
  void name(profile::Profile& profile, Kernel kernel);
  // Keeps the names in the folder of the search.
  void keep();

 private:
  symbols::ModuleNames* names_of(const profile::Module& module);
  void name_kernel_frame(profile::Profile& profile, profile::FrameId id, profile::Frame frame);

  symbols::DebugSearch search_;
  std::unique_ptr<symbols::KernelSymbols> kernel_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<symbols::ModuleNames>> modules_;
};

// The packages that would provide them, if known.
void look_up_packages(std::vector<NativeRows::Missing>& missing);

// "libfoo.so: no lines (no debug information ...): install ..."
std::string describe(const NativeRows::Missing& missing);

}  // namespace phlox::naming
