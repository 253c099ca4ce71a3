#include "phlox/python/locate.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "phlox/memory/process_memory.h"
#include "phlox/python/code_object.h"
#include "phlox/python/frame_walk.h"
#include "support/live_python.h"
#include "support/source_path.h"

namespace phlox::python {
namespace {

// What the strategies get to see of the files.
enum class Files {
  as_they_are,
  without_symbols,   // neither .symtab nor .dynsym
  without_sections,  // nor section headers, nor a dynamic segment
  nameless,  // and names say nothing: a program with Python in it (a library must keep its dynamic symbols)
  gone,      // no file can be opened
};
const char* name_of(Files files) {
  constexpr const char* kNames[] = {"as_they_are", "without_symbols", "without_sections", "nameless", "gone"};
  return kNames[static_cast<int>(files)];
}

template <class T>
T* at(std::vector<std::byte>& bytes, uint64_t offset) {
  return offset <= bytes.size() && sizeof(T) <= bytes.size() - offset
             ? reinterpret_cast<T*>(bytes.data() + offset)
             : nullptr;
}

process::LoadedModule strip(const process::LoadedModule& module, Files files) {
  std::vector<std::byte> bytes(module.elf.bytes().begin(), module.elf.bytes().end());
  auto* header = at<Elf64_Ehdr>(bytes, 0);
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    auto* section = at<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (section != nullptr && (section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM))
      section->sh_type = SHT_NULL;
  }
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    auto* segment = at<Elf64_Phdr>(bytes, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (segment != nullptr && segment->p_type == PT_DYNAMIC) segment->p_type = PT_NULL;
  }
  if (files != Files::without_symbols) header->e_shnum = 0;
  auto file = elf::FileBytes::own(std::move(bytes));
  auto elf = elf::ElfFile::parse(file.bytes());
  return {module.module, std::move(file), std::move(*elf), module.bias};
}

class Finds : public testing::TestWithParam<test::Python> {
 protected:
  Finds()
      : process_(GetParam(), test::source_path("tests/python/locate_target.py")), memory_(process_.pid()) {
    for (const std::string& line : process_.lines()) {
      const size_t blank = line.find(' ');
      if (line.substr(0, blank) == "thread") {
        threads_.insert(std::stoull(line.substr(blank + 1)));
      } else {
        said_[line.substr(0, blank)] = line.substr(blank + 1);
      }
    }
  }

