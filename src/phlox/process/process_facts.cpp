#include "phlox/process/process_facts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "phlox/base/text.h"
#include "phlox/memory/living_thread.h"
#include "phlox/memory/process_memory.h"
#include "phlox/process/maps.h"
#include "phlox/process/text_file.h"
#include "phlox/process/thread_block.h"

namespace phlox::process {

ProcessFacts read_process(pid_t pid) {
  ProcessFacts facts;
  char link[4096];
  const ssize_t size = ::readlink((memory::proc_folder(pid) + "/exe").c_str(), link, sizeof link);
  if (size > 0) facts.executable.assign(link, static_cast<size_t>(size));
  constexpr std::string_view kDeleted = " (deleted)";
  if (facts.executable.ends_with(kDeleted))
    facts.executable.resize(facts.executable.size() - kDeleted.size());
  if (auto text = read_text(memory::proc_folder(pid) + "/cmdline")) {
    while (!text->empty() && text->back() == '\0') text->pop_back();
    for (char& c : *text) {
      if (c == '\0') c = ' ';
    }
    facts.command_line = *text;
  }
  if (const auto status = read_text(fmt::format("/proc/{}/status", pid))) {
    const size_t at = status->find("\nNSpid:");
    if (at != std::string::npos) {
      const std::string line = status->substr(at + 1, status->find('\n', at + 1) - at - 1);
      facts.namespace_pid = static_cast<pid_t>(std::atoi(line.c_str() + line.find_last_of(" \t") + 1));
    }
  }
  return facts;
}

std::optional<int64_t> find_rseq_offset(pid_t pid) {
  const auto maps = read_maps(pid);
  if (!maps) return {};
  memory::ProcessMemory memory(pid);
  const auto budget = std::make_shared<elf::ReadBudget>();
  const std::vector<Module> modules = modules_of(*maps);
  for (const Module& module : modules) {
    const std::string_view name = base_name(module.path);
    if (!name.starts_with("ld-linux") && !name.starts_with("ld-2.")) continue;
    const auto loaded = load_module(pid, module, budget);
    if (!loaded) continue;
    const auto offset = loaded->elf.find_symbol("__rseq_offset");
    const auto length = loaded->elf.find_symbol("__rseq_size");
    if (!offset || !length) continue;
    int64_t value = 0;
    uint32_t bytes = 0;
    if (!memory.read_value(loaded->remote(offset->address), value) ||
        !memory.read_value(loaded->remote(length->address), bytes))
      continue;
    if (bytes == 0 || value < -65536 || value > 65536) return {};  // 0: not registered (GLIBC_TUNABLES)
    // It counts from the thread pointer.
    const auto block = find_thread_block(pid);
    if (!block) return {};
    return *block + value;
  }
  return {};
}

}  // namespace phlox::process
