#include "phlox/sampler/session/kernel_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "phlox/sampler/capture/waker.h"
#include "phlox/sampler/kernel/parked_threads.h"
#include "phlox/sampler/kernel/process_config.h"

namespace phlox::sampler {
namespace {

// For a recording as fast as it goes: beyond that the interrupt is all there is (period_of).
constexpr double kFastest = 10'000;
// A program that is coming up sets its thread state within microseconds of making it.
constexpr Nanoseconds kPatience = kSecond / 5, kPause = kSecond / 1000;
constexpr Nanoseconds kLookAfterEvery = kSecond / 4;
// A thread that was switched this long ago has been heard of.
constexpr Nanoseconds kOnItsWay = kSecond / 1000;
// Within which a thread that has ended leaves its CPU; some microseconds, unless others have it.
constexpr Nanoseconds kLastWord = kSecond / 200;
// What an interrupt costs beyond the program in it: sampler_thread.cpp, kWakeUp.
constexpr Nanoseconds kInterrupt = 2'500;
// Half of the budget is for walks at switches. Without a budget every switch is walked.
constexpr double kShareOfSwitches = 0.5;
constexpr uint32_t kAllSwitches = 1'000'000;
// Round about the interval, so that no program keeps step with us.
constexpr double kJitter = 0.1;

}  // namespace

KernelSources::KernelSources(std::unique_ptr<KernelCapture> capture, double rate_hz,
                             std::optional<double> max_overhead_percent, bool native, bool follow)
    : capture_(std::move(capture)),
      budget_(max_overhead_percent, rate_hz),
      rate_hz_(rate_hz),
      walk_share_(max_overhead_percent
                      ? std::max(1U, static_cast<uint32_t>(*max_overhead_percent * 10 * kShareOfSwitches))
                      : kAllSwitches),
      native_(native),
      follow_(follow) {}

Result<std::unique_ptr<KernelSources>> KernelSources::open(double rate_hz,
                                                           std::optional<double> max_overhead_percent,
                                                           bool native, bool follow,
                                                           const std::string& retry) {
  if (rate_hz == 0) rate_hz = kFastest;
  auto capture = KernelCapture::open(rate_hz, native, retry);
  if (!capture) return fail(capture);
  return std::unique_ptr<KernelSources>(
      new KernelSources(*std::move(capture), rate_hz, max_overhead_percent, native, follow));
}

Result<kernel_process> KernelSources::place(Program& program) const {
  auto place = kernel_process_of(program.interpreter);
  if (!place) return place;
  place->walk_share = walk_share_;
  place->follow = follow_;
  const bool has_key = program.interpreter.layout.runtime.autoTSSkey.present();
  for (const Nanoseconds until = clock_now() + kPatience;;) {
    const bool late = clock_now() >= until;
    if (find_thread_state_word(program.interpreter, program.memory, *place)) return place;
    if ((late || !has_key) && find_listed_threads(program.interpreter, program.memory, *place)) return place;
    if (late) break;
    sleep_until(clock_now() + kPause);
  }
  return fail(
      ErrorKind::unsupported_python,
      fmt::format("cannot look at process {} from inside the kernel: none of its thread states says which "
                  "thread it is of",
                  program.pid),
      "without --way kernel phlox takes the best of the other ways");
}

KernelSources::Member::Member(KernelSources& sources, Program& program, const kernel_process& place,
                              Ring& ring, Nanoseconds begin)
    : sources_(&sources),
      pid_(program.pid),
      program_(&program),
      place_(place),
      source_(
          program.interpreter, program.memory, ring, sources.native_, [this] { renew(); }, begin) {
  numbers_.way = Way::kernel;
  if (sources.native_) numbers_.native = NativeSource::kernel;
}

// All that the kernel said of it until now is in its ring then.
void KernelSources::Member::stop() {
  KernelSources* sources = std::exchange(sources_, nullptr);
  if (sources == nullptr) return;
  sources->capture_->remove(pid_, place_.id);
  const Nanoseconds end = clock_now();
  while (sources->drain(clock_now() + kSecond / 10)) {
  }
  sources->look_after(end);
  source_.end_all(end, sources->asks(place_.id));
  numbers_.counts.lost = std::max(numbers_.counts.lost, source_.counts().lost);
  ++published_;
  sources->members_.erase(place_.id);
}

// The kernel lets go of a process's descriptor before its last thread has left its CPU.
void KernelSources::Member::await_end() {
  for (const Nanoseconds until = clock_now() + kLastWord; sources_ != nullptr && !source_.end();) {
    sources_->drain(clock_now() + kSecond / 10);
    if (source_.end() || clock_now() >= until) return;
    sleep_until(clock_now() + kLastWord / 20);
  }
}

void KernelSources::Member::renew() {
  if (sources_ == nullptr) return;
  const uint32_t old = place_.id;
  if (!sources_->capture_->add(pid_, place_)) return;
  sources_->members_.erase(old);
  sources_->members_.emplace(place_.id, this);
  source_.renewed();
}

std::unique_ptr<Source> KernelSources::begin(Program& program, const kernel_process& place, Ring& ring) {
  auto member = std::make_unique<Member>(*this, program, place, ring, clock_now());
  if (!capture_->add(program.pid, member->place_)) return nullptr;
  members_.emplace(member->place_.id, member.get());
  member->source_.begin(find_parked_threads(program.pid, program.interpreter, program.memory, native_),
                        clock_now());
  return member;
}

void KernelSources::take(std::span<const std::byte> bytes) {
  const KernelRecord record = parse_kernel_record(bytes);
  kernel_head head{};
  if (std::holds_alternative<std::monostate>(record)) {
    ++not_understood_;
    return;
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  if (const auto* birth = std::get_if<kernel_birth>(&record)) {
    take_birth(*birth);
  } else if (const auto member = members_.find(head.id); member != members_.end()) {
    pass_on(*member->second, record);
  } else if (head.type == KERNEL_EXEC) {
    // Before anybody knew of it: the search finds what it became.
    if (births_.find(head.id) != nullptr)
      execs_.push_back(static_cast<pid_t>(std::get<kernel_exit>(record).thread));
    births_.forget(head.id);
  } else {
    // If not kept: it was on its way when that program was left, or when all was asked for anew.
    births_.keep(head.id, bytes);
  }
}

void KernelSources::pass_on(Member& member, const KernelRecord& record) {
  KernelSource& source = member.source_;
  if (const auto* look = std::get_if<KernelLook>(&record)) source.take(*look);
  if (const auto* half = std::get_if<KernelNative>(&record)) source.take(*half);
  if (const auto* code = std::get_if<KernelCode>(&record)) source.take(*code);
  if (const auto* exit = std::get_if<kernel_exit>(&record)) {
    source.take(*exit);
    if (exit->head.type == KERNEL_EXEC) execs_.push_back(member.pid_);
  }
}

void KernelSources::take_birth(const kernel_birth& birth) {
  const auto parent = members_.find(birth.head.id);
  const KernelBirths::Newborn* newborn = births_.find(birth.head.id);
  if (parent != members_.end()) {
    births_.add(birth, parent->second->place_, *parent->second->program_);
  } else if (newborn != nullptr && newborn->birth.program) {
    births_.add(birth, newborn->place, *newborn->birth.program);
  } else {
    capture_->remove(static_cast<pid_t>(birth.process), birth.id);
  }
}

std::unique_ptr<Source> KernelSources::begin_born(Program& program, Ring& ring) {
  const KernelBirths::Newborn newborn = births_.take(*program.kernel_id);
  auto member = std::make_unique<Member>(*this, program, newborn.place, ring, *program.birth);
  members_.emplace(member->place_.id, member.get());
  for (const auto& said : newborn.said) pass_on(*member, parse_kernel_record(said));
  return member;
}

void KernelSources::leave(const Program& born) {
  births_.forget(*born.kernel_id);
  capture_->remove(born.pid, *born.kernel_id);
}

bool KernelSources::drain(Nanoseconds deadline) {
  const Nanoseconds now = clock_now();
  if (capture_->drain(deadline, [this](std::span<const std::byte> bytes) { take(bytes); })) return true;
  heard_until_ = now - kOnItsWay;
  if (now - looked_after_ >= kLookAfterEvery) look_after(now);
  return false;
}

// --max-overhead holds for each process: of what was taken since the last time, the share of the one that was
// looked at most; added up.
Nanoseconds KernelSources::most_taken(Nanoseconds taken) {
  uint64_t all = 0, most = 0;
  for (auto& [id, member] : members_) {
    const uint64_t looks = member->source_.looks();
    const uint64_t fresh = looks - std::exchange(member->looks_judged_, looks);
    all += fresh;
    most = std::max(most, fresh);
  }
  const auto since = static_cast<double>(taken - std::exchange(taken_, taken));
  if (all > 0)
    most_taken_ += static_cast<Nanoseconds>(since * static_cast<double>(most) / static_cast<double>(all));
  return most_taken_;
}

void KernelSources::look_after(Nanoseconds now) {
  looked_after_ = now;
  const auto taken = static_cast<Nanoseconds>(capture_->count(KERNEL_COUNT_TIME) +
                                              capture_->count(KERNEL_COUNT_WALKS) * kInterrupt);
  if (const auto rate = budget_.judge(now, most_taken(taken), rate_hz_)) rate_hz_ = *rate;
  std::uniform_real_distribution<double> jitter(1 - kJitter, 1 + kJitter);
  capture_->set_rate(rate_hz_ * jitter(random_));
  uint64_t looks = 0;
  for (const auto& [id, member] : members_) looks += member->source_.looks();
  const uint64_t lost = capture_->count(KERNEL_COUNT_LOST) + capture_->count(KERNEL_COUNT_FULL) +
                        not_understood_ + births_.lost();
  for (auto& [id, member] : members_) {
    member->source_.ask_after_silent(now, heard_until_, asks(id));
    const double share =
        looks > 0 ? static_cast<double>(member->source_.looks()) / static_cast<double>(looks) : 0;
    publish(*member, taken, share, lost, now);
  }
}

// What is the capture's as a whole goes to each by its share of the looks.
void KernelSources::publish(Member& member, Nanoseconds taken, double share, uint64_t lost, Nanoseconds now) {
  SourceNumbers& numbers = member.numbers_;
  numbers.counts = member.source_.counts();
  numbers.counts.lost += static_cast<uint64_t>(static_cast<double>(lost) * share);
  numbers.rate_hz = rate_hz_;
  numbers.target_time = static_cast<Nanoseconds>(static_cast<double>(taken) * share);
  // Moments at which each CPU's clock asked whether one of its threads runs.
  numbers.counts.ticks =
      static_cast<uint64_t>(static_cast<double>(now - member.source_.began()) * 1e-9 * rate_hz_);
  ++member.published_;
}

}  // namespace phlox::sampler
