#include "phlox/sampler/capture/stack_reader.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "phlox/base/load.h"
#include "phlox/python/line_table.h"

namespace phlox::sampler {
namespace {

using profile::Quality;
using python::RawFrame;
using python::WalkEnd;

// A stack with more Python frames keeps this many at the leaf and at the root, with a marker in between.
constexpr size_t kKeepLeaf = 1024;
constexpr size_t kKeepRoot = 512;
constexpr size_t kMaxFrames = 65536;
// If the time to read a stack is limited: at first, and at least.
constexpr size_t kFirstFrames = 16384, kLeastFrames = 2048;
// More nested evaluations than a C stack of 8 MiB can hold.
constexpr size_t kMostEvaluations = 65536;

}  // namespace

StackReader::StackReader(const python::Interpreter& interpreter, memory::RemoteMemory& memory, Ring& ring,
                         Snapshot& snapshot, NativeCopy* native)
    : interpreter_(interpreter),
      layout_(interpreter.layout),
      snapshot_(snapshot),
      native_(native),
      codes_(layout_, memory, ring),
      frames_(static_cast<RawFrame*>(std::calloc(kMaxFrames, sizeof(RawFrame)))),
      most_frames_(kMaxFrames) {
  if (!frames_) throw std::bad_alloc();
  locations_.reserve(kKeepLeaf + kKeepRoot + 1);
}

bool StackReader::is_on_its_stack(const ThreadState& state, const std::byte* thread) const {
  if (!layout_.thread.cframe.present()) return true;  // unknown: such a sample is unproved
  const RemoteAddress cframe(load<uint64_t>(thread + *layout_.thread.cframe));
  return cframe.value - state.tstate.value < *layout_.thread.size ||
         (cframe >= state.stack_start && cframe < state.stack_end);
}

// In a valid chain, the first entry frame is preceded by the outer CFrame's current_frame. Returns that frame
// if the chain is not valid: an evaluation that has just been entered (python::outer_frame).
std::optional<RemoteAddress> StackReader::unpublished_evaluation(RemoteAddress state, const std::byte* thread,
                                                                 const python::WalkResult& walk) {
  const RemoteAddress outer = python::outer_frame(layout_, state, thread, snapshot_);
  // The outermost evaluation: there is nothing else to check, so the frames found stay, even if detached
  // (3.12 clears a generator's `previous` while it is still current_frame).
  if (!outer) return {};
  for (size_t i = 0; i < walk.count; ++i) {
    if (!frames_[i].entry) continue;
    const RemoteAddress before = i + 1 < walk.count ? frames_[i + 1].frame : RemoteAddress{};
    // If the walk was cut here, the frame before it was not read.
    if (before == outer || (walk.end == WalkEnd::full && i + 1 == walk.count)) return {};
    return outer;
  }
  // A chain that is longer than the walk may still be valid.
  if (walk.end == WalkEnd::full) return {};
  return outer;
}

void StackReader::limit(Nanoseconds longest) {
  longest_ = longest;
  most_frames_ = kFirstFrames;
}

void StackReader::was_moved() {
  if (!longest_ || last_count_ <= kLeastFrames) return;
  most_frames_ = std::max(kLeastFrames, std::min(most_frames_, last_count_) / 2);
  may_grow_ = false;
}

// The next sample's copy takes about as long as this walk.
void StackReader::learn(size_t count, Nanoseconds took) {
  last_count_ = count;
  const Nanoseconds most = *longest_ / 2;
  if (took > most && count > kLeastFrames) {
    const double part = static_cast<double>(most) / static_cast<double>(took);
    most_frames_ = std::max(kLeastFrames, static_cast<size_t>(static_cast<double>(count) * part));
    may_grow_ = false;
  } else if (count == most_frames_ && may_grow_ && took < most / 2) {
    most_frames_ = std::min(2 * most_frames_, kMaxFrames);
  }
}

// Its frames, leaf first; none: the reading has the reason.
std::optional<python::WalkResult> StackReader::walk(const ThreadState& state, const std::byte* thread,
                                                    Reading& reading) {
  bool unreadable = false;
  const RemoteAddress top = python::top_frame(layout_, thread, snapshot_, unreadable);
  if (unreadable) {
    reading.rejected = Rejected::unreadable;
    return {};
  }
  const std::span frames(frames_.get(), most_frames_);
  const Nanoseconds begin = longest_ ? clock_now() : 0;
  auto walk = python::walk_frames(layout_, top, snapshot_, frames);
  if (const auto outer = unpublished_evaluation(state.tstate, thread, walk))
    walk = python::walk_frames(layout_, *outer, snapshot_, frames);
  if (longest_) learn(walk.count, clock_now() - begin);
  if (walk.end == WalkEnd::broken) {
    reading.rejected = Rejected::broken;
    return {};
  }
  if (walk.end == WalkEnd::unreadable && !snapshot_.exhausted()) {
    reading.rejected = Rejected::unreadable;
    return {};
  }
  return walk;
}

// Entry frames are anchors for native frames, not Python frames. False: it cannot be read.
bool StackReader::append(ThreadState& state, size_t index, size_t count) {
  const RawFrame& frame = frames_[index];
  if (native_ != nullptr) note_start(frame, index);
  if (!frame.code) return true;
  const CodeCache::Entry* entry = codes_.find(frame.code, snapshot_, state.codes[count - 1 - index].second);
  if (entry == nullptr) return false;
  if (entry->number == kNotRead) {
    locations_.push_back(CodeLocation{kNotRead, 0});
    return true;
  }
  CodeLocation location;
  location.code = entry->number;
  const RemoteAddress bytecode =
      python::bytecode_of_frame(layout_, frame.frame, frame.code, entry->first_instruction, snapshot_);
  if (!bytecode) return false;
  location.instruction = python::instruction_offset(layout_.traits, bytecode, frame.instruction);
  locations_.push_back(location);
  return true;
}

// For the first `count` of frames_, root first. False: one cannot be read.
bool StackReader::locate(ThreadState& state, size_t count, bool root_missing, Reading& reading) {
  const bool deep = count > kKeepLeaf + kKeepRoot + 64;
  const size_t root_from = deep ? count - kKeepRoot : 0;  // frames_[count-1] is the root
  state.codes.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (!frames_[i].code || ((deep || root_missing) && i >= kKeepLeaf && (!deep || i < root_from))) continue;
    // Most of a stack is the same as in the last sample.
    auto& [address, entry] = state.codes[count - 1 - i];
    if (entry != nullptr && address == frames_[i].code) {
      codes_.want(*entry, snapshot_);
    } else {
      address = frames_[i].code;
      entry = codes_.want(address, snapshot_);
    }
  }
  snapshot_.fetch_wanted();
  bool known = true;
  if (root_missing) {
    locations_.push_back(CodeLocation{kFramesLeftOut, 0});
    reading.quality = Quality::cut;
    for (size_t i = std::min(count, kKeepLeaf); known && i-- > 0;) known = append(state, i, count);
  } else if (deep) {
    for (size_t i = count; known && i-- > root_from;) known = append(state, i, count);
    locations_.push_back(CodeLocation{kFramesLeftOut, static_cast<int32_t>(root_from - kKeepLeaf)});
    for (size_t i = kKeepLeaf; known && i-- > 0;) known = append(state, i, count);
    reading.quality = Quality::cut;
  } else {
    for (size_t i = count; known && i-- > 0;) known = append(state, i, count);
  }
  return known;
}

