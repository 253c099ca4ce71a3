// Where /proc has the memory, files and folders of a process. A process lives on after its first thread has
// ended (pthread_exit), but then /proc/PID has none of these; the folder of another of its threads does.
#pragma once

#include <sys/types.h>

#include <string>

namespace phlox::memory {

// `pid`; or, if its first thread has ended, the lowest id of a thread that has not. `pid` if all have ended.
pid_t living_thread(pid_t pid);
// "/proc/PID", or "/proc/PID/task/TID" of living_thread().
std::string proc_folder(pid_t pid);

}  // namespace phlox::memory
