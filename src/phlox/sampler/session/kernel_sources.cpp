#include "phlox/sampler/session/kernel_sources.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <variant>

#include "phlox/memory/living_thread.h"
#include "phlox/process/emulated_cpu.h"
#include "phlox/process/maps.h"
#include "phlox/process/process_state.h"
#include "phlox/process/thread_block.h"
#include "phlox/sampler/kernel/parked_threads.h"
#include "phlox/sampler/kernel/process_config.h"

namespace phlox::sampler {
namespace {

// For a recording as fast as possible: at a higher rate there would be nothing but interrupts (period_of).
constexpr double kFastest = 10'000;
// A starting program sets its thread state within microseconds of creating it.
constexpr Nanoseconds kPatience = kSecond / 5, kPause = kSecond / 1000;
constexpr Nanoseconds kCheckEvery = kSecond / 4;
// For programs with waits that the kernel did not read.
constexpr Nanoseconds kReadWaitsEvery = kSecond / 20;
// At the beginning, when the cost of walking these stacks is not known.
constexpr Nanoseconds kSoonerEvery = kSecond / 40;
constexpr int kTimesSooner = 40;
// The record of a switch arrives within this time.
constexpr Nanoseconds kOnItsWay = kSecond / 1000;
// An ended thread leaves its CPU within this time: some microseconds, unless others occupy it.
constexpr Nanoseconds kLastWord = kSecond / 200;
// What an interrupt costs besides the program in it (turn_loop.cpp, kWakeUp).
constexpr Nanoseconds kInterrupt = 2'500;
// Half of the budget is for walks at switches. Without a budget, every switch is walked.
constexpr double kShareOfSwitches = 0.5;
constexpr uint32_t kAllSwitches = 1'000'000;
// The limit of one walk in ns, without a budget; and the lowest limit.
constexpr uint32_t kLongestWalk = 1'000'000'000, kShortestWalk = 100'000;

// kernel_credit.share.
uint32_t share_of(std::optional<double> max_percent, double part) {
  if (!max_percent) return kAllSwitches;
  return static_cast<uint32_t>(std::clamp(*max_percent * 10 * part, 1.0, 1e6));
}
// Pythons that are known by their executables.
constexpr size_t kMostKnown = 64;
// The maximum number of ids that are kept.
constexpr size_t kMostReported = 100'000;
// include/linux/kdev_t.h
constexpr int kMinorBits = 20;
// Varies the interval, so that no program runs in step with us.
constexpr double kJitter = 0.1;

}  // namespace

KernelSources::KernelSources(Host& host, std::unique_ptr<KernelCapture> capture, double rate_hz,
                             std::optional<double> max_overhead_percent, bool native, bool follow)
    : host_(host),
      capture_(std::move(capture)),
      budget_(max_overhead_percent, rate_hz),
      shortest_wait_(max_overhead_percent),
      shortest_gil_wait_(max_overhead_percent),
      rate_hz_(rate_hz),
      walk_share_(share_of(max_overhead_percent, kShareOfSwitches)),
      clock_share_(share_of(max_overhead_percent, 1)),
      longest_walk_(static_cast<uint32_t>(std::clamp<Nanoseconds>(
          Budget::longest_sample(max_overhead_percent).value_or(kLongestWalk), kShortestWalk, kLongestWalk))),
      native_(native),
      follow_(follow) {}

Result<std::unique_ptr<KernelSources>> KernelSources::open(Host& host, double rate_hz,
                                                           std::optional<double> max_overhead_percent,
                                                           bool native, bool follow,
                                                           const std::string& retry) {
  if (rate_hz == 0) rate_hz = kFastest;
  auto capture = KernelCapture::open(rate_hz, native, retry);
  if (!capture) return fail(capture);
  return std::unique_ptr<KernelSources>(
      new KernelSources(host, *std::move(capture), rate_hz, max_overhead_percent, native, follow));
}

Result<kernel_process> KernelSources::place(Program& program, const Descriptor& pidfd) const {
  if (const auto maps = process::read_maps(program.pid);
      maps && process::is_emulated(program.pid, *maps, program.interpreter.interpreters_head))
    return fail(
        ErrorKind::unsupported_python,
        fmt::format("cannot sample process {} inside the kernel: another program emulates its CPU, and "
                    "the kernel knows only the registers of that one",
                    program.pid),
        kOtherModes);
  auto place = kernel_process_of(program.interpreter);
  if (!place) return place;
  place->walks.share = walk_share_;
  place->clock.share = clock_share_;
  place->longest_walk = longest_walk_;
  place->follow = follow_;
  const auto block = process::find_thread_block(program.pid);
  if (!block)
    return fail(ErrorKind::unsupported_python,
                fmt::format("cannot sample process {} inside the kernel: none of its libraries has a "
                            "pthread_self() that is known here",
                            program.pid),
                kOtherModes);
  place->python.thread_block = *block;
  const bool has_key = program.interpreter.layout.runtime.autoTSSkey.present();
  for (const Nanoseconds until = host_.now() + kPatience;;) {
    const bool late = host_.now() >= until || host_.has_ended(pidfd);
    if (find_thread_state_word(program.interpreter, program.memory, *place)) return place;
    if ((late || !has_key) && find_listed_threads(program.interpreter, program.memory, *place)) return place;
    if (late) break;
    host_.sleep_until(host_.now() + kPause);
  }
  return fail(ErrorKind::unsupported_python,
              fmt::format("cannot sample process {} inside the kernel: none of its thread states says which "
                          "thread it is of",
                          program.pid),
              kOtherModes);
}

KernelSources::Member::Member(KernelSources& sources, Program& program, const kernel_process& place,
                              Ring& ring, Nanoseconds begin)
    : sources_(&sources),
      pid_(program.pid),
      program_(&program),
      place_(place),
      code_files_([pid = program.pid] { return process::read_maps(pid); }, program.image.executable,
                  program.interpreter.interpreters_head),
      source_(
          program.interpreter, program.memory, ring, sources.native_, [this] { renew(); }, begin) {
  source_.with_code_files(code_files_);
  source_.of_process(program.pid);
  source_.set_interval(sources.interval());
  numbers_.mode = Mode::kernel;
  if (sources.native_) numbers_.native = NativeSource::kernel;
}

// Then all of the kernel's records about it are in its ring.
void KernelSources::Member::stop() {
  KernelSources* sources = std::exchange(sources_, nullptr);
  if (sources == nullptr) return;
  sources->capture_->remove(pid_, place_.id);
  Host& host = sources->host_;
  const Nanoseconds end = host.now();
  while (sources->drain(host.now() + kSecond / 10)) {
  }
  sources->check_members(end);
  source_.end_all(end, sources->asks(place_.id));
  numbers_.counts.lost = std::max(numbers_.counts.lost, source_.counts().lost);
  ++published_;
  sources->members_.erase(place_.id);
  std::erase_if(sources->were_plain_, [this](const auto& row) { return row.second == this; });
}

// The kernel reports a process's end on its descriptor before its last thread has left its CPU.
void KernelSources::Member::await_end() {
  if (sources_ == nullptr) return;
  Host& host = sources_->host_;
  for (const Nanoseconds until = host.now() + kLastWord; !source_.end();) {
    sources_->drain(host.now() + kSecond / 10);
    if (source_.end() || host.now() >= until) return;
    host.sleep_until(host.now() + kLastWord / 20);
  }
}

void KernelSources::Member::renew() {
  if (sources_ == nullptr) return;
  const uint32_t old = place_.id;
  place_.continues = 0;
  if (!sources_->capture_->add(pid_, place_)) return;
  sources_->members_.erase(old);
  sources_->members_.emplace(place_.id, this);
  source_.renewed();
  if (traces_) with_traces(*traces_);
}

void KernelSources::Member::with_traces(const process::ThreadVariable& variable) {
  traces_ = variable;
  if (sources_ == nullptr) return;
  kernel_slot slot{};
  slot.id = place_.id;
  slot.module = variable.module;
  slot.offset = variable.offset;
  slot.vector = variable.vector;
  slot.count = variable.count;
  slot.entry = variable.entry;
  sources_->capture_->set_slot(pid_, slot);
}

std::unique_ptr<SampleSource> KernelSources::begin(Program& program, const kernel_process& place,
                                                   Ring& ring) {
  auto member = std::make_unique<Member>(*this, program, place, ring, host_.now());
  if (program.kept_as) keep_sums(program, *member);
  if (!capture_->add(program.pid, member->place_)) return nullptr;
  members_.emplace(member->place_.id, member.get());
  is_known(program);
  const auto parked = find_parked_threads(program.pid, program.interpreter, program.memory, native_);
  program.threads_not_read = parked.not_read;
  member->source_.begin(parked, host_.now());
  return member;
}

// Records that were underway when a Python was found have the earlier id.
KernelSources::Member* KernelSources::member(uint32_t id) const {
  for (const auto* members : {&members_, &were_plain_}) {
    if (const auto found = members->find(id); found != members->end()) return found->second;
  }
  return nullptr;
}

void KernelSources::take(std::span<const std::byte> bytes) {
  came_ += bytes.size();
  const KernelRecord record = parse_kernel_record(bytes);
  kernel_head head{};
  if (std::holds_alternative<std::monostate>(record)) {
    ++not_understood_;
    return;
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  Member* const member = this->member(head.id);
  const auto* exit = std::get_if<kernel_exit>(&record);
  if (const auto* birth = std::get_if<kernel_birth>(&record)) {
    take_birth(*birth);
  } else if (const auto* exec = std::get_if<kernel_exec>(&record)) {
    take_exec(*exec, member);
  } else if (member != nullptr) {
    pass_on(*member, record);
  } else if (exit != nullptr && starts_.take(*exit)) {
    if (exit->first != 0) capture_->remove(static_cast<pid_t>(exit->thread), head.id);
  } else {
    // If not kept: it was underway when that program was left, or when everything was requested again.
    births_.keep(head.id, bytes);
  }
}

// The search finds the new program, unless that has ended by then.
void KernelSources::take_exec(const kernel_exec& exec, Member* member) {
  const auto pid = static_cast<pid_t>(exec.ended.thread);
  const uint32_t before = exec.ended.head.id;
  KernelStart birth;
  if (const auto* newborn = births_.find(before); newborn != nullptr && newborn->birth.program) {
    birth.parent = newborn->birth.parent;
    birth.begin = newborn->birth.program->begin(host_.now());
  }
  if (member != nullptr) {
    birth.parent = member->parent_;
    member->source_.take(exec.ended);
  }
  execs_.push_back({pid, member != nullptr});
  births_.forget(before);
  starts_.add(exec, member != nullptr, birth);
}

void KernelSources::pass_on(Member& member, const KernelRecord& record) {
  KernelSource& source = member.source_;
  if (const auto* sample = std::get_if<KernelSample>(&record)) source.take(*sample);
  if (const auto* half = std::get_if<KernelNative>(&record)) source.take(*half);
  if (const auto* wait_target = std::get_if<KernelWaitTarget>(&record)) source.take(*wait_target);
  if (const auto* code = std::get_if<KernelCode>(&record)) source.take(*code);
  if (const auto* trace = std::get_if<kernel_trace>(&record)) source.take(*trace);
  if (const auto* exit = std::get_if<kernel_exit>(&record)) source.take(*exit);
  if (const auto* signal = std::get_if<kernel_signal>(&record)) source.take(*signal);
}

void KernelSources::take_birth(const kernel_birth& birth) {
  last_birth_ = static_cast<Nanoseconds>(birth.time);
  if (reported_.size() < kMostReported) reported_.insert(static_cast<pid_t>(birth.process));
  const auto parent = members_.find(birth.head.id);
  const KernelBirths::Newborn* newborn = births_.find(birth.head.id);
  if (birth.plain != 0) {
    starts_.add(birth);
  } else if (parent != members_.end()) {
    births_.add(birth, parent->second->place_, *parent->second->program_);
  } else if (newborn != nullptr && newborn->birth.program) {
    births_.add(birth, newborn->place, *newborn->birth.program);
  } else {
    capture_->remove(static_cast<pid_t>(birth.process), birth.id);
  }
}

std::unique_ptr<SampleSource> KernelSources::begin_born(Program& program, Ring& ring) {
  const KernelBirths::Newborn newborn = births_.take(*program.kernel_id);
  auto member = std::make_unique<Member>(*this, program, newborn.place, ring, program.begin(host_.now()));
  member->parent_ = newborn.birth.parent;
  members_.emplace(member->place_.id, member.get());
  for (const auto& said : newborn.said) pass_on(*member, parse_kernel_record(said));
  return member;
}

void KernelSources::expect(pid_t pid) {
  kernel_process plain{};
  plain.plain = 1;
  plain.follow = follow_;
  if (capture_->add(pid, plain)) starts_.add(pid, plain.id, host_.now());
}

void KernelSources::note_start(Program& program) const {
  const KernelStart* start = starts_.find(program.pid);
  if (start == nullptr || program.kernel_id) return;
  program.started = start->begin;
  program.birth.reset();
  program.kept_as = start->id;
}

void KernelSources::forget_start(const Program& program) {
  if (!program.kept_as) return;
  starts_.forget(*program.kept_as);
  capture_->remove(program.pid, *program.kept_as);
}

// Read before the kernel knows about the Python in it: time added until then belongs to the first sample.
void KernelSources::keep_sums(const Program& program, Member& member) {
  member.place_.continues = *program.kept_as;
  const KernelStart* start = starts_.find(program.pid);
  const uint64_t reported = start != nullptr ? start->reported : 0;
  std::unordered_map<pid_t, kernel_thread> sums;
  for (const auto& [tid, name] : process::read_threads(program.pid)) {
    auto thread = capture_->thread(tid);
    if (!thread || thread->id != *program.kept_as) continue;
    const auto now = static_cast<uint64_t>(host_.now());
    if (thread->state == KERNEL_RUNNING && now > thread->since) thread->sums.ran += now - thread->since;
    sums.emplace(tid, *thread);
  }
  member.source_.go_on_from(program.pid, reported, std::move(sums));
  were_plain_.emplace(*program.kept_as, &member);
  starts_.forget(*program.kept_as);
}

void KernelSources::is_known(const Program& program) {
  struct stat file {};
  if (::stat((memory::proc_folder(program.pid) + "/exe").c_str(), &file) != 0) return;
  const Executable executable{file.st_ino, major(file.st_dev) << kMinorBits | minor(file.st_dev)};
  if (known(executable) != nullptr) return;
  if (known_.size() >= kMostKnown) known_.erase(known_.begin());
  known_.push_back(
      {executable, program.interpreter, program.process_row(host_.facts(program.pid), host_.now())});
}

const KernelSources::Known* KernelSources::known(const Executable& executable) const {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& one) { return one.executable == executable; });
  return found == known_.end() ? nullptr : &*found;
}

