#include "support/dwfl_reference.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "phlox/process/maps.h"

namespace phlox::test {
namespace {

const StoppedThread& captured_of(void* reference) {
  return **static_cast<const StoppedThread**>(reference);
}

pid_t next_thread(Dwfl*, void* reference, void** thread) {
  if (*thread != nullptr) return 0;
  *thread = reference;
  return captured_of(reference).tid();
}

bool get_thread(Dwfl*, pid_t, void* reference, void** thread) {
  *thread = reference;
  return true;
}

bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* reference) {
  const StoppedThread& thread = captured_of(reference);
  const uint64_t into = address - thread.stack_start().value;
  if (thread.stack().size() < 8 || into > thread.stack().size() - 8) return false;
  std::memcpy(result, thread.stack().data() + into, 8);
  return true;
}

bool set_registers(Dwfl_Thread* thread, void* reference) {
  const auto& registers = captured_of(reference).dwarf_registers();
  return dwfl_thread_state_registers(thread, 0, static_cast<unsigned>(registers.size()), registers.data());
}

constexpr Dwfl_Thread_Callbacks kThreadCallbacks = {next_thread,   get_thread, read_memory,
                                                    set_registers, nullptr,    nullptr};

}  // namespace

DwflReference::DwflReference(pid_t pid) {
  callbacks_.find_elf = dwfl_linux_proc_find_elf;
  callbacks_.find_debuginfo = [](Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                                 GElf_Word, char**) {
    return -1;  // only .eh_frame, as phlox does
  };
  dwfl_ = dwfl_begin(&callbacks_);
  ok_ = report(pid) && dwfl_report_end(dwfl_, nullptr, nullptr) == 0 &&
        dwfl_attach_state(dwfl_, nullptr, pid, &kThreadCallbacks, &captured_);
}

// dwfl_linux_proc_report() takes the first mapping of a file for its beginning. Since 3.4 libffi maps single
// pages of itself for its closures (src/tramp.c), before or after the rest: those are omitted.
bool DwflReference::report(pid_t pid) {
  const auto maps = process::read_maps(pid);
  if (!maps) return false;
  std::string text;
  for (const auto& module : process::modules_of(*maps)) {
    if (module.mappings.front().offset != 0) continue;
    for (const auto& m : module.mappings) {
      char line[64];
      std::snprintf(line, sizeof line, "%lx-%lx %c%c%cp %lx ", m.start.value, m.end.value,
                    m.readable ? 'r' : '-', m.writable ? 'w' : '-', m.executable ? 'x' : '-', m.offset);
      text += line;
      std::snprintf(line, sizeof line, "%lx:%lx %lu ", m.device >> 32, m.device & 0xffffffff, m.inode);
      text += line + m.path + "\n";
    }
  }
  std::unique_ptr<FILE, int (*)(FILE*)> file(::fmemopen(text.data(), text.size(), "r"), &::fclose);
  if (!file || dwfl_linux_proc_maps_report(dwfl_, file.get()) != 0) return false;
  const auto vdso =
      std::find_if(maps->begin(), maps->end(), [](const auto& m) { return m.path == "[vdso]"; });
  return vdso == maps->end() || dwfl_report_module(dwfl_, ("[vdso: " + std::to_string(pid) + "]").c_str(),
                                                   vdso->start.value, vdso->end.value) != nullptr;
}

std::vector<uint64_t> DwflReference::pcs(const StoppedThread& thread) {
  captured_ = &thread;
  std::vector<uint64_t> out;
  dwfl_getthread_frames(
      dwfl_, thread.tid(),
      [](Dwfl_Frame* frame, void* to) {
        Dwarf_Addr pc = 0;
        bool activation = false;
        if (!dwfl_frame_pc(frame, &pc, &activation)) return static_cast<int>(DWARF_CB_ABORT);
        static_cast<std::vector<uint64_t>*>(to)->push_back(pc);
        return static_cast<int>(DWARF_CB_OK);
      },
      &out);
  return out;
}

}  // namespace phlox::test
