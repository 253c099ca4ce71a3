#include "phlox/naming/live_names.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include "phlox/process/kept_rights.h"

namespace phlox::naming {

using profile::Frame;
using profile::FrameId;
using profile::FrameKind;
using profile::NativeFile;
using profile::NativeModule;
using profile::Numbered;

namespace {

// That wait for their turn, each with an open file.
constexpr size_t kMostJitFiles = 500;

// Keeps the rows that NativeRows emits.
class NamedRows : public profile::Sink {
 public:
  void receive(const profile::AnyRow& row) override {
    if (const auto* frame = std::get_if<Numbered<FrameId>>(&row)) {
      rows.emplace_back(frame->id, frame->value);
    } else if (const auto* fact = std::get_if<profile::Unnumbered<profile::Meta>>(&row)) {
      meta.emplace_back(fact->value.key, fact->value.value);
    }
  }
  Result<void> commit() override { return {}; }

  std::vector<std::pair<FrameId, Frame>> rows;
  std::vector<std::pair<std::string, std::string>> meta;
};

// Of a frame in no module: the files of JIT compilers name it.
bool is_code(const Frame& frame) {
  return frame.kind == FrameKind::native && !frame.module && frame.address != 0;
}

}  // namespace

LiveNames::LiveNames(symbols::DebugSearch search, const Limits& limits)
    : search_(std::move(search)), limits_(limits) {}

LiveNames::~LiveNames() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LiveNames::begin(profile::Sink& sink, std::function<FrameId()> new_frame) {
  sink_ = &sink;
  new_frame_ = std::move(new_frame);
  thread_ = std::thread([this] {
    process::give_up_other_capabilities();
    run();
  });
}

void LiveNames::receive(const profile::AnyRow& row) {
  sink_->receive(row);
  if (const auto* frame = std::get_if<Numbered<FrameId>>(&row)) {
    keep_waiting(frame->id, frame->value);
  } else if (const auto* module = std::get_if<Numbered<profile::ModuleId>>(&row);
             module != nullptr && rows_.size() < limits_.missing) {
    rows_[module->id] = module->value;
  }
}

void LiveNames::keep_waiting(FrameId id, const Frame& frame) {
  last_frame_ = std::max(last_frame_, id.value);
  if (!frame.function.empty() || waiting_.size() >= limits_.frames || name_bytes_ >= limits_.name_bytes)
    return;
  if (is_code(frame)) {
    code_.emplace(id, frame);
    if (code_.size() > limits_.frames / 4) code_.erase(code_.begin());
  } else if (frame.kind == FrameKind::native || frame.kind == FrameKind::kernel) {
    waiting_.push_back({id, frame});
  }
}

// Most processes map the same files: each is kept open once.
std::shared_ptr<Descriptor> LiveNames::shared(std::shared_ptr<Descriptor> file) {
  struct stat is {};
  if (!file || ::fstat(file->get(), &is) != 0) return file;
  std::weak_ptr<Descriptor>& known = files_[{is.st_dev, is.st_ino}];
  if (auto same = known.lock()) return same;
  known = file;
  return file;
}

void LiveNames::add(profile::ProcessId process, NativeModule module) {
  if (module.kind != NativeFile::module) {
    if (jit_files_.size() < kMostJitFiles) jit_files_.push_back(std::move(module));
    return;
  }
  if (modules_.size() >= limits_.modules) return;
  module.root = shared(std::move(module.root));
  if (module.descriptor) {
    module.descriptor = shared(std::move(module.descriptor));
    module.open_path = "/proc/self/fd/" + std::to_string(module.descriptor->get());
  }
  const Opened key(module.id, process);
  has_new_file_ = has_new_file_ || find_module(module.id) == modules_.end();
  ended_.erase(key);
  modules_.insert_or_assign(key, std::move(module));
}

void LiveNames::note_end(profile::ProcessId process) {
  for (const auto& [key, module] : modules_) {
    if (key.second == process) ended_.insert(key);
  }
}

void LiveNames::hurry() {
  {
    const std::lock_guard lock(mutex_);
    hurried_ = true;
  }
  changed_.notify_all();
}

std::map<LiveNames::Opened, NativeModule>::const_iterator LiveNames::find_module(profile::ModuleId id) const {
  const auto at = modules_.lower_bound({id, profile::ProcessId()});
  return at != modules_.end() && at->first.first == id ? at : modules_.end();
}

LiveNames::Batch LiveNames::take_batch() {
  Batch batch;
  batch.has_new_file = std::exchange(has_new_file_, false);
  batch.frames = std::exchange(waiting_, {});
  for (NativeModule& file : jit_files_) {
    for (const FrameId id : *file.code) {
      if (const auto code = code_.find(id); code != code_.end())
        batch.frames.push_back({id, code->second, false});
    }
    batch.modules.push_back(std::move(file));
  }
  jit_files_.clear();
  const auto by_id = [](const Waiting& a, const Waiting& b) { return a.id < b.id; };
  std::sort(batch.frames.begin(), batch.frames.end(), by_id);
  batch.frames.erase(std::unique(batch.frames.begin(), batch.frames.end(),
                                 [](const Waiting& a, const Waiting& b) { return a.id == b.id; }),
                     batch.frames.end());
  std::vector<profile::ModuleId> wanted;
  for (const Waiting& one : batch.frames) {
    if (one.frame.module) wanted.push_back(*one.frame.module);
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  for (const profile::ModuleId id : wanted) {
    if (const auto module = find_module(id); module != modules_.end())
      batch.modules.push_back(module->second);
  }
  return batch;
}

// All frames of the processes that have ended were handed over by now.
Result<void> LiveNames::commit() {
  const Nanoseconds now = clock_now();
  Nanoseconds until = named_until_;
  std::optional<Named> named;
  {
    const std::lock_guard lock(mutex_);
    named.swap(named_);
  }
  if (named) {
    put(*std::move(named));
    until = *std::exchange(taken_, std::nullopt);
  }
  if (!taken_ && waiting_.empty()) until = now;
  {
    const std::lock_guard lock(mutex_);
    if (is_idle_ && !named_ && (!waiting_.empty() || !jit_files_.empty())) {
      is_idle_ = false;
      batch_ = take_batch();
      taken_ = now;
    }
  }
  changed_.notify_all();
  if (waiting_.empty() && !ended_.empty()) {
    for (const Opened& one : ended_) modules_.erase(one);
    std::erase_if(files_, [](const auto& one) { return one.second.expired(); });
    ended_.clear();
  }
  auto committed = sink_->commit();
  named_until_ = until;
  return committed;
}

LiveNames::Named LiveNames::name(const Batch& batch, const NativeRows::Patience& patience) {
  NamedRows named;
  NativeRows rows(named, NativeRows::Kernel::this_host, NativeRows::Put::when_named);
  Named result;
  std::map<FrameId, bool> is_second_try;
  for (const Waiting& one : batch.frames) {
    rows.emit(one.id, one.frame);
    result.last = std::max(result.last, one.id.value);
    is_second_try[one.id] = one.is_second_try;
  }
  named.rows.clear();  // those of the kernel, as they came
  result.missing = rows.name(batch.modules, search_, patience);
  std::erase_if(result.missing, [this](const NativeRows::Missing& one) {
    return !one.module || (!advised_.contains(one.module) && advised_.size() >= limits_.missing);
  });
  std::vector<NativeRows::Missing> fresh;
  for (NativeRows::Missing& one : result.missing) {
    if (advised_.insert(one.module).second) fresh.push_back(std::exchange(one, {}));
  }
  look_up_packages(fresh);
  std::erase_if(result.missing, [](const NativeRows::Missing& one) { return !one.module; });
  result.missing.insert(result.missing.end(), fresh.begin(), fresh.end());
  // A root folder would keep a container's files mounted.
  for (NativeRows::Missing& one : result.missing) one.root.reset();
  for (auto& [id, frame] : named.rows) {
    if (!frame.function.empty()) {
      result.rows.emplace_back(id, std::move(frame));
    } else if (frame.module && !is_second_try[id]) {
      result.late.push_back({id, std::move(frame), true});
    }
  }
  result.meta = std::move(named.meta);
  return result;
}

void LiveNames::run() {
  const NativeRows::Patience patience{limits_.batch, limits_.batch};
  NamingPace pace(limits_.pace);
  Nanoseconds last = clock_now();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || batch_; });
    if (over_) return;
    const Batch batch = *std::exchange(batch_, std::nullopt);
    lock.unlock();
    const Nanoseconds begin = clock_now(CLOCK_THREAD_CPUTIME_ID);
    Named named = name(batch, patience);
    const Nanoseconds taken = clock_now(CLOCK_THREAD_CPUTIME_ID) - begin;
    lock.lock();
    named_ = std::move(named);
    const Nanoseconds now = clock_now();
    const Nanoseconds rest = pace.rest_after(taken, now - std::exchange(last, now), batch.has_new_file);
    changed_.wait_for(lock, std::chrono::nanoseconds(rest), [this] { return over_ || hurried_; });
    if (std::exchange(hurried_, false)) pace.hurry();
    is_idle_ = true;
  }
}

