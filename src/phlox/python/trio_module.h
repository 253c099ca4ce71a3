// The data of a target's trio: its runners, one for each thread that is in trio.run(), and their tasks.
// GLOBAL_RUN_CONTEXT of trio/_core/_run.py is a threading.local: it has the runner of each thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/python/asyncio_module.h"
#include "phlox/python/page_memory.h"

namespace phlox::python {

struct TrioNames;

// trio of one interpreter.
class TrioModule {
 public:
  // The offsets of a Task's slots.
  struct Fields {
    RemoteAddress type;
    uint32_t coroutine = 0, name = 0, next = 0, nurseries = 0, runner = 0, sleep_data = 0;
    uint32_t counter = 0;  // its number among all tasks; 0: tasks have none
  };

  // `module`: open() was called; it knows the types of coroutines.
  TrioModule(const Layout& layout, PageMemory& memory, AsyncioModule& module)
      : layout_(layout), memory_(memory), module_(module) {}

  // False: this interpreter has not imported trio, or it cannot be read; problem() says which.
  bool open(RemoteAddress interpreter);
  // As AsyncioModule has them.
  bool open_again(const TrioNames& found);
  std::optional<TrioNames> found() const;
  const std::string& problem() const { return problem_; }
  const std::string& folder() const { return folder_; }  // of the package, with a slash
  const Fields& fields() const { return fields_; }

  // The running ones.
  std::vector<RemoteAddress> runners();
  std::vector<RemoteAddress> tasks(RemoteAddress runner, size_t most);

 private:
  bool is_dict(RemoteAddress object);
  bool add_runners(std::vector<RemoteAddress>& found);

  const Layout& layout_;
  PageMemory& memory_;
  AsyncioModule& module_;
  bool is_absent_ = false;  // not imported
  RemoteAddress context_, runner_type_;
  uint32_t tasks_ = 0;
  Fields fields_;
  std::string problem_, folder_;
};

// What open() finds.
struct TrioNames {
  bool imported = false;
  RemoteAddress context, runner_type;
  uint32_t tasks = 0;
  TrioModule::Fields fields;
  std::string folder;
};

}  // namespace phlox::python
