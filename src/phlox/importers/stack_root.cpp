#include "phlox/importers/stack_root.h"

#include <algorithm>
#include <charconv>

namespace phlox::importers {
namespace {

// Ancestors that py-spy lists before a process.
constexpr size_t kMostProcesses = 256;

std::string_view first_frame(std::string_view frames) {
  return frames.substr(0, frames.find(';'));
}

void drop(std::string_view& frames, size_t length) {
  frames.remove_prefix(std::min(frames.size(), length + 1));
}

std::optional<ProcessName> take_process(std::string_view& frames) {
  constexpr std::string_view kPrefixes[] = {"process ", "Process "};
  const auto prefix = std::find_if(std::begin(kPrefixes), std::end(kPrefixes),
                                   [&](std::string_view p) { return frames.starts_with(p); });
  if (prefix == std::end(kPrefixes)) return std::nullopt;
  ProcessName process;
  const char* const end = frames.data() + frames.size();
  const auto [at, error] = std::from_chars(frames.data() + prefix->size(), end, process.pid);
  if (error != std::errc() || process.pid < 0) return std::nullopt;
  const auto taken = static_cast<size_t>(at - frames.data());
  const std::string_view rest = frames.substr(taken);
  if (rest.empty() || rest.front() == ';') {
    drop(frames, taken);
    return process;
  }
  if (!rest.starts_with(":\"")) return std::nullopt;
  const size_t close = std::min(rest.find("\";", 2), rest.size() - 1);
  if (close < 2 || rest[close] != '"') return std::nullopt;
  process.command = rest.substr(2, close - 2);
  drop(frames, taken + close + 1);
  return process;
}

}  // namespace

StackRoot take_stack_root(std::string_view& frames) {
  StackRoot root;
  while (root.processes.size() < kMostProcesses) {
    auto process = take_process(frames);
    if (!process) break;
    root.processes.push_back(*std::move(process));
  }
  const std::string_view frame = first_frame(frames);
  if ((root.thread = thread_name(frame))) drop(frames, frame.size());
  return root;
}

}  // namespace phlox::importers
