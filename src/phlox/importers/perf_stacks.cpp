#include "phlox/importers/perf_stacks.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <string>

#include "phlox/base/byte_reader.h"
#include "phlox/base/memory_file.h"
#include "phlox/importers/python_frames.h"

namespace phlox::importers {
namespace {

// The kernel's own limit for a chain is lower; a file may claim anything.
constexpr size_t kMostPerfFrames = 8192;
// Addresses remembered for each process; a JIT that makes code for days makes it start over.
constexpr size_t kMostKnown = 200'000;

constexpr const char* kDumpTooShort = "(callers unknown: the stack is deeper than what perf copied)";
constexpr const char* kRedZoneMissing =
    "(callers unknown: they hang on bytes below the stack pointer, which perf does not copy)";
constexpr const char* kNoRegisters = "(callers unknown: perf recorded no registers)";
constexpr const char* kChainFull = "(callers unknown: perf records no longer chains)";
// A chain of frame pointers through code that keeps none takes an arbitrary number for one.
constexpr const char* kNotMapped = "(an address at which nothing is mapped)";

}  // namespace

void PerfStacks::add_marker(const char* text) {
  frames_.push_back(marker(text));
}

profile::FrameId PerfStacks::marker(const char* text) {
  const auto [at, fresh] = markers_.try_emplace(text);
  if (fresh) {
    profile::Frame frame;
    frame.kind = profile::FrameKind::marker;
    frame.function = frame.qualified_name = text;
    at->second = interner_.frame(frame);
  }
  return at->second;
}

void PerfStacks::add_kernel(uint64_t address, bool exact) {
  const uint64_t inside = exact ? address : address - 1;
  if (known_kernel_.size() > kMostKnown) known_kernel_.clear();
  const auto [at, fresh] = known_kernel_.try_emplace(inside);
  if (fresh) {
    if (!kernel_) {
      kernel_ = profile::ModuleId(++last_module_);
      sink_.emit(kernel_, {"[kernel]", "", 0});
    }
    profile::Frame frame;
    frame.kind = profile::FrameKind::kernel;
    frame.module = kernel_;
    frame.address = inside;
    frame.found_by = "kernel";
    if (const auto name = kernel_names_.find(inside)) {
      frame.function = frame.qualified_name = std::string(*name);
    } else {
      ++counts_.unknown_kernel;
    }
    at->second = interner_.frame(frame);
  }
  frames_.push_back(at->second);
}

profile::ModuleId PerfStacks::module_of(uint32_t file, uint64_t bias) {
  if (module_ids_.size() <= file) module_ids_.resize(file + size_t{1});
  profile::ModuleId& id = module_ids_[file];
  if (!id) {
    id = profile::ModuleId(++last_module_);
    const ModuleFile& f = files_.file(file);
    sink_.emit(id, {f.path(), f.build_id(), bias});
  }
  return id;
}

profile::FrameId PerfStacks::user_frame(PerfProcess& process, RemoteAddress lookup,
                                        unwind::FoundBy found_by) {
  if (process.known_generation != process.generation() || process.known.size() > kMostKnown) {
    process.known.clear();
    process.known_generation = process.generation();
  }
  const auto [at, fresh] = process.known.try_emplace(lookup.value << 3 | static_cast<uint64_t>(found_by));
  if (fresh) at.value() = fresh_user_frame(process, lookup, found_by);
  return at->second;
}

profile::FrameId PerfStacks::python_function(const profile::Frame& frame) {
  const profile::FrameId id = interner_.frame(frame);
  if (is_python_frame_.size() <= id.value) is_python_frame_.resize(id.value + size_t{1});
  is_python_frame_[id.value] = true;
  return id;
}

profile::FrameId PerfStacks::fresh_user_frame(PerfProcess& process, RemoteAddress lookup,
                                              unwind::FoundBy found_by) {
  const auto found = process.find(lookup);
  profile::Frame frame;
  frame.kind = profile::FrameKind::native;
  frame.found_by = std::string(unwind::describe(found_by));
  frame.address = lookup.value;
  if (found.file == nullptr) {
    if (const auto named = process.jit_function(lookup)) {
      if (auto python = python_frame(named->name)) {
        python->first_line = named->line;
        return python_function(*python);
      }
      frame.function = frame.qualified_name = std::string(named->name);
      frame.file = std::string(named->file);
      frame.line = named->line;
    } else if (!found.mapped && process.tells_maps()) {
      return marker(kNotMapped);
    }
    return interner_.frame(frame);
  }
  frame.address -= found.bias;
  if (is_injected(found.file->path())) {
    if (const auto name = found.file->function_at(ImageAddress(frame.address))) {
      if (const auto python = python_frame(*name)) return python_function(*python);
    }
  }
  frame.module = module_of(found.file_number, found.bias);
  // Hidden if the Python frame next to it says what it runs.
  if (process.tells_python() && found.file->is_loop(ImageAddress(frame.address)))
    frame.role = profile::FrameRole::interpreter_loop;
  return interner_.frame(frame);
}

void PerfStacks::add_user(PerfProcess& process, RemoteAddress lookup, unwind::FoundBy found_by) {
  const profile::FrameId frame = user_frame(process, lookup, found_by);
  frames_.push_back(frame);
  with_python_ = with_python_ || (frame.value < is_python_frame_.size() && is_python_frame_[frame.value]);
}

bool PerfStacks::add_chain(PerfProcess& process, const perf::SampleRecord& sample, const PerfEvent& event) {
  ByteReader in(sample.callchain);
  enum class Part { none, kernel, user, other } part = Part::none;
  bool first = true, user = false;
  size_t count = 0;
  while (in.remaining() >= 8 && frames_.size() < kMostPerfFrames) {
    const auto word = in.read<uint64_t>();
    if (word >= static_cast<uint64_t>(PERF_CONTEXT_MAX)) {
      part = word == static_cast<uint64_t>(PERF_CONTEXT_KERNEL) ? Part::kernel
             : word == static_cast<uint64_t>(PERF_CONTEXT_USER) ? Part::user
                                                                : Part::other;
      first = true;
      continue;
    }
    ++count;
    if (part == Part::kernel) add_kernel(word, first);
    if (part == Part::user && word != 0) {
      add_user(process, first ? RemoteAddress(word) : RemoteAddress(word) - 1,
               first ? unwind::FoundBy::registers : unwind::FoundBy::frame_pointer);
      user = true;
    }
    first = false;
  }
  if (user) {
    ++counts_.chains;
    if (event.most_frames != 0 && count >= event.most_frames) {
      add_marker(kChainFull);
      ++counts_.full_chains;
      cut_ = true;
    }
  }
  return user;
}

// The processor's call stack: the addresses of all calls that have not returned yet, innermost first.
void PerfStacks::add_branches(PerfProcess& process, const perf::SampleRecord& sample) {
  ++counts_.chains;
  ByteReader in(sample.branches);
  bool first = true;
  while (in.remaining() >= sizeof(perf_branch_entry) && frames_.size() < kMostPerfFrames) {
    const auto from = in.read<uint64_t>(), to = in.read<uint64_t>();
    in.skip(sizeof(perf_branch_entry) - 16);
    if (first) {
      const bool in_user = sample.mode == PERF_RECORD_MISC_USER;
      add_user(process, RemoteAddress(in_user ? sample.ip : to), unwind::FoundBy::registers);
    }
    first = false;
    if (from != 0) add_user(process, RemoteAddress(from), unwind::FoundBy::code);
  }
}

void PerfStacks::add_unwound(PerfProcess& process, const perf::SampleRecord& sample) {
  ++counts_.unwound;
  counts_.longest_dump = std::max(counts_.longest_dump, sample.stack.size());
  const uint64_t sp = sample.registers.sp.value;
  bool below = false, beyond = false;
  unwind::UnwindInput input;
  input.registers = sample.registers;
  input.stack_start = sample.registers.sp;
  input.stack = sample.stack;
  input.read_more = [&](RemoteAddress address, uint64_t&) {
    below = below || (address.value < sp && sp - address.value <= unwind::kRedZone);
    beyond = beyond || address.value >= sp;
    return false;
  };
  input.read_code = [&](RemoteAddress at, std::span<std::byte> into) { return process.read_code(at, into); };
  process.unwind(input, native_);
  for (const unwind::NativeFrame& frame : native_.frames)
    add_user(process, frame.lookup_pc(), frame.found_by);
  switch (native_.end) {
    case unwind::StackEnd::reached_end:
      ++counts_.whole;
      return;
    case unwind::StackEnd::truncated:
      below && !beyond ? ++counts_.red_zone : ++counts_.too_short;
      add_marker(below && !beyond ? kRedZoneMissing : kDumpTooShort);
      break;
    case unwind::StackEnd::no_cfi:
      ++counts_.no_rule;
      add_marker(unwind::describe(native_.end));
      break;
    case unwind::StackEnd::bad_memory:
    case unwind::StackEnd::too_deep:
      ++counts_.senseless;
      add_marker(unwind::describe(native_.end));
      break;
  }
  cut_ = true;
}

PerfStacks::Stack PerfStacks::stack_of(PerfProcess& process, const perf::SampleRecord& sample,
                                       const PerfEvent& event) {
  frames_.clear();
  cut_ = with_python_ = false;
  const uint64_t type = event.shape.sample_type;
  bool user = add_chain(process, sample, event);
  // A kernel thread, or one that has left user space for good, has nothing more.
  if (!user && (type & PERF_SAMPLE_STACK_USER) != 0 && sample.has_registers) {
    add_unwound(process, sample);
    user = true;
  } else if (!user && (event.shape.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK) != 0 &&
             !sample.branches.empty()) {
    add_branches(process, sample);
    user = true;
  } else if (frames_.empty() && (type & PERF_SAMPLE_IP) != 0 && sample.ip != 0) {
    if (sample.mode == PERF_RECORD_MISC_KERNEL) {
      add_kernel(sample.ip, true);
    } else {
      add_user(process, RemoteAddress(sample.ip), unwind::FoundBy::registers);
    }
    if ((type & PERF_SAMPLE_STACK_USER) != 0 && sample.mode == PERF_RECORD_MISC_USER) {
      add_marker(kNoRegisters);
      cut_ = true;
    }
  }
  if (frames_.empty()) return {};
  ++counts_.samples;
  if (user) process.count_stack(with_python_);
  Stack stack;
  stack.cut = cut_;
  stack.id = interned(sample.tid);
  return stack;
}

// A thread is still in most frames of its previous sample: that part needs no look-up.
profile::StackId PerfStacks::interned(pid_t tid) {
  auto& last = last_[static_cast<size_t>(tid) % last_.size()];
  profile::StackId id;
  for (size_t depth = 0; depth < frames_.size(); ++depth) {
    const profile::FrameId frame = frames_[frames_.size() - 1 - depth];
    if (depth < last.size() && last[depth].frame == frame) {
      id = last[depth].id;
      continue;
    }
    last.resize(depth);
    id = interner_.stack(id, frame);
    last.push_back({frame, id});
  }
  return id;
}

std::vector<profile::NativeModule> PerfStacks::modules() {
  std::vector<profile::NativeModule> out;
  for (uint32_t i = 0; i < module_ids_.size(); ++i) {
    if (!module_ids_[i]) continue;
    const ModuleFile& file = files_.file(i);
    profile::NativeModule module;
    module.id = module_ids_[i];
    module.path = file.path();
    module.open_path = file.open_path();
    if (file.found() && file.open_path().empty()) {  // the vdso of this kernel
      module.descriptor = std::make_shared<Descriptor>(memory_file(file.elf().bytes()));
      if (*module.descriptor) module.open_path = path_of(*module.descriptor);
    }
    out.push_back(std::move(module));
  }
  return out;
}

}  // namespace phlox::importers
