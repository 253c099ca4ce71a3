#include "phlox/cli/last_resort.h"

#include <unistd.h>

#include <csignal>
#include <exception>
#include <new>
#include <system_error>

#include "phlox/cli/exit_status.h"
#include "phlox/cli/talk.h"

namespace phlox::cli {
namespace {

// Reached from any thread, with memory that may be used up and locks that may be held: nothing is destroyed,
// and the text has its room on the stack.
[[noreturn]] void end_with_message() {
  static constexpr char kOutOfMemory[] =
      "phlox: the system has no more memory for phlox\n"
      "hint: ulimit -v or the container's memory limit may be too low\n";
  static constexpr char kNoThread[] =
      "phlox: the system does not start another thread\n"
      "hint: ulimit -u, ulimit -v or the container's limit of processes may be too low\n";
  static constexpr char kUnknown[] = "phlox: phlox cannot go on: an error that it does not know\n";
  const auto say = [](const char* text, size_t size) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, size);
  };
  try {
    if (std::current_exception()) throw;
    say(kUnknown, sizeof kUnknown - 1);
  } catch (const std::bad_alloc&) {
    say(kOutOfMemory, sizeof kOutOfMemory - 1);
  } catch (const std::system_error&) {
    say(kNoThread, sizeof kNoThread - 1);
  } catch (...) {
    say(kUnknown, sizeof kUnknown - 1);
  }
  ::_exit(exit_status(ErrorKind::system));
}

void do_nothing(int) {}

}  // namespace

void install_last_resort() {
  std::set_terminate(end_with_message);
  // A handler, for it does not outlive exec as SIG_IGN does.
  struct sigaction before = {};
  if (::sigaction(SIGXFSZ, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) {
    struct sigaction action = {};
    action.sa_handler = do_nothing;
    ::sigaction(SIGXFSZ, &action, nullptr);
  }
}

Error error_of_current_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {ErrorKind::system, "the system has no more memory for phlox",
            "ulimit -v or the container's memory limit may be too low"};
  } catch (const std::system_error& error) {
    return {ErrorKind::system, std::string("the system refused: ") + error.what(),
            "a thread that cannot be started: ulimit -u, ulimit -v or the container's limit of processes"};
  } catch (const std::exception& error) {
    return {ErrorKind::system, std::string("phlox cannot go on: ") + error.what(), {}};
  }
}

}  // namespace phlox::cli
