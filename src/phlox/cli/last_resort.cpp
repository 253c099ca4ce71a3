#include "phlox/cli/last_resort.h"

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "phlox/cli/exit_status.h"

namespace phlox::cli {
namespace {

void say(const char* text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

// Runs on any thread, possibly without memory and with locks held: must not allocate or destroy anything.
[[noreturn]] void end_with_message() {
  const FailureWords words =
      std::current_exception() ? words_of_current_exception() : FailureWords{"an unknown error", ""};
  say("phlox: ");
  say(words.message);
  if (*words.hint != 0) {
    say("\nhint: ");
    say(words.hint);
  }
  say("\n");
  ::_exit(exit_status(ErrorKind::system));
}

void do_nothing(int) {}

// The C library calls abort() where it cannot report a failure, such as a munmap(2) that the system refuses
// while the stack of an ended thread is freed. An abort that another process requests is not changed.
void end_after_abort(int number, siginfo_t* info, void*) {
  if (info->si_code == SI_TKILL && info->si_pid == ::getpid()) {
    say("phlox: the C library ended phlox (abort); a refused munmap is one cause\n"
        "hint: is memory limited? ulimit -v, sysctl vm.max_map_count. What a recording already held is still "
        "in it.\n");
    ::_exit(exit_status(ErrorKind::system));
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

void install_last_resort() {
  std::set_terminate(end_with_message);
  struct sigaction at_abort = {};
  at_abort.sa_sigaction = end_after_abort;
  at_abort.sa_flags = SA_SIGINFO;
  ::sigaction(SIGABRT, &at_abort, nullptr);
  // A handler instead of SIG_IGN: exec resets a handler, but keeps SIG_IGN.
  struct sigaction before = {};
  if (::sigaction(SIGXFSZ, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) {
    struct sigaction action = {};
    action.sa_handler = do_nothing;
    ::sigaction(SIGXFSZ, &action, nullptr);
  }
}

FailureWords words_of_current_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {"the system refused more memory", "raise ulimit -v, or the container's memory limit"};
  } catch (const std::system_error& error) {
    // The code that std::thread throws.
    if (error.code() == std::errc::resource_unavailable_try_again)
      return {"the system refused another thread",
              "raise ulimit -u or -v, or the container's limit on processes"};
    return {error.what(), ""};
  } catch (const std::exception& error) {
    return {error.what(), ""};
  } catch (...) {
    return {"an unknown error", ""};
  }
}

}  // namespace phlox::cli