StackReader::Reading StackReader::read(Snapshot::Reader reader, ThreadState& state) {
  Reading reading;
  locations_.clear();
  const ReadAs as(snapshot_, reader);
  codes_.begin_sample(state.interpreter, python::code_epoch(interpreter_, state.interpreter, snapshot_));
  if (std::exchange(state.codes_generation, codes_.generation()) != codes_.generation()) state.codes.clear();
  if (!state.tstate) {
    reading.whole = true;
    return reading;
  }
  const std::byte* thread = snapshot_.find(state.tstate, *layout_.thread.size);
  if (thread == nullptr) {
    reading.rejected = Rejected::unreadable;
    return reading;
  }
  if (load<uint64_t>(thread + *layout_.thread.interp) != state.interpreter.value ||
      load<uint64_t>(thread + *layout_.thread.thread_id) != state.python_id) {
    reading.whole = reading.state_gone = true;
    return reading;
  }
  if (state.unbound && !is_on_its_stack(state, thread)) {
    reading.runs_elsewhere = true;
    reading.rejected = Rejected::moved;
    return reading;
  }
  const auto walked = walk(state, thread, reading);
  if (!walked) return reading;
  if (walked->end == WalkEnd::detached) {
    reading.quality = Quality::detached;
    locations_.push_back(CodeLocation{kCallersUnknown, 0});
  }
  const bool root_missing = walked->end == WalkEnd::full || walked->end == WalkEnd::unreadable;
  if (!locate(state, walked->count, root_missing, reading)) {
    reading.rejected = Rejected::unreadable;
    return reading;
  }
  if (native_ != nullptr) find_anchors(state.tstate, thread, walked->count);
  reading.whole = true;
  if (state.unbound && !layout_.thread.cframe.present() && reading.quality == Quality::ok)
    reading.quality = Quality::unproved;
  reading.frames = std::span(frames_.get(), walked->count);
  return reading;
}

