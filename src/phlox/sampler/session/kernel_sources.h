// All programs that are recorded inside the kernel: one capture, whose records go to the source of each. Has
// the budget of the capture as a whole. Owned by the recorder, whose thread calls it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/result.h"
#include "phlox/sampler/kernel/kernel_capture.h"
#include "phlox/sampler/kernel/kernel_source.h"
#include "phlox/sampler/observe/ring.h"
#include "phlox/sampler/observe/sample_source.h"
#include "phlox/sampler/session/backend.h"
#include "phlox/sampler/session/budget.h"
#include "phlox/sampler/session/host.h"
#include "phlox/sampler/session/kernel_births.h"
#include "phlox/sampler/session/kernel_starts.h"
#include "phlox/sampler/session/program.h"

namespace phlox::sampler {

class KernelSources {
 public:
  // `rate_hz` 0: as often as the budget allows. `native`: with native frames. `follow`: their forks are
  // sampled, too.
  static Result<std::unique_ptr<KernelSources>> open(Host& host, double rate_hz,
                                                     std::optional<double> max_overhead_percent, bool native,
                                                     bool follow, const std::string& retry);

  // A process of ours that is about to call execve: keeps its times, and reports what it starts.
  void expect(pid_t pid);
  // Whether this program can be sampled that way; waits a moment for one that is just coming up.
  Result<kernel_process> place(Program& program, const Descriptor& pidfd) const;
  // Begins to sample it; null: there is no room for another. The program must outlive the source.
  std::unique_ptr<SampleSource> begin(Program& program, const kernel_process& place, Ring& ring);

  // Sets when it was started, if the kernel has reported that. Call it before its recording begins.
  void note_start(Program& program) const;
  // Its times are not wanted.
  void forget_start(const Program& program);

  // Processes forked before `until` that run no other program, and Pythons that were started and ended before
  // they were found. Begin each of them, or leave it.
  std::vector<Birth> births(Nanoseconds until);
  // Whether it was forked, and waits for that.
  bool is_newborn(pid_t pid) const { return births_.has(pid); }
  std::unique_ptr<SampleSource> begin_born(Program& program, Ring& ring);
  void leave(const Program& born);
  using Brief = Backend::Brief;
  const Brief& too_brief() const { return brief_; }
  // The time of the last birth.
  Nanoseconds last_birth() const { return last_birth_; }
  // Whether the kernel has reported its birth.
  bool has_reported(pid_t pid) const { return reported_.contains(pid); }
  using Exec = Backend::Exec;
  std::vector<Exec> execs() { return std::exchange(execs_, {}); }
  // Readable when there is one, or a birth after a while without.
  int descriptor() const { return capture_->descriptor(); }

  // Passes the kernel's records on. Returns whether there may be more; empty the record rings first.
  bool drain(Nanoseconds deadline);
  // Bytes since the last call.
  size_t came() { return std::exchange(came_, 0); }

 private:
  // One program, as its recording sees it.
  class Member : public SampleSource {
   public:
    Member(KernelSources& sources, Program& program, const kernel_process& place, Ring& ring,
           Nanoseconds begin);
    ~Member() override { stop(); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    void stop() override;
    void await_end() override;
    std::optional<End> end() const override { return source_.end(); }
    SourceNumbers numbers() override { return numbers_; }
    uint64_t published() const override { return published_; }
    void with_traces(const process::ThreadVariable& variable) override;

   private:
    friend class KernelSources;
    void renew();

    KernelSources* sources_;  // null: stopped
    pid_t pid_, parent_ = 0;  // 0: not known
    Program* program_;
    kernel_process place_;
    std::optional<process::ThreadVariable> traces_;
    CodeFiles code_files_;
    KernelSource source_;
    SourceNumbers numbers_;
    uint64_t published_ = 0;
    uint64_t samples_judged_ = 0, fresh_samples_ = 0;  // at the last check of all; since then
    double taken_ = 0, lost_ = 0;                      // its part of the totals of the capture
  };

  // Pythons found so far.
  struct Known {
    Executable executable;
    python::Interpreter interpreter;
    profile::Process row;
  };

  KernelSources(Host& host, std::unique_ptr<KernelCapture> capture, double rate_hz,
                std::optional<double> max_overhead_percent, bool native, bool follow);
  void take(std::span<const std::byte> bytes);
  Member* member(uint32_t id) const;
  void take_birth(const kernel_birth& birth);
  void take_exec(const kernel_exec& exec, Member* member);
  void keep_sums(const Program& program, Member& member);
  void end_start(const KernelStart& start);
  void is_known(const Program& program);
  const Known* known(const Executable& executable) const;
  void pass_on(Member& member, const KernelRecord& record);
  // The kernel's facts about a thread of this process.
  auto asks(uint32_t id) {
    return [this, id](pid_t tid) {
      auto known = capture_->thread(tid);
      return known && known->id == id ? known : std::nullopt;
    };
  }
  void check_members(Nanoseconds now);
  void read_long_waits(Member& member, Nanoseconds now);
  double share_of_most();
  Nanoseconds as_if_none_skipped(Nanoseconds fresh_clock);
  void share_out(Nanoseconds taken, uint64_t lost);
  void publish(Member& member, Nanoseconds now);

  Host& host_;
  std::unique_ptr<KernelCapture> capture_;
  Budget budget_;
  ClockSetting clock_;
  ShortestWait shortest_wait_, shortest_gil_wait_;
  Nanoseconds interval() const { return static_cast<Nanoseconds>(1e9 / rate_hz_); }  // of the clock
  double rate_hz_;
  // kernel_credit.share at switches and of the clock, and kernel_process.longest_walk, of each
  uint32_t walk_share_, clock_share_, longest_walk_;
  bool native_, follow_;
  std::unordered_map<uint32_t, Member*> members_;     // by kernel_process.id
  std::unordered_map<uint32_t, Member*> were_plain_;  // by kernel_process.continues
  KernelBirths births_;
  KernelStarts starts_;
  std::vector<Known> known_;
  Brief brief_;
  std::unordered_set<pid_t> reported_;
  std::vector<Exec> execs_;
  Nanoseconds last_birth_ = 0;
  size_t came_ = 0;
  Nanoseconds heard_until_ = 0, checked_at_ = 0, waits_judged_ = 0;
  Nanoseconds read_waits_ = 0;
  int times_sooner_ = 0;  // number of early checks, the first ones
  double to_share_taken_ = 0, to_share_lost_ = 0;
  uint64_t all_lost_ = 0;
  Nanoseconds all_taken_ = 0, by_clock_ = 0, on_waits_ = 0;  // at the last check
  uint64_t walks_ = 0, skipped_ = 0;  // of the clock, when the last of its walks was judged
  Nanoseconds of_rate_ = 0, of_switches_ = 0, of_waits_ = 0;  // of the process that was sampled most
  uint64_t not_understood_ = 0;
  std::minstd_rand random_{static_cast<uint32_t>(host_.now())};
};

}  // namespace phlox::sampler
