// The screen of a terminal, through ncurses: draws lines, reads keys, and restores the terminal however phlox
// ends, even by a crash. One at a time, in one thread. Only SIGKILL leaves it as it was drawn (`reset`
// helps).
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/top/layout.h"

namespace phlox::top {

class Terminal {
 public:
  struct Options {
    bool colour = true;
    // Otherwise a character that is not ASCII is drawn as '?', and a truncation as '~'.
    bool unicode = true;
  };
  // Takes the whole screen. Fails if the terminal cannot move its cursor, or is not known.
  static Result<std::unique_ptr<Terminal>> open(std::FILE* output, std::FILE* input, const Options& options);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // For any thread, before phlox ends while another one may hold the terminal. Does nothing if there is no
  // terminal.
  static void give_back();

  Size size() const;
  // Sends only the changes.
  void draw(const std::vector<Line>& lines);
  // A character or a Key; none: no key within the time. `kResize`: size() has changed.
  std::optional<int> read_key(int milliseconds);

 private:
  struct State;
  explicit Terminal(const Options& options);
  Options options_;
  std::unique_ptr<State> state_;
};

// Whether this terminal is known and can be drawn on (no typewriter); the error says why not.
Result<void> check_terminal(int descriptor);

}  // namespace phlox::top
