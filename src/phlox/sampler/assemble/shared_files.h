// What was read of files that several processes map, so that it takes memory once: a worker pool, a host of
// an agent. Forgotten when the last process that has it ends. Called by the recorder's thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "phlox/process/maps.h"
#include "phlox/unwind/unwind_table.h"

namespace phlox::sampler {

struct SharedFile {
  std::optional<process::LoadedModule> loaded;  // as the first process has it
  std::shared_ptr<const unwind::UnwindTable> table;
};

class SharedFiles {
 public:
  // The one of this identity (AddressSpace::identity_of).
  std::shared_ptr<SharedFile> find(const std::string& identity) {
    if (auto known = files_[identity].lock()) return known;
    std::erase_if(files_, [](const auto& one) { return one.second.expired(); });
    auto fresh = std::make_shared<SharedFile>();
    files_[identity] = fresh;
    return fresh;
  }

 private:
  std::map<std::string, std::weak_ptr<SharedFile>> files_;
};

}  // namespace phlox::sampler
