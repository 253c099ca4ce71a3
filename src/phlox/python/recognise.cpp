#include "phlox/python/recognise.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "phlox/base/as_text.h"
#include "phlox/base/clock.h"
#include "phlox/base/text.h"
#include "phlox/memory/living_thread.h"

namespace phlox::python {

Rank rank_of(const process::Module& module, const std::string& executable) {
  const std::string_view name = base_name(module.path);
  if (name.starts_with("libpython")) return Rank::libpython;
  if (module.path == executable) return Rank::executable;
  return name.find("python") != std::string::npos ? Rank::named : Rank::other;
}

namespace {

// The word is a constant, in a loaded segment. Copied piece by piece: the file may be large.
bool says_pythonhome(const elf::ElfFile& file) {
  constexpr std::string_view kWord = "PYTHONHOME";
  constexpr uint64_t kPiece = 1 << 20;
  uint64_t left = uint64_t{256} << 20;
  std::vector<std::byte> piece(kPiece + kWord.size() - 1);
  for (const elf::Segment& segment : file.segments()) {
    for (uint64_t at = 0; at < segment.file_size && left >= piece.size(); at += kPiece) {
      const auto bytes = std::span(piece).first(file.copy(segment.address + at, piece));
      if (bytes.empty()) break;
      left -= bytes.size();
      if (as_text(bytes).find(kWord) != std::string_view::npos) return true;
    }
  }
  return false;
}

}  // namespace

bool looks_like_python(const process::LoadedModule& module) {
  if (base_name(module.module.path).find("python") != std::string::npos) return true;
  for (const char* name : {"_PyRuntime", "_PyThreadState_Current", "Py_GetVersion"}) {
    if (module.elf.find_symbol(name)) return true;
  }
  return says_pythonhome(module.elf);
}

bool exports_interpreter(const process::LoadedModule& module) {
  return module.elf.find_symbol("_PyRuntime") || module.elf.find_symbol("_PyThreadState_Current");
}

std::string other_implementation(const std::vector<process::Module>& modules, const std::string& executable) {
  struct Mark {
    const char* prefix;  // of a file's name
    const char* name;
  };
  constexpr Mark kMarks[] = {{"libpypy", "PyPy"},
                             {"pypy", "PyPy"},
                             {"libpythonvm", "GraalPy"},
                             {"libgraalpy", "GraalPy"},
                             {"graalpy", "GraalPy"},
                             {"graalpython", "GraalPy"},
                             {"micropython", "MicroPython"},
                             {"circuitpython", "CircuitPython"}};
  for (const process::Module& module : modules) {
    const std::string_view name = base_name(module.path);
    for (const Mark& mark : kMarks) {
      if (!name.starts_with(mark.prefix)) continue;
      if (module.path == executable || name.find(".so") != std::string::npos) return mark.name;
    }
  }
  return {};
}

std::string executable_of(pid_t pid) {
  char link[4096];
  const ssize_t size = ::readlink((memory::proc_folder(pid) + "/exe").c_str(), link, sizeof link);
  std::string path(link, size > 0 ? static_cast<size_t>(size) : 0);
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

Recogniser::Verdict Recogniser::judge_file(pid_t pid, const process::Module& module,
                                           const std::string& executable, const process::Budget& budget) {
  const Rank rank = rank_of(module, executable);
  if (rank == Rank::libpython) return Verdict::python;
  File file{module.device, module.inode};
  if (rank == Rank::executable) {
    struct stat there {};
    file.changed = ::stat((memory::proc_folder(pid) + "/exe").c_str(), &there) == 0
                       ? int64_t{there.st_ctim.tv_sec} * kSecond + there.st_ctim.tv_nsec
                       : 0;
  }
  // A host may build programs all day.
  constexpr size_t kMostFiles = 10'000;
  if (files_.size() >= kMostFiles && !files_.contains(file)) files_.clear();
  const auto [at, fresh] = files_.try_emplace(file, Verdict::no);
  if (!fresh) return at->second;
  const auto loaded = process::load_module(pid, module, budget);
  const auto is_python = [&] {
    return rank == Rank::other ? exports_interpreter(*loaded) : looks_like_python(*loaded);
  };
  if (loaded) {
    at->second = is_python() ? Verdict::python : Verdict::no;
  } else {
    // A file that can no longer be opened is judged by its name.
    at->second = base_name(module.path).starts_with("python") ? Verdict::python : Verdict::unread;
  }
  return at->second;
}

Recogniser::Verdict Recogniser::judge(pid_t pid) {
  const auto maps = process::read_maps(pid);
  if (!maps) return maps.error().kind == ErrorKind::permission ? Verdict::hidden : Verdict::no;
  const std::string executable = executable_of(pid);
  const auto modules = process::modules_of(*maps);
  if (!other_implementation(modules, executable).empty()) return Verdict::python;
  const auto budget = std::make_shared<elf::ReadBudget>();
  Verdict verdict = Verdict::no;
  for (const process::Module& module : modules) {
    // Only a module with writable memory can hold an interpreter.
    if (std::none_of(module.mappings.begin(), module.mappings.end(),
                     [](const process::Mapping& m) { return m.writable; }))
      continue;
    const Verdict of_file = judge_file(pid, module, executable, budget);
    if (of_file == Verdict::python) return of_file;
    if (of_file == Verdict::unread) verdict = of_file;
  }
  return verdict;
}

}  // namespace phlox::python
