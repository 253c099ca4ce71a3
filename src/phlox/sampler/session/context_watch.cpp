#include "phlox/sampler/session/context_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "phlox/process/own_attributes.h"
#include "phlox/profile/recorded_words.h"

namespace phlox::sampler {

ContextWatch::ContextWatch(pid_t pid, profile::ProcessId id, std::string environment,
                           memory::RemoteMemory& memory, profile::Sink& sink)
    : pid_(pid),
      id_(id),
      environment_(process::environment_attributes(environment)),
      memory_(memory),
      sink_(sink),
      reader_(pid) {}

// What it publishes counts more than its environment: its SDK has read that, and the program's own settings.
void ContextWatch::put(const std::string& published) {
  const bool both = !published.empty() && !environment_.empty();
  std::string text = published + (both ? "," : "") + environment_;
  if (text == put_) return;
  sink_.emit_meta(fmt::format("{}{}", profile::kResource, id_.value), text);
  put_ = std::move(text);
}

std::optional<process::ThreadVariable> ContextWatch::look(Nanoseconds now) {
  if (now < due_) return {};
  pause_ = std::min(2 * pause_, kLongest);
  due_ = now + pause_;
  if (const auto message = reader_.read_new()) {
    put(process::context_attributes(*message));
    wants_variable_ = process::publishes_traces(*message);
  } else if (put_.empty()) {
    put("");
  }
  if (!wants_variable_ || has_variable_) return {};
  // The dynamic linker may not have resolved it yet.
  auto found = process::find_thread_context(pid_, memory_);
  has_variable_ = found.has_value();
  return found;
}

}  // namespace phlox::sampler
