// One asyncio task: its coroutine, the object that it awaits, and so on down to the future.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/python/async_tasks.h"
#include "phlox/python/asyncio_module.h"
#include "phlox/python/code_object.h"
#include "phlox/python/evidence.h"
#include "phlox/python/page_memory.h"

namespace phlox::python {

// Code objects so far, decoded once.
class TaskCodes {
 public:
  TaskCodes(const Layout& layout, PageMemory& memory, std::vector<TaskFunction>& functions)
      : layout_(layout), memory_(memory), functions_(functions) {}
  struct Known {
    Code code;
    uint32_t function = 0;
  };
  // nullptr: cannot be read, or there are too many.
  const Known* find(RemoteAddress code);
  const TaskFunction& function(uint32_t index) const { return functions_[index]; }

 private:
  const Layout& layout_;
  PageMemory& memory_;
  std::vector<TaskFunction>& functions_;
  std::unordered_map<uint64_t, std::optional<Known>> known_;
  size_t bytes_ = 0;
};

class TrioModule;

struct TaskReading {
  AsyncTask task;
  bool pending = true;  // false: it is done, and not shown
  bool gone = false;    // it is no longer a task
  RemoteAddress loop;
  std::vector<RemoteAddress> awaits;
  Evidence evidence;
};

inline constexpr uint64_t kMaxStack = uint64_t{1} << 16;  // entries of one frame

class TaskReader {
 public:
  TaskReader(const Layout& layout, PageMemory& memory, AsyncioModule& module, TaskCodes& codes,
             const DescriptorLink& link)
      : layout_(layout), memory_(memory), module_(module), codes_(codes), link_(link) {}

  // From now on, also reads tasks of trio.
  void with_trio(const TrioModule& trio) { trio_ = &trio; }
  // False: invalid contents, at this moment.
  bool read(RemoteAddress task, TaskReading& out);

 private:
  // A coroutine or generator, at rest or running.
  struct Generator {
    RemoteAddress frame, code;
    uint64_t instruction = 0;
    bool executing = false;
    bool finished = false;
    RemoteAddress delegate;  // the object that it awaits; none: it does not await
    RemoteAddress first;     // its first variable
  };
  struct Fields {
    RemoteAddress coroutine, waiter, name, loop;
    bool pending = true;
  };
  const std::byte* look(RemoteAddress at, size_t size, Evidence& evidence);
  RemoteAddress variable(const std::byte* at) const;
  bool read_fields(RemoteAddress task, TypeKind kind, Fields& fields, Evidence& evidence);
  bool read_c_fields(RemoteAddress task, Fields& fields, Evidence& evidence);
  bool read_python_fields(RemoteAddress task, Fields& fields);
  bool read_name(RemoteAddress name, TaskReading& out);
  bool read_generator(RemoteAddress object, Generator& out, Evidence& evidence);
  bool read_embedded(RemoteAddress object, Generator& out, Evidence& evidence);
  bool read_frame_object(RemoteAddress object, Generator& out, Evidence& evidence);
  bool delegates(const Generator& generator, int8_t state);
  bool read_chain(RemoteAddress coroutine, TaskReading& out);
  bool add_frame(const Generator& generator, TaskReading& out);
  bool is_done(RemoteAddress future, TypeKind kind, Evidence& evidence);
  void explain(RemoteAddress waiter, TaskReading& out);
  bool explain_by_frame(TaskReading& out);
  void explain_lock(TaskReading& out);
  void add_children(RemoteAddress collection, TaskReading& out);
  bool is_concurrent(RemoteAddress future);
  RemoteAddress leaf_variable(uint32_t index);
  RemoteAddress attribute(RemoteAddress object, std::string_view name);
  void add_end_of_sleep(AsyncTask& task);
  void add_socket_of(RemoteAddress transport, AsyncTask& task);
  void add_descriptor(int64_t descriptor, AsyncTask& task);
  void add_details(AsyncTask& task);
  bool read_trio(RemoteAddress task, TaskReading& out);
  void explain_trio(RemoteAddress nurseries, TaskReading& out);
  bool is_of_trio(const TaskReading& reading, size_t from_leaf, std::string_view file,
                  std::string_view name) const;
  std::string number_text(RemoteAddress object);

  const Layout& layout_;
  PageMemory& memory_;
  AsyncioModule& module_;
  TaskCodes& codes_;
  const DescriptorLink& link_;
  const TrioModule* trio_ = nullptr;
  // Of the current chain.
  Generator leaf_;
  const TaskCodes::Known* leaf_code_ = nullptr;
  RemoteAddress leaf_future_, leaf_object_;
  bool runs_ = false;
};

}  // namespace phlox::python
