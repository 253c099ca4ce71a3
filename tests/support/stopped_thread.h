// A thread of a test's own child, stopped by ptrace at any moment: its registers and its stack.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "phlox/process/maps.h"
#include "phlox/unwind/unwinder.h"

namespace phlox::test {

class StoppedThread {
 public:
  // Attaches without stopping.
  explicit StoppedThread(pid_t tid);
  ~StoppedThread();
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  bool attached() const { return attached_; }
  // Stops it and reads its registers and `stack_size` bytes of stack, starting at the red zone. False: it has
  // exited.
  bool stop(size_t stack_size);
  void resume();

  const unwind::Registers& registers() const { return registers_; }
  // All registers in DWARF's numbering, the pc last (x86-64: 16, the return address column).
  const std::vector<uint64_t>& dwarf_registers() const { return dwarf_registers_; }
  pid_t tid() const { return tid_; }
  RemoteAddress stack_start() const { return registers_.sp - unwind::kRedZone; }
  const std::vector<std::byte>& stack() const { return stack_; }

 private:
  pid_t tid_;
  bool attached_ = false, stopped_ = false;
  unwind::Registers registers_;
  std::vector<uint64_t> dwarf_registers_;
  std::vector<std::byte> stack_;
};

// Every module of a process with its unwind table, built on first use.
class TargetTables {
 public:
  explicit TargetTables(pid_t pid);
  // From the current maps.
  void refresh();
  const unwind::ModuleMap& map() const { return map_; }
  const unwind::UnwindTable* table_of(uint32_t module);
  unwind::CodeRules* code_of(uint32_t module);
  bool read_code(RemoteAddress address, std::span<std::byte> into) const;
  size_t modules() const { return modules_.size(); }
  const std::string& path(uint32_t module) const { return modules_[module].path; }
  uint64_t bias(uint32_t module) const { return biases_[module]; }

 private:
  pid_t pid_;
  unwind::ModuleMap map_;
  std::vector<process::Module> modules_;
  std::vector<uint64_t> biases_;
  std::vector<std::unique_ptr<unwind::UnwindTable>> tables_;
  std::vector<std::unique_ptr<process::LoadedModule>> loaded_;
  std::vector<std::unique_ptr<unwind::CodeRules>> codes_;
  std::vector<std::byte> vdso_;
};

}  // namespace phlox::test
