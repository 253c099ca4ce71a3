// What the tasks of event loops awaited, as samples of a profile: an event of its own (sampled_events.h),
// whose stacks are the coroutines of the tasks, outermost first, and innermost what they await. So every
// output of samples has it. Such a sample is the waiting of all tasks with one stack over the whole
// recording: it has no moment, and is longer than the recording where many tasks waited at once. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"

namespace phlox::view {

// The name of the event, and the word for it as a weight.
inline constexpr std::string_view kAwaitTime = "await";

// The events of a profile with await time, by number. The first one has no name: it is what the profile had.
inline constexpr uint16_t kTimeOfThreads = 1, kTimeOfTasks = 2;

// Sample::system_call of these samples: tasks waited, not a thread.
inline constexpr int16_t kTasksAwait = -3;

// Adds the waiting tasks; Sample::value is the number of the row, its TaskTimeId. The profile must have
// everything that the rows refer to; the shown event stays the same. Call it after everything else that
// changes samples. If no task waited, or the profile has events, nothing happens. false: nothing was added.
bool add_await_time(profile::Profile& profile, const profile::TaskRows& rows);

// Whether the samples that are shown are of await time.
bool shows_await_time(const profile::Profile& profile);

// Whether it represents an event loop whose thread is not known.
bool is_unknown_thread_of_loop(const profile::Thread& thread);

// A kind of wait target in words: "a lock". One that is not known: the kind itself.
std::string_view awaited_by_task(std::string_view kind);
// "a semaphore (BoundedSemaphore)"
std::string awaited_by_task_words(std::string_view kind, std::string_view awaited);

}  // namespace phlox::view
