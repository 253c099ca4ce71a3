// Parses the text about a thread at a stack's root, or the name of a profile.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace phlox::importers {

struct ThreadName {
  std::string_view name;
  int32_t tid = 0;
  bool tachyon = false;
};

// "Thread worker-1 (4711)" and "Thread 4711" of our own exports; py-spy's "thread (4711): worker-1" in stacks
// and "Thread 4711 "worker-1"" in speedscope's format; Tachyon's "tid:4711". The name is a part of the text.
std::optional<ThreadName> thread_name(std::string_view text);

}  // namespace phlox::importers