std::vector<Birth> KernelSources::births(Nanoseconds until) {
  for (const KernelStart& start : starts_.ended()) end_start(start);
  return births_.give(until);
}

void KernelSources::end_start(const KernelStart& start) {
  const Known* like = known(start.executable);
  if (like == nullptr && start.looks_like_python()) {
    ++brief_.programs;
    brief_.command_line = start.command_line;
  }
  if (like == nullptr) return;
  auto program = std::make_unique<Program>(start.pid, like->interpreter);
  program->started = start.begin;
  program->known_as = like->row;
  program->known_as->command_line = start.command_line;
  kernel_exit end = *start.end;
  end.ran = start.used();
  births_.add_ended(std::move(program), start.parent, end);
}

void KernelSources::leave(const Program& born) {
  births_.forget(*born.kernel_id);
  capture_->remove(born.pid, *born.kernel_id);
}

bool KernelSources::drain(Nanoseconds deadline) {
  const Nanoseconds now = host_.now();
  if (capture_->drain(deadline, [this](std::span<const std::byte> bytes) { take(bytes); })) return true;
  heard_until_ = now - kOnItsWay;
  if (now - read_waits_ >= kReadWaitsEvery) {
    read_waits_ = now;
    for (auto& [id, member] : members_) {
      if (member->source_.has_unread_waits(now)) read_long_waits(*member, now);
    }
  }
  if (now - checked_at_ >= (times_sooner_ < kTimesSooner ? kSoonerEvery : kCheckEvery)) check_members(now);
  return false;
}

