#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "phlox/cli/commands.h"
#include "phlox/cli/export_file.h"
#include "phlox/cli/output_file.h"
#include "phlox/process/launch.h"

namespace phlox::cli {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0;
}

// Asks the desktop to show the file; false if it cannot. What it starts outlives phlox.
bool open_on_desktop(const std::string& path) {
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY")) return false;
  if (process::calling_user()) return false;  // no browser as root
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  if (::posix_spawn_file_actions_init(&files) != 0) return false;
  if (::posix_spawnattr_init(&attributes) != 0) {
    ::posix_spawn_file_actions_destroy(&files);
    return false;
  }
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::string program = "xdg-open", argument = path;
  char* words[] = {program.data(), argument.data(), nullptr};
  pid_t pid = 0;
  const bool started = ::posix_spawnp(&pid, "xdg-open", &files, &attributes, words, environ) == 0;
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return started;
}

Result<void> run_view(const ViewCommandArguments& arguments, Talk& talk) {
  if (arguments.file.empty()) return fail(ErrorKind::usage, "view which recording?", "phlox view app.phlox");
  if (arguments.output == "-")
    return fail(ErrorKind::usage, "a page on standard output cannot be opened",
                fmt::format("phlox export {} -f html", arguments.file));
  if (arguments.file == "-" && arguments.output.empty())
    return fail(ErrorKind::usage, "where is the page of what comes from standard input to go?",
                "phlox view - -o app.html");
  // Next to the recording, under a name that no file of the user has.
  const std::string output = arguments.output.empty() ? arguments.file + ".html" : arguments.output;
  if (auto written = export_file({arguments.file, output, arguments.title, arguments.page_size,
                                  arguments.force, arguments.source, arguments.input, arguments.view},
                                 *exporters::find_format("html"), talk);
      !written)
    return written;
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(output, error);
  const std::string path = error ? output : whole.lexically_normal().string();
  talk.note(fmt::format("wrote {}: {}", with_size(path),
                        open_on_desktop(path) ? "it opens in your browser" : "open it in any browser"));
  return {};
}

}  // namespace

int view(const CommandLine& line, Talk& talk) {
  return status_of(run_view(line.view, talk), talk);
}

}  // namespace phlox::cli
