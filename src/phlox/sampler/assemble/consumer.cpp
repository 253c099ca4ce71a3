#include "phlox/sampler/assemble/consumer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "phlox/profile/recorded_words.h"

namespace phlox::sampler {
namespace {

template <class Record>
Record record_at(std::span<const std::byte> bytes) {
  Record record;
  std::memcpy(&record, bytes.data(), sizeof record);
  return record;
}

std::string_view describe(Rejected why) {
  switch (why) {
    case Rejected::moved:
      return "(rejected: the thread ran while it was read)";
    case Rejected::unreadable:
      return "(rejected: memory that cannot be read)";
    case Rejected::broken:
      return "(rejected: frames that make no sense)";
    case Rejected::no:
      break;
  }
  return "";
}

// Frames whose rows are found without the interner; more are looked up again.
constexpr size_t kMostKnownFrames = 500'000;
// Bytes of line tables that are searched for one stack: a table is read from its start, at a byte per
// nanosecond, once for each new instruction.
constexpr size_t kMostSearched = size_t{64} << 20;

// A thread that used more after its last sample did more than that one shows.
constexpr Nanoseconds kLongestRest = kSecond / 10;

}  // namespace

Consumer::Consumer(const python::Layout& layout, profile::ProcessId process, profile::Sink& sink,
                   Identities& identities, NameThread name_thread)
    : layout_(layout),
      process_(process),
      sink_(sink),
      identities_(identities),
      name_thread_(std::move(name_thread)) {}

void Consumer::with_end(pid_t process, std::function<std::optional<Nanoseconds>()> used) {
  first_ = process;
  used_at_end_ = std::move(used);
}

profile::FrameId Consumer::marker(std::string text) {
  profile::Frame frame;
  frame.kind = profile::FrameKind::marker;
  frame.function = text;
  frame.qualified_name = std::move(text);
  return identities_.interner.frame(frame);
}

void Consumer::take_code(const CodeRecord& record, const Handed& handed) {
  if (const auto gone = codes_.find(record.retired); gone != codes_.end()) {
    known_frames_ -= gone->second.frames.size();
    codes_.erase(gone);
  }
  auto code = python::decode_code(layout_, *handed.code);
  codes_[record.code] = KnownCode{code ? std::make_unique<python::Code>(std::move(*code)) : nullptr, {}};
}

profile::FrameId Consumer::frame_of(CodeLocation location) {
  if (location.code == kFramesLeftOut) {
    return marker(location.instruction > 0 ? fmt::format("({} frames left out)", location.instruction)
                                           : "(more frames left out)");
  }
  if (location.code == kNotRead) return marker("(a function not read: too many new ones at once)");
  if (location.code == kNotWalked) return marker(std::string(profile::kWaitNotRead));
  if (location.code == kNotSeen) return marker(std::string(profile::kBetweenSamples));
  if (location.code == kCallersUnknown) return marker("(callers unknown: a generator between two states)");
  const auto found = codes_.find(location.code);
  if (found == codes_.end() || found->second.code == nullptr)
    return marker("(a code object that cannot be read)");
  KnownCode& known = found->second;
  if (known_frames_ >= kMostKnownFrames) {
    for (auto& [number, code] : codes_) code.frames.clear();
    known_frames_ = 0;
  }
  const auto [at, fresh] = known.frames.try_emplace(location.instruction);
  known_frames_ += fresh;
  if (fresh && !known.code->shim) {
    const python::Code& code = *known.code;
    profile::Frame frame;
    frame.function = code.name;
    frame.qualified_name = code.qualified_name;
    frame.file = code.file;
    frame.first_line = code.first_line;
    searched_ += code.line_table.size();
    if (searched_ <= kMostSearched) {
      frame.line = code.line(location.instruction);
    } else {
      ++without_line_;
    }
    at->second = identities_.interner.frame(frame);
  }
  return at->second;
}

void Consumer::take_sample(const ThreadSample& record, std::span<const std::byte> body) {
  const auto found = threads_.find(record.thread);
  if (found == threads_.end()) return;
  ThreadState& thread = found->second;
  TracedSample sample;
  sample.thread = thread.id;
  sample.wall = record.time.wall;
  sample.start = record.time.end - record.time.wall;
  sample.cpu = record.time.cpu;
  sample.samples = record.part ? 0 : record.time.samples;
  sample.cpu_number = record.state.cpu_number;
  sample.cpu_state = record.state.cpu_state;
  sample.gil_state = record.python.gil_state;
  sample.collecting = record.python.collecting;
  sample.system_call = record.state.system_call;
  sample.quality = record.state.quality;
  sample.trace = record.state.trace;
  if (const auto waker = wakers_.find(record.state.waker); waker != wakers_.end())
    sample.waker = waker->second;
  if (record.state.cpu_state == profile::CpuState::blocked)
    sample.wait_target = wait_target_of(record, thread);
  if (const auto file = code_files_.find(record.state.code_file); file != code_files_.end())
    sample.code_file = file->second;
  if (record.state.rejected != Rejected::no) {
    sample.stack = identities_.interner.stack({}, marker(std::string(describe(record.state.rejected))));
    // The sampler restarts this thread's stack after a rejected sample.
    thread.stacks.clear();
    thread.frames.clear();
    thread.merged = {};
  } else if (native_ != nullptr) {
    take_native(record, body, thread, sample);
  } else {
    const size_t keep = std::min<size_t>(record.stack.keep, thread.stacks.size());
    thread.stacks.resize(keep);
    for (size_t i = 0; i < record.stack.fresh && (i + 1) * sizeof(CodeLocation) <= body.size(); ++i) {
      CodeLocation location;
      std::memcpy(&location, body.data() + i * sizeof(CodeLocation), sizeof location);
      const profile::StackId parent = thread.stacks.empty() ? profile::StackId{} : thread.stacks.back();
      const profile::FrameId frame = frame_of(location);
      // A shim is not shown: its location keeps the stack below it, so that `keep` still counts locations.
      thread.stacks.push_back(frame ? identities_.interner.stack(parent, frame) : parent);
    }
    sample.stack = thread.stacks.empty() ? profile::StackId{} : thread.stacks.back();
  }
  // CPU time left at the thread's end, without a running sample to charge it to.
  if (record.time.samples == 0 && record.time.cpu > 0 &&
      record.state.cpu_state != profile::CpuState::running) {
    move_between_samples(sample);
    sample.cpu_state = profile::CpuState::running;
    sample.system_call = -1;
    sample.waker = {};
    sample.wait_target = {};
  }
  put_split(record, thread, sample);
  if (thread.tid == first_) charged_ += record.time.cpu;
  if (record.state.rejected == Rejected::no) thread.last = sample;
  thread.until = record.time.end;
}

// Its stack is not known, and so not cut either.
void Consumer::move_between_samples(TracedSample& sample) {
  sample.stack = identities_.interner.stack({}, marker(std::string(profile::kBetweenSamples)));
  sample.quality = profile::Quality::ok;
  sample.trace = 0;
}

profile::WaitTargetId Consumer::wait_target_of(const ThreadSample& record, ThreadState& thread) {
  if (const auto known = wait_targets_.find(record.state.wait_target); known != wait_targets_.end())
    return known->second;
  if (files_ == nullptr || record.state.waits_for.kind == process::WaitsFor::Kind::unknown) return {};
  const bool same = record.time.wait_since != 0 && record.time.wait_since == thread.wait_target_since;
  if (same && thread.wait_target) return thread.wait_target;
  const auto found = files_->of_wait(
      {record.state.waits_for, record.time.end - record.time.wall, record.time.wait_since, record.time.end});
  thread.wait_target = found ? identities_.interner.wait_target(*found) : profile::WaitTargetId();
  thread.wait_target_since = record.time.wait_since;
  return thread.wait_target;
}

// Keeps the Python frames, not their stacks: the merged stack becomes a row.
void Consumer::take_native(const ThreadSample& record, std::span<const std::byte> body, ThreadState& thread,
                           TracedSample& sample) {
  thread.frames.resize(std::min<size_t>(record.stack.keep, thread.frames.size()));
  size_t at = 0;
  for (uint32_t i = 0; i < record.stack.fresh && at + sizeof(CodeLocation) <= body.size();
       ++i, at += sizeof(CodeLocation)) {
    CodeLocation location;
    std::memcpy(&location, body.data() + at, sizeof location);
    thread.frames.push_back(frame_of(location));
  }
  if (record.native.part == NativePart::fresh && parse_native_sample(body.subspan(at), native_sample_)) {
    const NativeStacks::Stack merged = native_->merge(native_sample_, thread.frames);
    thread.merged = merged.id;
    thread.merged_cut = merged.cut;
    thread.kept[static_cast<size_t>(record.native.place)] = {record.native.id, merged};
  } else if (const auto& kept = thread.kept[static_cast<size_t>(record.native.place)];
             record.native.part == NativePart::kept && kept.id == record.native.id && kept.stack.id) {
    thread.merged = kept.stack.id;
    thread.merged_cut = kept.stack.cut;
  } else if (record.native.part != NativePart::same || !thread.merged) {
    thread.merged = {};
    thread.merged_cut = false;
    for (const profile::FrameId frame : thread.frames) {
      if (frame) thread.merged = identities_.interner.stack(thread.merged, frame);
    }
  }
  sample.stack = thread.merged;
  if (thread.merged_cut && sample.quality == profile::Quality::ok) sample.quality = profile::Quality::cut;
}

// A thread that was met before it first called Python stays one row.
bool Consumer::take_over(const ThreadRecord& record) {
  const auto live = std::find_if(live_.begin(), live_.end(), [&](const LiveThread& known) {
    return known.row.tid == record.tid && known.row.python_id == 0;
  });
  if (record.tid == 0 || record.python_id == 0 || live == live_.end()) return false;
  for (auto& [number, state] : threads_) {
    if (state.id == live->id) state.taken_over = true;
  }
  threads_[record.thread].id = live->id;
  threads_[record.thread].tid = record.tid;
  live->row.python_id = record.python_id;
  live->row.interpreter = record.interpreter;
  name_thread_(live->row);
  sink_.emit(live->id, live->row);
  return true;
}

void Consumer::begin_thread(const ThreadRecord& record) {
  has_begun_ = true;
  if (record.tid == first_ && !used_before_ && record.used >= 0) used_before_ = record.used;
  if (take_over(record)) return;
  LiveThread live;
  live.id = profile::ThreadId(identities_.next_thread++);
  live.row.process = process_;
  live.row.tid = record.tid;
  live.row.python_id = record.python_id;
  live.row.interpreter = record.interpreter;
  const bool came_up = started_ && record.tid == first_ && record.used >= 0;
  live.row.start = came_up ? *started_ : record.time;
  name_thread_(live.row);
  sink_.emit(live.id, live.row);
  profile::Event event;
  event.kind = profile::EventKind::thread_start;
  event.time = live.row.start;
  event.process = process_;
  event.thread = live.id;
  sink_.emit(event);
  threads_[record.thread].id = live.id;
  threads_[record.thread].tid = record.tid;
  if (came_up) {
    put_unseen_time(live.id, std::string(profile::kBeforeItsPython), *started_, record.time, record.used);
    started_.reset();
  }
  live_.push_back(std::move(live));
}

void Consumer::put_unseen_time(profile::ThreadId thread, std::string what, Nanoseconds start, Nanoseconds end,
                               Nanoseconds used) {
  TracedSample sample;
  sample.thread = thread;
  sample.stack = identities_.interner.stack({}, marker(std::move(what)));
  sample.start = start;
  sample.cpu = used;
  sample.wall = std::clamp<Nanoseconds>(end - start, 0, used);
  sample.samples = 0;  // no sample
  sample.cpu_state = profile::CpuState::running;
  put_row(sample);
}

// What the process's first thread used after its last sample: it ran on from there to its end.
void Consumer::put_rest(const ThreadState& thread, Nanoseconds end) {
  if (thread.tid != first_ || !used_at_end_ || !used_before_ || !thread.last) return;
  const auto used = used_at_end_();
  if (!used) return;
  used_at_end_ = nullptr;
  TracedSample rest = *thread.last;
  rest.cpu = *used - *used_before_ - charged_;
  if (rest.cpu <= 0 || rest.cpu > kLongestRest) return;
  rest.start += rest.wall;
  // Rejected samples came after it: where it was then is not known.
  if (thread.until > rest.start) {
    rest.start = thread.until;
    move_between_samples(rest);
  }
  rest.wall = std::clamp<Nanoseconds>(end - rest.start, 0, rest.cpu);
  rest.samples = 0;
  rest.cpu_state = profile::CpuState::running;
  rest.system_call = -1;
  put_row(rest);
}

void Consumer::put_unseen(Nanoseconds start, Nanoseconds end, Nanoseconds used) {
  ThreadRecord record;
  record.tid = first_;
  record.time = start;
  begin_thread(record);
  put_unseen_time(threads_[record.thread].id, "(it ended before the first sample)", start, end, used);
  ThreadEndRecord ended;
  ended.time = end;
  end_thread(ended);
}

void Consumer::end_thread(const ThreadEndRecord& record) {
  const auto found = threads_.find(record.thread);
  if (found == threads_.end()) return;
  const profile::ThreadId id = found->second.id;
  settle(found->second);
  if (found->second.taken_over) {
    threads_.erase(found);
    return;
  }
  put_rest(found->second, record.time);
  identities_.spans.close(id);
  identities_.traces.close(id);
  const auto live = std::lower_bound(
      live_.begin(), live_.end(), id,
      [](const LiveThread& one, profile::ThreadId other) { return one.id.value < other.value; });
  if (live != live_.end() && live->id == id) {
    live->row.end = record.time;
    sink_.emit(id, live->row);
    live_.erase(live);
  }
  profile::Event event;
  event.kind = profile::EventKind::thread_end;
  event.time = record.time;
  event.process = process_;
  event.thread = id;
  sink_.emit(event);
  threads_.erase(found);
  if (ended_.size() >= kMostEnded) ended_.clear();
  ended_[record.thread] = id;
}

void Consumer::take_waker(const WakerRecord& record, std::span<const std::byte> body) {
  // The sampler's numbers restart when there are too many.
  if (record.waker == 1) wakers_.clear();
  profile::Waker waker;
  if (const auto thread = threads_.find(record.thread); thread != threads_.end()) {
    waker.thread = thread->second.id;
  } else if (const auto ended = ended_.find(record.thread); ended != ended_.end()) {
    waker.thread = ended->second;
  } else {
    waker.other.assign(record.other, ::strnlen(record.other, sizeof record.other));
  }
  for (size_t i = 0; i < record.size && (i + 1) * sizeof(CodeLocation) <= body.size(); ++i) {
    CodeLocation location;
    std::memcpy(&location, body.data() + i * sizeof location, sizeof location);
    if (const profile::FrameId frame = frame_of(location))
      waker.stack = identities_.interner.stack(waker.stack, frame);
  }
  wakers_[record.waker] = identities_.interner.waker(waker);
}

void Consumer::take_wait_target(const WaitTargetRecord& record, std::span<const std::byte> body) {
  // As in take_waker().
  if (record.wait_target == 1) wait_targets_.clear();
  if (files_ == nullptr) return;
  const std::string_view name(reinterpret_cast<const char*>(body.data()),
                              std::min<size_t>(record.size, body.size()));
  profile::WaitTarget wait_target{profile::WaitTargetKind::time, {}, {}};
  if (record.what == WaitTargetRecord::What::file)
    wait_target = files_->of_file(record.file, name, record.others);
  if (record.what == WaitTargetRecord::What::child)
    wait_target = files_->of_child(record.file.process, name, record.since);
  wait_targets_[record.wait_target] = identities_.interner.wait_target(wait_target);
}

void Consumer::take_trace(const TraceRecord& record) {
  traces_.insert_or_assign(record.trace, record.ids);
  if (traces_.size() > kTracesKnown) traces_.erase(traces_.begin());
}

void Consumer::take_code_file(const CodeFileRecord& record, std::span<const std::byte> body) {
  const profile::ModuleId id(identities_.next_module++);
  const std::string path(reinterpret_cast<const char*>(body.data()),
                         std::min<size_t>(record.size, body.size()));
  sink_.emit(id, {path, "", 0});
  code_files_[record.code_file] = id;
}

void Consumer::take(std::span<const std::byte> bytes, Ring& ring) {
  if (bytes.size() < sizeof(RecordKind)) return;
  searched_ = 0;
  const auto with = [&]<class Record>(void (Consumer::*taker)(const Record&, std::span<const std::byte>)) {
    (this->*taker)(record_at<Record>(bytes), bytes.subspan(sizeof(Record)));
  };
  switch (record_at<RecordKind>(bytes)) {
    case RecordKind::sample:
      return with(&Consumer::take_sample);
    case RecordKind::code:
      return take_code(record_at<CodeRecord>(bytes), ring.take_handed());
    case RecordKind::codes_gone:
      ring.take_handed();
      codes_.clear();
      known_frames_ = 0;
      return;
    case RecordKind::waker:
      return with(&Consumer::take_waker);
    case RecordKind::wait_target:
      return with(&Consumer::take_wait_target);
    case RecordKind::trace:
      return take_trace(record_at<TraceRecord>(bytes));
    case RecordKind::signal:
      return take_signal(record_at<SignalRecord>(bytes));
    case RecordKind::code_file:
      return with(&Consumer::take_code_file);
    case RecordKind::thread:
      return begin_thread(record_at<ThreadRecord>(bytes));
    case RecordKind::thread_end:
      return end_thread(record_at<ThreadEndRecord>(bytes));
  }
}

void Consumer::drain(Ring& ring, const std::function<bool()>& is_late) {
  for (auto bytes = ring.front(); bytes.data() != nullptr; bytes = ring.front()) {
    take(bytes, ring);
    ring.pop();
    if (is_late()) break;
  }
}

void Consumer::discard(Ring& ring) {
  for (auto bytes = ring.front(); bytes.data() != nullptr; ring.pop(), bytes = ring.front()) {
    if (bytes.size() < sizeof(RecordKind)) continue;
    const auto kind = record_at<RecordKind>(bytes);
    if (kind == RecordKind::sample) discarded_ += record_at<ThreadSample>(bytes).time.samples;
    if (kind == RecordKind::code || kind == RecordKind::codes_gone) ring.take_handed();
    if (kind == RecordKind::thread_end) end_thread(record_at<ThreadEndRecord>(bytes));
  }
}

}  // namespace phlox::sampler
