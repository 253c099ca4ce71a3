// The data of a target's asyncio: its types, and where its tasks are. Facts by version:
//
// - 3.8 to 3.11: the WeakSet asyncio.tasks._all_tasks (Lib/asyncio/tasks.py).
// - 3.12 and 3.13: the WeakSet _scheduled_tasks and the set _eager_tasks, which are the C module's own
//   (Modules/_asynciomodule.c).
// - 3.14 and later: these two for tasks that are no _asyncio.Task. The others are in circular lists that run
//   through the tasks: one for each thread state, and one for each interpreter with the tasks of threads that
//   have ended (Include/internal/pycore_tstate.h, pycore_interp_structs.h: asyncio_tasks_head).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/python/interpreter.h"
#include "phlox/python/objects.h"
#include "phlox/python/page_memory.h"

namespace phlox::python {

enum class TypeKind : uint8_t {
  other,
  coroutine,  // coroutine, generator, async generator: they have the same beginning
  forwarder,  // holds one object, which it awaits for its owner: coroutine_wrapper, async_generator_asend, …
  future_iter,
  c_task,
  python_task,
  gathering,  // asyncio.tasks._GatheringFuture
  c_future,
  python_future,
};

struct TypeInfo {
  TypeKind kind = TypeKind::other;
  std::string name;
};

using TaskFields = decltype(Layout::task);

// What open() finds.
struct AsyncioNames {
  bool imported = false;           // asyncio is
  TaskFields task;                 // fields of its tasks and futures
  std::vector<DictItem> of_tasks;  // names of asyncio.tasks: after open_again(), those of sets of tasks
  std::string folder;              // where asyncio's own files are
  RemoteAddress coroutine, generator, async_generator, code;
  RemoteAddress c_task, python_task, c_future, python_future, gathering;
};

// Where the state of an interpreter may have the list of the tasks of ended threads: one of its places that
// look like a list, empty or not. To find them takes longer than to read a hundred tasks.
struct TaskLists {
  std::vector<uint32_t> offsets;
  int uses = 0;  // since they were found
};

// asyncio of one interpreter.
class AsyncioModule {
 public:
  AsyncioModule(const Layout& layout, PageMemory& memory)
      : layout_(layout), memory_(memory), objects_(layout, memory) {
    known_.task = layout.task;
  }

  // False: this interpreter has not imported asyncio, or it cannot be read; problem() says which.
  bool open(RemoteAddress interpreter);
  // The same for what an earlier open() has found, while no module was imported since.
  bool open_again(RemoteAddress interpreter, const AsyncioNames& found);
  // After open(). None: something could not be read.
  std::optional<AsyncioNames> found();
  const std::string& problem() const { return problem_; }
  const std::string& folder() const { return known_.folder; }  // where asyncio's own files are
  RemoteAddress code_type() const { return known_.code; }

  // The fields of this interpreter's tasks and futures.
  const TaskFields& task_fields() const { return known_.task; }

  // The kind of the type object at this address. Cached.
  const TypeInfo& type(RemoteAddress type);
  const TypeInfo& type_of(RemoteAddress object);
  // With the module of a class that is neither asyncio's nor the program's main module: "uvloop.Loop".
  std::string class_words(RemoteAddress object);

  struct Found {
    RemoteAddress task;
    uint64_t python_id = 0;  // of the thread that has it in its list; 0: not known
  };
  // Every task once. `lists`: of the calls before, for this interpreter.
  std::vector<Found> find_tasks(size_t most, size_t& beyond, TaskLists& lists);

  // The thread states of this interpreter, capped.
  std::vector<RemoteAddress> threads();
  // Whether a class, or one of its bases, has this name.
  bool derives(RemoteAddress type, std::string_view name);
  // The offset of an attribute in the instances of a class with __slots__.
  std::optional<uint32_t> slot(RemoteAddress type, std::string_view name);
  // Members of a set object, capped. The second form reads once: its result may be of two moments.
  Read<std::vector<RemoteAddress>> set_members(RemoteAddress set, size_t most);
  Read<std::vector<RemoteAddress>> set_members_once(RemoteAddress set, size_t most);
  ObjectReader& objects() { return objects_; }

 private:
  struct Search {
    std::vector<Found> found;
    std::unordered_set<uint64_t> seen;
    size_t most = 0, beyond = 0;
  };
  bool knows_tasks();
  TypeInfo read_type(RemoteAddress type);
  void add(Search& search, RemoteAddress task, uint64_t python_id);
  void add_weak_set(Search& search, const char* name);
  void add_set(Search& search, const char* name);
  Offset find_list(const std::vector<RemoteAddress>& threads);
  void add_list(Search& search, RemoteAddress head, uint64_t python_id);
  void add_threads(Search& search);
  void add_ended_threads(Search& search, TaskLists& lists);
  std::vector<uint32_t> find_lists();
  bool is_head(RemoteAddress at, bool& empty);
  bool walk(Search& search, RemoteAddress head, uint64_t python_id);
  RemoteAddress word(RemoteAddress at);

  const Layout& layout_;
  PageMemory& memory_;
  ObjectReader objects_;
  RemoteAddress interpreter_;
  AsyncioNames known_;
  std::string problem_;
  std::unordered_map<uint64_t, TypeInfo> types_;
  // The entries of types_ that were used last: a task needs some fifty lookups of a few types.
  struct Recent {
    RemoteAddress type;
    const TypeInfo* info = nullptr;
  };
  std::array<Recent, 64> recent_;
};

}  // namespace phlox::python
