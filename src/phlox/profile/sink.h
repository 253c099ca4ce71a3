// Receives new rows. The sampler's consumer interns its records and emits each new row to a Sink once. Rows
// come in an order in which no row refers to a later one. The recording's writer is a Sink; so is the Profile
// in memory. One thread calls it. Never blocks on the target.
#pragma once

#include <string_view>
#include <type_traits>
#include <variant>

#include "phlox/base/result.h"
#include "phlox/profile/model.h"

namespace phlox::profile {

struct Meta {
  std::string_view key, value;
};

// The kind of row that has this kind of id.
template <class RowId>
struct NumberedRow;
template <>
struct NumberedRow<ProcessId> : std::type_identity<Process> {};
template <>
struct NumberedRow<ThreadId> : std::type_identity<Thread> {};
template <>
struct NumberedRow<ModuleId> : std::type_identity<Module> {};
template <>
struct NumberedRow<FrameId> : std::type_identity<Frame> {};
template <>
struct NumberedRow<StackId> : std::type_identity<Stack> {};
template <>
struct NumberedRow<WakerId> : std::type_identity<Waker> {};
template <>
struct NumberedRow<WaitTargetId> : std::type_identity<WaitTarget> {};
template <>
struct NumberedRow<TraceTimeId> : std::type_identity<TraceTime> {};
template <>
struct NumberedRow<SampleId> : std::type_identity<Sample> {};

template <class RowId>
struct Numbered {
  using Value = typename NumberedRow<RowId>::type;
  RowId id;
  const Value& value;
};
template <class Row>
struct Unnumbered {
  using Value = Row;
  const Value& value;
};

// One row of any kind, valid during the call that passes it.
using AnyRow =
    std::variant<Unnumbered<Meta>, Numbered<ProcessId>, Numbered<ThreadId>, Numbered<ModuleId>,
                 Numbered<FrameId>, Numbered<StackId>, Numbered<WakerId>, Numbered<WaitTargetId>,
                 Numbered<SampleId>, Numbered<TraceTimeId>, Unnumbered<Event>, Unnumbered<Counter>>;

// Calls `receiver` with the parts of the row: (id, value) or (value).
template <class Receiver>
void take_apart(const AnyRow& row, Receiver&& receiver) {
  std::visit(
      [&](const auto& part) {
        if constexpr (requires { part.id; }) {
          receiver(part.id, part.value);
        } else {
          receiver(part.value);
        }
      },
      row);
}

class Sink {
 public:
  virtual ~Sink() = default;

  // What a sink does with each kind of row is a set of overloads, so that a missing one does not compile.
  virtual void receive(const AnyRow& row) = 0;
  // Makes all rows so far durable. Called about four times a second.
  virtual Result<void> commit() = 0;

  // The caller gives the ids, counting up from 1 for each kind. A known id replaces that row: a sample and
  // the time of a trace are intervals, emitted again when they grow.
  template <class RowId>
  void emit(RowId id, const typename NumberedRow<RowId>::type& row) {
    receive(Numbered<RowId>{id, row});
  }
  void emit(const Event& event) { receive(Unnumbered<Event>{event}); }
  void emit(const Counter& counter) { receive(Unnumbered<Counter>{counter}); }
  void emit_meta(std::string_view key, std::string_view value) {
    receive(Unnumbered<Meta>{Meta{key, value}});
  }
};

}  // namespace phlox::profile
