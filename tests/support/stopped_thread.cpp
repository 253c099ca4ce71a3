#include "support/stopped_thread.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>

#include "phlox/elf/elf_file.h"
#include "phlox/unwind/table_builder.h"

namespace phlox::test {

StoppedThread::StoppedThread(pid_t tid) : tid_(tid) {
  attached_ = ::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) == 0;
}

StoppedThread::~StoppedThread() {
  if (!attached_) return;
  if (!stopped_ && ::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) == 0) ::waitpid(tid_, nullptr, __WALL);
  ::ptrace(PTRACE_DETACH, tid_, nullptr, nullptr);
}

bool StoppedThread::stop(size_t stack_size) {
  if (::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) return false;
  int status = 0;
  if (::waitpid(tid_, &status, __WALL) != tid_ || !WIFSTOPPED(status)) return false;
  stopped_ = true;
#if defined(__x86_64__)
  user_regs_struct regs{};
  iovec into{&regs, sizeof regs};
  if (::ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, &into) != 0) return false;
  registers_ = {RemoteAddress(regs.rip), RemoteAddress(regs.rsp), regs.rbp, 0, true, false, true, regs.rbx};
  // psABI, figure 3.36
  dwarf_registers_ = {regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi, regs.rbp, regs.rsp, regs.r8,
                      regs.r9,  regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15, regs.rip};
#else
  user_regs_struct regs{};
  iovec into{&regs, sizeof regs};
  if (::ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, &into) != 0) return false;
  registers_ = {RemoteAddress(regs.pc), RemoteAddress(regs.sp), regs.regs[29], regs.regs[30], true, true};
  dwarf_registers_.assign(regs.regs, regs.regs + 31);
  dwarf_registers_.insert(dwarf_registers_.end(), {regs.sp, regs.pc});
#endif
  stack_.resize(stack_size);
  iovec local{stack_.data(), stack_.size()};
  std::vector<iovec> remote;  // by page: the copy ends where the stack ends
  for (uint64_t at = stack_start().value; at < stack_start().value + stack_size;) {
    const uint64_t end = std::min((at | 4095) + 1, stack_start().value + stack_size);
    remote.push_back({reinterpret_cast<void*>(at), end - at});
    at = end;
  }
  const ssize_t got = ::process_vm_readv(tid_, &local, 1, remote.data(), remote.size(), 0);
  stack_.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return true;
}

void StoppedThread::resume() {
  ::ptrace(PTRACE_CONT, tid_, nullptr, nullptr);
  stopped_ = false;
}

TargetTables::TargetTables(pid_t pid) : pid_(pid) {
  refresh();
}

void TargetTables::refresh() {
  map_.clear();
  modules_.clear();
  biases_.clear();
  tables_.clear();
  codes_.clear();
  loaded_.clear();
  const auto maps = process::read_maps(pid_);
  if (!maps) return;
  modules_ = process::modules_of(*maps);
  for (uint32_t i = 0; i < modules_.size(); ++i) {
    uint64_t bias = 0;
    loaded_.push_back(nullptr);
    if (auto loaded = process::load_module(pid_, modules_[i])) {
      bias = loaded->bias;
      tables_.push_back(std::make_unique<unwind::UnwindTable>(unwind::build_table(loaded->elf)));
      loaded_.back() = std::make_unique<process::LoadedModule>(*std::move(loaded));
    } else {
      tables_.push_back(nullptr);
    }
    biases_.push_back(bias);
    for (const auto& m : modules_[i].mappings) {
      if (m.executable) map_.add(m.start, m.end, bias, i);
    }
  }
  for (const auto& m : *maps) {
    if (!m.executable || (m.inode != 0 && !m.path.empty() && m.path[0] == '/')) continue;
    uint32_t module = unwind::kNoModule;
    uint64_t bias = 0;
    if (m.path == "[vdso]") {
      vdso_.resize(m.end - m.start);
      iovec local{vdso_.data(), vdso_.size()}, remote{reinterpret_cast<void*>(m.start.value), vdso_.size()};
      if (::process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(vdso_.size())) {
        if (const auto file = elf::ElfFile::parse(vdso_)) {
          module = static_cast<uint32_t>(modules_.size());
          bias = m.start.value;
          process::Module vdso;
          vdso.path = "[vdso]";
          modules_.push_back(vdso);
          biases_.push_back(bias);
          tables_.push_back(std::make_unique<unwind::UnwindTable>(unwind::build_table(*file)));
        }
      }
    }
    map_.add(m.start, m.end, bias, module);
  }
  map_.settle();
}

bool TargetTables::read_code(RemoteAddress address, std::span<std::byte> into) const {
  iovec local{into.data(), into.size()}, remote{reinterpret_cast<void*>(address.value), into.size()};
  return ::process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(into.size());
}

unwind::CodeRules* TargetTables::code_of(uint32_t module) {
  if (module >= loaded_.size() || !loaded_[module]) return nullptr;
  codes_.resize(loaded_.size());
  if (!codes_[module])
    codes_[module] = std::make_unique<unwind::CodeRules>(loaded_[module]->elf, table_of(module));
  return codes_[module].get();
}

const unwind::UnwindTable* TargetTables::table_of(uint32_t module) {
  return module < tables_.size() ? tables_[module].get() : nullptr;
}

}  // namespace phlox::test
