#include "phlox/view/signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "phlox/profile/recorded_words.h"

namespace phlox::view {

using namespace profile;

namespace {

// The kernel takes a sample of the thread as it notes the event. Recordings keep starts in whole
// microseconds.
constexpr Nanoseconds kMicrosecond = 1000;

class SignalPlaces {
 public:
  SignalPlaces(const Profile& profile, const std::vector<Event>& events) : profile_(profile) {
    for (const Event& event : events) {
      if (event.thread) of_[*event.thread];
    }
    // A row without a sample is time before one, which may have another stack.
    for (const Sample& sample : profile.samples()) {
      if (sample.samples == 0) continue;
      if (const auto found = of_.find(sample.thread); found != of_.end()) found->second.push_back(&sample);
    }
    for (auto& [thread, samples] : of_) {
      std::stable_sort(samples.begin(), samples.end(),
                       [](const Sample* a, const Sample* b) { return a->start < b->start; });
    }
  }

  // The thread ran: it called the kernel, or was about to return from it. So this is the last running sample
  // that ends at `time`, else the running one that `time` lies in: a sample without length is joined with
  // equal ones after it. Only if there is neither, another state counts.
  SignalPlace at(ThreadId thread, Nanoseconds time) const {
    const auto& samples = of_.at(thread);
    auto one = std::partition_point(samples.begin(), samples.end(), [&](const Sample* sample) {
      return sample->start + sample->wall + kMicrosecond < time;
    });
    const Sample* found = nullptr;
    int best = 0;
    for (; one != samples.end() && (*one)->start <= time + kMicrosecond; ++one) {
      const bool ends_then = (*one)->start + (*one)->wall <= time + kMicrosecond;
      const int rank = ((*one)->cpu_state == CpuState::running ? 2 : 0) + (ends_then ? 1 : 0);
      if (found == nullptr || rank > best || (rank == best && ends_then)) {
        found = *one;
        best = rank;
      }
    }
    if (found == nullptr || found->stack.value > profile_.stacks().size()) return {thread, {}};
    return {thread, found->stack};
  }

 private:
  const Profile& profile_;
  std::map<ThreadId, std::vector<const Sample*>> of_;
};

// Whether `text` had this end, which it loses.
bool take_end(std::string_view& text, std::string_view end) {
  const bool has = text.ends_with(end);
  if (has) text.remove_suffix(end.size());
  return has;
}

bool is_signal(const Event& event) {
  return event.kind == EventKind::signal_sent || event.kind == EventKind::signal_received ||
         event.kind == EventKind::signal_delivered;
}

// "python3 (4711)": the number at its end.
std::string pid_words(const Profile& profile, ProcessId process) {
  return process && process.value <= profile.processes().size()
             ? fmt::format("({})", profile.process(process).pid)
             : "";
}

class SignalReading {
 public:
  explicit SignalReading(const Profile& profile)
      : profile_(profile), events_(sorted(profile)), places_(profile, events_) {}

  std::vector<Signal> all() && {
    for (const Event& event : events_) {
      if (event.kind == EventKind::signal_received) received(event);
    }
    for (const Event& event : events_) {
      if (event.kind == EventKind::signal_sent) sent(event);
      if (event.kind == EventKind::signal_delivered) delivered(event);
    }
    std::map<ProcessId, Nanoseconds> ends;
    for (const Event& event : profile_.events()) {
      if (event.kind == EventKind::process_end && event.process) ends[*event.process] = event.time;
    }
    for (Signal& signal : found_) {
      const auto given = given_.find(static_cast<size_t>(&signal - found_.data()));
      if (given != given_.end()) put_threads(signal, given->second);
      if (const auto end = ends.find(signal.process); end != ends.end() && end->second >= signal.time)
        signal.ended_after = end->second - signal.time;
    }
    return std::move(found_);
  }

 private:
  // Sent comes before received, and that before delivered, at one time.
  static std::vector<Event> sorted(const Profile& profile) {
    std::vector<Event> events;
    std::copy_if(profile.events().begin(), profile.events().end(), std::back_inserter(events), is_signal);
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.time < b.time; });
    return events;
  }

  void received(const Event& event) {
    if (!event.process || event.process->value == 0 || event.process->value > profile_.processes().size())
      return;
    Signal signal;
    signal.time = event.time;
    signal.process = *event.process;
    signal.number = static_cast<int>(event.value);
    std::string_view text = event.text;
    if (take_end(text, kSignalEnds)) signal.outcome = Signal::Outcome::ended;
    if (text == kSignalByKernel) {
      signal.sent_by = Signal::Sender::kernel;
    } else if (text == kSignalOwnFault) {
      signal.sent_by = Signal::Sender::own_fault;
    } else {
      signal.sender = text;
    }
    found_.push_back(std::move(signal));
  }

  // Both sides of one sending have the same time.
  void sent(const Event& event) {
    for (auto at = first_at(event.time); at != found_.end() && at->time == event.time; ++at) {
      if (at->number != event.value || !event.thread) continue;
      std::string_view receiver = event.text;
      take_end(receiver, kSignalUnseen);
      if (!receiver.ends_with(pid_words(profile_, at->process))) continue;
      at->from = place_of(event);
    }
  }

  // To the last one that the process was sent before. Threads that end with another have SIGKILL.
  void delivered(const Event& event) {
    if (!event.thread || !event.process) return;
    auto at = std::partition_point(found_.begin(), found_.end(),
                                   [&](const Signal& one) { return one.time <= event.time; });
    while (at != found_.begin()) {
      --at;
      const bool ends_with_it = event.value == SIGKILL && at->outcome == Signal::Outcome::ended;
      if (at->process != *event.process || (at->number != event.value && !ends_with_it)) continue;
      std::string_view how = event.text;
      take_end(how, kSignalUnseen);
      if (at->outcome == Signal::Outcome::unknown)
        at->outcome = how == kSignalHandled ? Signal::Outcome::handled : Signal::Outcome::ended;
      at->no_memory |= how == kSignalNoMemory;
      given_[static_cast<size_t>(at - found_.begin())].push_back(event);
      return;
    }
  }

  // The one that was given the signal itself; else the process's first.
  void put_threads(Signal& signal, std::vector<Event>& given) const {
    std::stable_sort(given.begin(), given.end(), [&](const Event& a, const Event& b) {
      const auto rank = [&](const Event& one) {
        return std::tuple(one.value != signal.number, profile_.thread(*one.thread).tid);
      };
      return rank(a) < rank(b);
    });
    for (const Event& event : given) signal.threads.push_back(place_of(event));
  }

  // Another sample of the thread may have the stack of another moment.
  SignalPlace place_of(const Event& event) const {
    if (event.text.ends_with(kSignalUnseen)) return {*event.thread, {}};
    return places_.at(*event.thread, event.time);
  }

  std::vector<Signal>::iterator first_at(Nanoseconds time) {
    return std::partition_point(found_.begin(), found_.end(),
                                [&](const Signal& one) { return one.time < time; });
  }

  const Profile& profile_;
  std::vector<Event> events_;
  SignalPlaces places_;
  std::vector<Signal> found_;
  std::map<size_t, std::vector<Event>> given_;  // to threads, by signal
};

}  // namespace

std::vector<Signal> signals(const Profile& profile) {
  // Most recordings have none; then their samples are not read.
  if (std::none_of(profile.events().begin(), profile.events().end(), is_signal)) return {};
  return SignalReading(profile).all();
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

}  // namespace phlox::view
