// The names that a program gave its threads, as its `threading` module keeps them. Read outside the hot path,
// when a thread without a name is found; the target may run meanwhile, so a failure is normal: ask again
// later.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/layout.h"
#include "phlox/python/read_fault.h"

namespace phlox::python {

struct ThreadName {
  uint64_t python_id = 0;  // threading.get_ident()
  std::string name;        // UTF-8
};

struct ThreadNames {
  std::vector<ThreadName> names;
  bool threading = false;  // the program has imported threading; without it no thread has a name
  size_t failed = 0;       // threads whose name could not be read this time
};

// Longer ones are truncated, and threads beyond the largest plausible number get no name.
inline constexpr size_t kMaxThreadNameBytes = 4096;
inline constexpr size_t kMaxThreadNames = 32768;
inline constexpr size_t kMaxThreadNamesBytes = size_t{16} << 20;

// The names of one interpreter's threads; `interpreter` is its PyInterpreterState. `goes_on`: called for each
// thread with its Python id; skip: this one needs no name, stop: no further one. None: every thread.
enum class Naming : uint8_t { read, skip, stop };
Read<ThreadNames> read_thread_names(const Layout& layout, memory::RemoteMemory& memory,
                                    RemoteAddress interpreter,
                                    const std::function<Naming(uint64_t python_id)>& goes_on = {});

}  // namespace phlox::python