// The function that has the code comes before those that were inlined into it.
void LiveNames::put(Named named) {
  std::map<FrameId, FrameId> ids;
  for (auto& [id, frame] : named.rows) {
    if (name_bytes_ >= limits_.name_bytes) break;
    name_bytes_ += frame.function.size() + frame.qualified_name.size() + frame.file.size();
    if (id.value > named.last) {
      if (const auto into = ids.find(*frame.inlined_in); into != ids.end()) frame.inlined_in = into->second;
      const FrameId as = *frame.inlined_in ? new_frame_() : FrameId();
      ids[id] = as;
      if (!as) continue;
      id = as;
    }
    last_frame_ = std::max(last_frame_, id.value);
    code_.erase(id);
    sink_->emit(id, frame);
  }
  for (const auto& [key, value] : named.meta) sink_->emit_meta(key, value);
  for (Waiting& one : named.late) waiting_.push_back(std::move(one));
  for (NativeRows::Missing& one : named.missing) {
    const auto [at, added] = missing_.try_emplace(one.module, one);
    if (added) continue;
    at->second.names.no_symbols |= one.names.no_symbols;
    at->second.names.no_lines |= one.names.no_lines;
  }
}

std::vector<NativeRows::Missing> LiveNames::finish(const NativeRows::Patience& patience) {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // No other frames come, so ids are free.
  new_frame_ = [this] { return FrameId(last_frame_ + 1); };
  if (named_) put(*std::exchange(named_, std::nullopt));
  if (batch_) {
    waiting_.insert(waiting_.end(), batch_->frames.begin(), batch_->frames.end());
    jit_files_.insert(jit_files_.end(), batch_->modules.begin(), batch_->modules.end());
    std::erase_if(jit_files_, [](const NativeModule& one) { return one.kind == NativeFile::module; });
  }
  put(name(take_batch(), patience));
  std::vector<NativeRows::Missing> missing;
  for (auto& [module, one] : missing_) missing.push_back(std::move(one));
  std::stable_sort(missing.begin(), missing.end(),
                   [](const auto& a, const auto& b) { return a.names.no_symbols > b.names.no_symbols; });
  for (const NativeRows::Missing& one : missing) {
    const auto row = rows_.find(one.module);
    if (row == rows_.end() || one.names.complete) continue;
    row->second.missing = {one.names.no_symbols, one.names.no_lines, one.names.why, one.names.advice};
    sink_->emit(one.module, row->second);
  }
  return missing;
}

}  // namespace phlox::naming