// --max-overhead applies to each process: the share that the most sampled one has in what was taken since the
// last time.
double KernelSources::share_of_most() {
  uint64_t all = 0, most = 0;
  for (auto& [id, member] : members_) {
    const uint64_t samples = member->source_.samples();
    member->fresh_samples_ = samples - std::exchange(member->samples_judged_, samples);
    all += member->fresh_samples_;
    most = std::max(most, member->fresh_samples_);
  }
  return all > 0 ? static_cast<double>(most) / static_cast<double>(all) : 0;
}

// Divides the cost of the capture as a whole among the programs, by their samples since the last time. A
// program that has ended got its part before.
void KernelSources::share_out(Nanoseconds taken, uint64_t lost) {
  to_share_taken_ += static_cast<double>(taken);
  to_share_lost_ += static_cast<double>(lost);
  uint64_t samples = 0;
  for (const auto& [id, member] : members_) samples += member->fresh_samples_;
  if (samples == 0) return;
  for (auto& [id, member] : members_) {
    const double share = static_cast<double>(member->fresh_samples_) / static_cast<double>(samples);
    member->taken_ += to_share_taken_ * share;
    member->lost_ += to_share_lost_ * share;
  }
  to_share_taken_ = to_share_lost_ = 0;
}

// Skipped samples are judged with the next one that is taken.
Nanoseconds KernelSources::as_if_none_skipped(Nanoseconds fresh_clock) {
  const uint64_t walks = capture_->count(KERNEL_COUNT_WALKS) - walks_;
  if (walks == 0) return fresh_clock;
  const uint64_t skipped = capture_->count(KERNEL_COUNT_SKIPPED) - skipped_;
  walks_ += walks;
  skipped_ += skipped;
  return Budget::with_skipped(fresh_clock, walks, skipped);
}