// Called for each frame, root first, before its location: notes where evaluations begin. In 3.12 and later
// the entry frame marks it and is the anchor; in 3.11 the first Python frame of an evaluation does; before,
// every frame is an evaluation of its own.
void StackReader::note_start(const python::RawFrame& frame, size_t raw) {
  const auto position = static_cast<uint32_t>(locations_.size());
  if (python::has_entry_frames(layout_)) {
    if (!frame.code && frame.entry) native_->add_start({frame.frame.value, position, 0});
  } else if (frame.code && (frame.entry || !layout_.traits.interpreter_frames)) {
    native_->add_start({0, position, static_cast<uint32_t>(raw)});
  }
}

// 3.10 and 3.11: the anchors are the CFrames, one per evaluation, chained from the innermost to the one in
// the thread state. 3.11's name their frame: CFrames without an evaluation, such as greenlet's at the root of
// each of its stacks, name no frame of this chain. 3.10's do not; the innermost may be there before its frame
// is, so they are counted from the root.
void StackReader::find_anchors(RemoteAddress state, const std::byte* thread, size_t frames) {
  if (python::has_entry_frames(layout_) || !layout_.thread.cframe.present() ||
      !layout_.cframe.previous.present()) {
    return;
  }
  std::vector<uint64_t>&links = links_, &chain = anchors_;
  links.clear();
  chain.clear();
  RemoteAddress at;
  std::memcpy(&at.value, thread + *layout_.thread.cframe, sizeof at.value);
  // root_cframe, the last one, lies in the thread state; its `previous` is uninitialised (3.10,
  // Python/pystate.c: new_threadstate() leaves it as malloc gave it).
  while (at - state >= *layout_.thread.size) {
    RemoteAddress previous;
    if (!is_plausible(at) || links.size() == kMostEvaluations ||
        !snapshot_.load(at + *layout_.cframe.previous, previous.value)) {
      return;  // no anchors rather than wrong ones
    }
    links.push_back(at.value);
    at = previous;
  }
  std::reverse(links.begin(), links.end());
  const auto begins = [&](size_t i) {
    return frames_[i].code && (frames_[i].entry || !layout_.traits.interpreter_frames);
  };
  if (!layout_.cframe.current_frame.present()) {
    chain.swap(links);
  } else {
    size_t from = frames;  // frames from this one on, root first, have their evaluations
    for (const uint64_t link : links) {
      RemoteAddress current;
      if (!snapshot_.load(RemoteAddress(link) + *layout_.cframe.current_frame, current.value)) {
        chain.clear();
        return;
      }
      size_t to = from;
      while (to > 0 && frames_[to - 1].frame != current) --to;
      if (to == 0) continue;
      const size_t before = chain.size();
      for (; from >= to; --from) {
        if (begins(from - 1)) chain.push_back(0);
      }
      if (chain.size() > before) chain.back() = link;
    }
  }
  // Pairs the frames, root first, with the starts, which may leave out the middle of a very deep stack.
  auto& starts = native_->starts();
  size_t evaluation = 0, next = 0;
  for (size_t i = frames; i-- > 0 && next < starts.size();) {
    if (!begins(i)) continue;
    if (starts[next].raw == i) {
      if (evaluation < chain.size()) starts[next].anchor = chain[evaluation];
      ++next;
    }
    ++evaluation;
  }
}

}  // namespace phlox::sampler