  Result<Interpreter> locate_with(Files files) {
    attempts_.clear();
    const pid_t pid = process_.pid();
    auto maps = process::read_maps(pid);
    EXPECT_TRUE(maps.has_value());
    char link[4096];
    const ssize_t size = ::readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), link, sizeof link);
    std::string executable(link, size > 0 ? static_cast<size_t>(size) : 0);
    std::map<std::string, std::string> real;
    if (files == Files::nameless) {
      for (process::Mapping& m : *maps) {
        const std::string name = m.path.substr(m.path.rfind('/') + 1);
        if (name.find("python") == std::string::npos) continue;
        const std::string other =
            name.find(".so") != std::string::npos ? "/opt/app/libengine.so" : "/opt/app/server";
        real[other] = m.path;
        if (m.path == executable) executable = other;
        m.path = other;
      }
    }
    ProcessView view{pid, executable, std::move(*maps), {}, memory_};
    view.load = [=](const process::Module& module) -> Result<process::LoadedModule> {
      if (files == Files::gone) return fail(ErrorKind::input, "the file is gone");
      process::Module asked = module;
      if (const auto other = real.find(module.path); other != real.end()) asked.path = other->second;
      auto loaded = process::load_module(pid, asked);
      if (!loaded || files == Files::as_they_are) return loaded;
      loaded->module = module;
      if (files == Files::nameless && module.path.find(".so") != std::string::npos) return loaded;
      return strip(*loaded, files);
    };
    return locate(view, &attempts_);
  }

  std::string tried() const {
    std::string text;
    for (const Attempt& a : attempts_) text += "\n  " + a.strategy + " in " + a.module + ": " + a.reason;
    return text;
  }

  // Names on the stack of each thread, leaf first, by its id.
  std::map<uint64_t, std::vector<std::string>> stacks(const Interpreter& found) {
    struct Reader {
      memory::RemoteMemory& memory;
      std::vector<std::vector<std::byte>> pieces;
      const std::byte* find(RemoteAddress address, size_t size) {
        pieces.emplace_back(size);
        return memory.read(address, pieces.back()) ? pieces.back().data() : nullptr;
      }
    } reader{memory_, {}};
    std::map<uint64_t, std::vector<std::string>> stacks;
    const Layout& l = found.layout;
    RemoteAddress interpreter, thread;
    memory_.read_value(found.interpreters_head, interpreter.value);
    memory_.read_value(interpreter + *l.interpreter.threads_head, thread.value);
    for (int i = 0; thread && i < 10; ++i) {
      uint64_t id = 0;
      memory_.read_value(thread + *l.thread.thread_id, id);
      std::vector<std::byte> state(*l.thread.size);
      EXPECT_TRUE(memory_.read(thread, state));
      bool unreadable = false;
      std::vector<RawFrame> frames(100);
      const WalkResult walk = walk_frames(l, top_frame(l, state.data(), reader, unreadable), reader, frames);
      EXPECT_EQ(walk.end, WalkEnd::base);
      auto& names = stacks[id];
      for (size_t f = 0; f < walk.count; ++f) {
        if (!frames[f].code) continue;
        const auto code = read_code(l, memory_, frames[f].code);
        names.push_back(code ? code->name : "?");
      }
      memory_.read_value(thread + *l.thread.next, thread.value);
    }
    return stacks;
  }

  void expect_found(const Result<Interpreter>& found, Files files) {
    ASSERT_TRUE(found.has_value()) << found.error().message << tried();
    SCOPED_TRACE(found->found_by + tried());
    EXPECT_EQ(std::to_string(found->major) + "." + std::to_string(found->minor) + "." +
                  std::to_string(found->micro),
              said_["version"]);
    EXPECT_EQ(found->layout.traits.free_threaded, said_["free-threaded"] == "1");
    if (files == Files::as_they_are) {
      EXPECT_EQ(found->layout.traits.debug, said_["build"] == "debug");
    }
    std::set<uint64_t> ids;
    for (const auto& [id, names] : stacks(*found)) {
      ids.insert(id);
      const auto has = [&names = names](const char* name) {
        return std::find(names.begin(), names.end(), name) != names.end();
      };
      EXPECT_TRUE((has("inner") && has("middle") && has("outer")) || has("waits_in_a_thread"))
          << testing::PrintToString(names);
    }
    EXPECT_EQ(ids, threads_);
  }

  test::LivePython process_;
  memory::ProcessMemory memory_;
  std::map<std::string, std::string> said_;
  std::set<uint64_t> threads_;
  std::vector<Attempt> attempts_;
};

TEST_P(Finds, the_interpreter_of_a_process) {
  const auto found = locate(process_.pid(), &attempts_);
  expect_found(found, Files::as_they_are);
  if (found) {
    EXPECT_NE(found->found_by.find(" in "), std::string::npos);
    EXPECT_EQ(found->warning, "");
  }
}

TEST_P(Finds, it_whatever_was_stripped) {
  for (const Files files : {Files::without_symbols, Files::without_sections, Files::nameless}) {
    SCOPED_TRACE(name_of(files));
    const auto found = locate_with(files);
    expect_found(found, files);
    if (found && files != Files::nameless) {
      EXPECT_EQ(found->found_by.find("symbol"), std::string::npos) << found->found_by;
    }
  }
}

TEST_P(Finds, it_when_every_file_is_gone) {
  expect_found(locate_with(Files::gone), Files::gone);
}

INSTANTIATE_TEST_SUITE_P(Locate, Finds, testing::ValuesIn(test::pythons()),
                         [](const auto& each) { return each.param.label; });

TEST(LocateTest, says_what_a_process_is_that_is_no_python) {
  const auto found = locate(::getpid());
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, ErrorKind::not_python);
  EXPECT_NE(found.error().message.find("it runs /"), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace phlox::python
