// Signals that end a program by default, as events of the recording.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "phlox/profile/recorded_words.h"
#include "phlox/sampler/assemble/consumer.h"

namespace phlox::sampler {

// The first few to each process: a supervisor may end many.
bool Consumer::take_as_one_of_first(const SignalRecord& record) {
  constexpr size_t kMostReceivers = 10'000;
  constexpr uint32_t kFirst = 10;
  if (record.what != SignalRecord::What::sent || record.other == 0) return false;
  if (sent_to_.size() >= kMostReceivers && !sent_to_.contains(record.other)) return false;
  return ++sent_to_[record.other] <= kFirst;
}

// Signals that the program handles may come without end; then some are left out.
void Consumer::take_signal(const SignalRecord& record) {
  using What = SignalRecord::What;
  constexpr Nanoseconds kSignalEvery = kSecond / 10;
  constexpr Nanoseconds kSignalsAtOnce = 100 * kSignalEvery;
  const bool ends = record.ends || (record.what == What::delivered && !record.handled);
  if (!ends && !take_as_one_of_first(record)) {
    if (signals_until_ > record.time + kSignalsAtOnce) return;
    signals_until_ = std::max(signals_until_, record.time) + kSignalEvery;
  }
  profile::Event event;
  event.kind = record.what == What::sent       ? profile::EventKind::signal_sent
               : record.what == What::received ? profile::EventKind::signal_received
                                               : profile::EventKind::signal_delivered;
  event.time = record.time;
  event.process = process_;
  if (const auto thread = threads_.find(record.thread); thread != threads_.end())
    event.thread = thread->second.id;
  event.value = record.signal;
  if (record.what == What::delivered) {
    event.text = record.handled ? profile::kSignalHandled : record.no_memory ? profile::kSignalNoMemory : "";
  } else {
    event.text.assign(record.name, ::strnlen(record.name, sizeof record.name));
    // So that no name of a process can pass for one of the texts above.
    event.text += record.other != 0 ? fmt::format(" ({})", record.other) : " (in another PID namespace)";
    if (record.by_kernel) event.text = record.own_fault ? profile::kSignalOwnFault : profile::kSignalByKernel;
    if (record.ends) event.text += profile::kSignalEnds;
  }
  if (record.unseen) event.text += profile::kSignalUnseen;
  sink_.emit(event);
}

}  // namespace phlox::sampler
