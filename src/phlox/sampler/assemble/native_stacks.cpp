#include "phlox/sampler/assemble/native_stacks.h"

#include <algorithm>
#include <utility>

#include "phlox/base/memory_file.h"
#include "phlox/base/text.h"
#include "phlox/sampler/assemble/consumer.h"

namespace phlox::sampler {
namespace {

// A library may have been loaded meanwhile: the maps are read again when a stack leads to unknown memory, but
// not for each stack, and less and less often if that does not help.
constexpr Nanoseconds kShortestRefresh = kSecond / 20;
// How often the maps are read again: code is seldom unmapped and replaced by other code at its address.
constexpr Nanoseconds kRefreshMapsEvery = 2 * kSecond;
// Whole stacks that must agree on the distance of the anchor from the loop's CFA before it is used.
constexpr unsigned kAgree = 8;

// What is further out on the C stack belongs to others.
constexpr const char* kGreenletStart = "(a greenlet begins here)";

}  // namespace

NativeStacks::NativeStacks(pid_t pid, memory::RemoteMemory& memory, Identities& identities,
                           profile::Sink& sink, std::string cache_folder)
    : pid_(pid),
      pause_(kShortestRefresh),
      memory_(memory),
      identities_(identities),
      sink_(sink),
      space_(pid, memory, std::move(cache_folder), &identities.files),
      unwinder_(
          space_.map(), space_.machine(), [this](uint32_t module) { return space_.table_of(module); },
          [this](uint32_t module) { return space_.code_of(module); }) {
  space_.refresh(clock_now());
}

void NativeStacks::unwind(const NativeSample& sample) {
  restarts_.clear();
  if (distance_ > 0 && agreed_ >= kAgree && ra_offset_ != 0) {
    for (const PythonGroup& group : groups_) {
      if (group.anchor) {
        restarts_.push_back(
            {group.anchor, group.anchor + static_cast<uint64_t>(distance_), ra_offset_, fp_offset_});
      }
    }
    std::sort(restarts_.begin(), restarts_.end(),
              [](const auto& a, const auto& b) { return a.anchor < b.anchor; });
  }
  unwind::UnwindInput input;
  input.registers = {
      RemoteAddress(sample.head.pc), RemoteAddress(sample.head.sp), sample.head.fp,       sample.head.lr,
      sample.head.fp_known,          sample.head.lr_known,          sample.head.bx_known, sample.head.bx};
  input.stack_start = RemoteAddress(sample.head.stack_start);
  input.stack = sample.stack;
  input.restarts = restarts_;
  input.read_code = [this](RemoteAddress at, std::span<std::byte> into) { return memory_.read(at, into); };
  unwinder_.unwind(input, native_);
}

// A restart needs to know where a C frame of the loop ends; whole stacks that were walked by CFI show it.
void NativeStacks::learn_distance() {
  if (distance_ < 0 || agreed_ >= kAgree) return;
  for (const PythonGroup& group : groups_) {
    if (!group.anchor) continue;
    const auto host = std::find_if(native_.frames.begin(), native_.frames.end(), [&](const auto& f) {
      return group.anchor >= f.sp && group.anchor < f.cfa;
    });
    if (host == native_.frames.end() || host + 1 == native_.frames.end()) return;
    if ((host + 1)->found_by != unwind::FoundBy::cfi) return;
    const auto distance = static_cast<int64_t>(host->cfa - group.anchor);
    if (agreed_ > 0 && distance != distance_) {
      distance_ = -1;  // a loop in several functions with frames of their own: the distance is useless
      return;
    }
    distance_ = distance;
    if (const unwind::UnwindTable* table = space_.table_of(host->module)) {
      const auto rule = table->find(ImageAddress(host->lookup_pc().value - space_.mapped(host->module).bias));
      fp_offset_ = rule.fp == unwind::FpRule::at_cfa ? rule.fp_offset : 0;
      if (rule.kind == unwind::RuleKind::plain && rule.ra == unwind::RaRule::at_cfa)
        ra_offset_ = rule.ra_offset;
    }
  }
  ++agreed_;
}

// The kernel is one module, whatever is loaded into it.
profile::FrameId NativeStacks::kernel_frame(uint64_t address, bool exact) {
  const uint64_t inside = exact ? address : address - 1;
  const auto [at, fresh] = known_kernel_.try_emplace(inside);
  if (!fresh) return at->second;
  if (!kernel_) {
    kernel_ = profile::ModuleId(identities_.next_module++);
    sink_.emit(kernel_, {"[kernel]", "", 0});
  }
  profile::Frame frame;
  frame.kind = profile::FrameKind::kernel;
  frame.module = kernel_;
  frame.address = inside;
  frame.found_by = "kernel";
  return at->second = identities_.interner.frame(frame);
}

profile::FrameId NativeStacks::marker(const char* text) {
  profile::Frame frame;
  frame.kind = profile::FrameKind::marker;
  frame.function = text;
  frame.qualified_name = text;
  return identities_.interner.frame(frame);
}

// A file that processes of one user map is one module, so that a recording of months holds its functions
// once.
profile::ModuleId NativeStacks::module_id(uint32_t number) {
  const AddressSpace::Mapped& mapped = space_.mapped(number);
  const std::string file = space_.identity_of(number);
  const profile::ModuleId known = file.empty() ? profile::ModuleId() : identities_.modules[file];
  if (known) return known;
  const profile::ModuleId id(identities_.next_module++);
  sink_.emit(id, {mapped.file.path, mapped.build_id, mapped.bias});
  if (!file.empty()) identities_.modules[file] = id;
  return id;
}

profile::FrameId NativeStacks::frame_of(const unwind::NativeFrame& native, bool loop) {
  if (known_generation_ != space_.map().generation()) {
    known_.clear();
    known_generation_ = space_.map().generation();
  }
  // 48 bits of address, 3 of FoundBy, one of the loop.
  const uint64_t key =
      native.lookup_pc().value << 4 | static_cast<uint64_t>(native.found_by) << 1 | (loop ? 1 : 0);
  const auto [at, fresh] = known_.try_emplace(key);
  if (!fresh) return at->second;
  profile::Frame frame;
  frame.kind = profile::FrameKind::native;
  frame.found_by = std::string(unwind::describe(native.found_by));
  if (loop) frame.role = profile::FrameRole::interpreter_loop;
  frame.address = native.lookup_pc().value;
  if (!native.pc) frame.function = frame.qualified_name = "(interpreter loop)";
  if (native.module != unwind::kNoModule) {
    const AddressSpace::Mapped& mapped = space_.mapped(native.module);
    if (module_ids_.size() <= native.module) module_ids_.resize(native.module + size_t{1});
    profile::ModuleId& id = module_ids_[native.module];
    if (!id) {
      id = module_id(native.module);
      fresh_.push_back(native.module);
    }
    frame.module = id;
    frame.address -= mapped.bias;
  }
  if (native.module == unwind::kNoModule && native.pc) {
    const auto* code = space_.map().find(native.lookup_pc());
    if (code != nullptr && code->returned_to.kind != unwind::RuleKind::none)
      frame.role = profile::FrameRole::trampoline;
  }
  if (frame.module) return at->second = identities_.interner.frame(frame);
  // The code at this address belongs to this process: another process has other code there.
  if (number_ == 0) number_ = identities_.next_address_space++;
  at->second = identities_.interner.frame(frame, number_);
  code_.insert(at->second);
  return at->second;
}

void NativeStacks::refresh_now_and_then() {
  const Nanoseconds now = clock_now();
  if (now - space_.refreshed_at() <= kRefreshMapsEvery) return;
  space_.refresh(now);
  pause_ = kShortestRefresh;
}

// Whether the walk has reached unknown memory. One that was restarted further out has, too.
bool NativeStacks::is_lost() const {
  return native_.end != unwind::StackEnd::reached_end ||
         std::any_of(native_.frames.begin(), native_.frames.end(),
                     [](const auto& frame) { return frame.found_by == unwind::FoundBy::restart; });
}

bool NativeStacks::found_new_code() {
  const Nanoseconds now = clock_now();
  if (now - space_.refreshed_at() <= pause_) return false;
  const uint64_t before = space_.map().generation();
  space_.refresh(now);
  const bool found = space_.map().generation() != before;
  pause_ = found ? kShortestRefresh : std::min(2 * pause_, kRefreshMapsEvery);
  return found;
}

bool NativeStacks::of_greenlet(const unwind::NativeFrame& frame) {
  return frame.module != unwind::kNoModule &&
         base_name(space_.mapped(frame.module).file.path).starts_with("_greenlet.");
}

// 3.10's anchors are counted from the root, because its CFrames do not name their frames, and greenlet puts
// one of its own at the root of each of its stacks: then all are one evaluation too far out. The innermost
// group is placed in a remaining loop frame.
void NativeStacks::pass_over_greenlet() {
  const auto outermost =
      std::find_if(groups_.rbegin(), groups_.rend(), [](const PythonGroup& group) { return !!group.anchor; });
  if (outermost == groups_.rend()) return;
  for (const auto& frame : native_.frames) {
    if (outermost->anchor < frame.sp || outermost->anchor >= frame.cfa) continue;
    if (!of_greenlet(frame)) return;
    for (auto group = outermost; group != groups_.rend(); ++group) {
      const auto inner = std::next(group);
      group->anchor = inner == groups_.rend() ? RemoteAddress() : inner->anchor;
    }
    return;
  }
}

// Starts are root first, and mark where an evaluation begins; groups are innermost first, and count from the
// leaf.
void NativeStacks::group(const NativeSample& sample, uint32_t positions) {
  groups_.clear();
  uint32_t end = positions;
  for (size_t i = sample.starts.size(); i-- > 0;) {
    const EvaluationStart& start = sample.starts[i];
    if (start.position > end) continue;
    if (start.position < end)
      groups_.push_back({positions - end, end - start.position, RemoteAddress(start.anchor)});
    end = start.position;
  }
  if (end > 0) groups_.push_back({positions - end, end, {}});
}

// By symbols. Whether the walk was restarted somewhere.
bool NativeStacks::mark_loops() {
  const auto& frames = native_.frames;
  is_loop_.assign(frames.size(), 0);
  bool restarted = false;
  for (size_t i = 0; i < frames.size(); ++i) {
    is_loop_[i] = space_.is_loop(frames[i]) ? 1 : 0;
    restarted = restarted || frames[i].found_by == unwind::FoundBy::restart;
  }
  return restarted;
}

// The frame that contains an anchor is the loop, whatever symbols say.
void NativeStacks::mark_anchored_loops() {
  const auto& frames = native_.frames;
  for (const PythonGroup& group : groups_) {
    if (!group.anchor) continue;
    for (size_t i = 0; i < frames.size(); ++i) {
      if (group.anchor < frames[i].sp || group.anchor >= frames[i].cfa) continue;
      is_loop_[i] = 1;
      break;
    }
  }
}

void NativeStacks::count(const Walk& walk) {
  ++counts_.samples;
  counts_.frames += native_.frames.size();
  counts_.prologues += merged_.prologue;
  counts_.restarted += walk.restarted;
  counts_.cut += !walk.whole && !walk.greenlet;
  const bool unmerged =
      merged_.end == MergeEnd::partial || (merged_.end == MergeEnd::native_cut && walk.whole);
  counts_.unmerged += unmerged;
  counts_.whole += (walk.whole || walk.greenlet) && !walk.restarted && !unmerged;
}

// The merged stack, from its root.
profile::StackId NativeStacks::intern(const NativeSample& sample, std::span<const profile::FrameId> python,
                                      const Walk& walk) {
  profile::StackId stack;
  const auto add = [&](profile::FrameId frame) { stack = identities_.interner.stack(stack, frame); };
  const size_t last = native_.frames.size() - 1;
  for (size_t i = merged_.frames.size(); i-- > 0;) {
    const MergedFrame& frame = merged_.frames[i];
    if (frame.python) {
      if (const profile::FrameId id = python[python.size() - 1 - frame.index]) add(id);
      continue;
    }
    const unwind::NativeFrame& native = native_.frames[frame.index];
    if (frame.index == last && !walk.whole)
      add(marker(walk.greenlet ? kGreenletStart : unwind::describe(native_.end)));
    add(frame_of(native, is_loop_[frame.index] != 0));
    // Between a restart and what is inside it, some native frames are not known.
    if (native.found_by == unwind::FoundBy::restart)
      add(marker("(native frames missing: no unwind information)"));
  }
  for (size_t i = sample.kernel.size(); i-- > 0;) add(kernel_frame(sample.kernel[i], i == 0));
  return stack;
}

NativeStacks::Stack NativeStacks::merge(const NativeSample& sample,
                                        std::span<const profile::FrameId> python) {
  group(sample, static_cast<uint32_t>(python.size()));
  refresh_now_and_then();
  unwind(sample);
  if (is_lost() && found_new_code()) unwind(sample);

  auto& frames = native_.frames;
  const size_t own = frames_of_greenlet(groups_, frames, [this](const auto& f) { return of_greenlet(f); });
  if (own != 0) frames.resize(own);
  pass_over_greenlet();
  Walk walk;
  walk.restarted = mark_loops();
  walk.whole = native_.end == unwind::StackEnd::reached_end && own == 0;
  walk.greenlet = own != 0 || (!walk.whole && of_greenlet(frames.back()));
  sampler::merge(groups_, frames, is_loop_, walk.whole ? NativeEnd::start : NativeEnd::cut, merged_);
  mark_anchored_loops();
  if (walk.whole && !walk.restarted) learn_distance();
  count(walk);
  return {intern(sample, python, walk), (!walk.whole && !walk.greenlet) || walk.restarted};
}

NativeModule NativeStacks::module_of(uint32_t number, Descriptor file,
                                     const std::shared_ptr<Descriptor>& root) const {
  NativeModule module;
  module.id = module_ids_[number];
  module.path = space_.file_of(number).path;
  module.root = root;
  module.user = space_.user();
  if (file) {
    module.open_path = path_of(file);
    module.descriptor = std::make_shared<Descriptor>(std::move(file));
  }
  return module;
}

void NativeStacks::put_jit_files(std::vector<AddressSpace::JitDump> dumps, Descriptor perf_map,
                                 std::vector<NativeModule>& out) const {
  const auto code = std::make_shared<std::set<profile::FrameId>>(code_);
  const auto put = [&](NativeFile kind, std::string path, Descriptor file) {
    if (!file) return;
    NativeModule module;
    module.kind = kind;
    module.path = std::move(path);
    module.code = code;
    module.descriptor = std::make_shared<Descriptor>(std::move(file));
    out.push_back(std::move(module));
  };
  for (AddressSpace::JitDump& dump : dumps)
    put(NativeFile::jitdump, dump.file.path, std::move(dump.descriptor));
  put(NativeFile::perf_map, "", std::move(perf_map));
}

std::vector<NativeModule> NativeStacks::fresh_modules(bool with_jit) {
  std::vector<NativeModule> out;
  if (!fresh_.empty()) {
    const auto root = std::make_shared<Descriptor>(space_.copy_root());
    for (const uint32_t number : std::exchange(fresh_, {}))
      out.push_back(module_of(number, space_.copy_descriptor(number), root));
  }
  if (with_jit && !code_.empty()) {
    code_handed_ = code_.size();
    put_jit_files(space_.copy_jitdumps(), space_.copy_perf_map(), out);
  }
  return out;
}

std::vector<NativeModule> NativeStacks::take_modules() {
  std::vector<NativeModule> out;
  Descriptor perf_map = space_.take_perf_map();  // before take_root()
  const auto root = std::make_shared<Descriptor>(space_.take_root());
  for (uint32_t i = 0; i < module_ids_.size(); ++i) {
    if (module_ids_[i]) out.push_back(module_of(i, space_.take_descriptor(i), root));
  }
  put_jit_files(space_.take_jitdumps(), std::move(perf_map), out);
  return out;
}

}  // namespace phlox::sampler