void KernelSources::check_members(Nanoseconds now) {
  checked_at_ = now;
  if (times_sooner_ < kTimesSooner) ++times_sooner_;
  const Nanoseconds interrupts = static_cast<Nanoseconds>(capture_->count(KERNEL_COUNT_WALKS)) * kInterrupt;
  const auto taken = static_cast<Nanoseconds>(capture_->count(KERNEL_COUNT_TIME)) + interrupts;
  const auto by_clock = static_cast<Nanoseconds>(capture_->count(KERNEL_COUNT_CLOCK_TIME)) + interrupts;
  const Nanoseconds fresh_clock = by_clock - std::exchange(by_clock_, by_clock);
  const auto on_waits = static_cast<Nanoseconds>(capture_->count(KERNEL_COUNT_WAIT_TIME));
  const Nanoseconds fresh_switches = taken - std::exchange(all_taken_, taken) - fresh_clock;
  const double most = share_of_most();
  const auto of_most = [&](Nanoseconds time) {
    return static_cast<Nanoseconds>(static_cast<double>(time) * most);
  };
  of_rate_ += of_most(Budget::of_rate(as_if_none_skipped(fresh_clock), fresh_switches));
  of_switches_ += of_most(fresh_switches);
  of_waits_ += of_most(on_waits - std::exchange(on_waits_, on_waits));
  if (const auto rate = budget_.judge(now, of_rate_, rate_hz_)) rate_hz_ = *rate;
  if (now - waits_judged_ >= kCheckEvery) {
    waits_judged_ = now;
    capture_->set_shortest_waits(shortest_wait_.judge(now, of_waits_),
                                 shortest_gil_wait_.judge(now, of_switches_));
  }
  if (clock_.is_due(now, rate_hz_)) {
    std::uniform_real_distribution<double> jitter(1 - kJitter, 1 + kJitter);
    capture_->set_rate(rate_hz_ * jitter(random_));
  }
  const uint64_t lost = capture_->count(KERNEL_COUNT_LOST) + capture_->count(KERNEL_COUNT_FULL) +
                        capture_->count(KERNEL_COUNT_NO_MEMORY) + not_understood_ + births_.lost();
  share_out(fresh_clock + fresh_switches, lost - std::exchange(all_lost_, lost));
  for (auto& [id, member] : members_) {
    read_long_waits(*member, now);
    member->source_.set_interval(interval());
    member->source_.ask_after_silent(now, heard_until_, asks(id));
    publish(*member, now);
  }
}

void KernelSources::read_long_waits(Member& member, Nanoseconds now) {
  Program& program = *member.program_;
  const process::ThreadVariable* traces = member.traces_ ? &*member.traces_ : nullptr;
  const auto read = [&program, traces](std::span<const pid_t> threads) {
    return find_parked_threads(program.pid, program.interpreter, program.memory, false, threads, traces);
  };
  member.source_.read_long_waits(now, asks(member.place_.id), read);
}

void KernelSources::publish(Member& member, Nanoseconds now) {
  SourceNumbers& numbers = member.numbers_;
  numbers.counts = member.source_.counts();
  numbers.counts.lost += static_cast<uint64_t>(std::llround(member.lost_));
  numbers.rate_hz = rate_hz_;
  numbers.target_time = std::llround(member.taken_);
  // Moments at which each CPU's clock checked whether one of its threads runs.
  numbers.counts.ticks =
      static_cast<uint64_t>(static_cast<double>(now - member.source_.began()) * 1e-9 * rate_hz_);
  ++member.published_;
}

}  // namespace phlox::sampler
