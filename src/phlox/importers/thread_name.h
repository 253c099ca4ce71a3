// What a text says of a thread that stands where a thread is told: at a stack's root, or as the name of a
// profile.
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

// "Thread worker-1 (4711)" and "Thread 4711" of our own exports; of py-spy "thread (4711): worker-1" in
// stacks and "Thread 4711 "worker-1"" in speedscope's format; "tid:4711" of Tachyon. The name is a part of
// the text.
std::optional<ThreadName> thread_name(std::string_view text);

}  // namespace phlox::importers
