// The screen of a terminal, through ncurses: draws lines, reads keys, and gives the terminal back on every
// way out, a crash of ours included. One at a time, of one thread. Only SIGKILL leaves it as it was drawn
// (`reset` helps).
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
    bool unicode = true;  // else what is not ASCII is drawn as '?', and a cut as '~'
  };
  // Takes the whole screen. Fails where the terminal cannot move its cursor, or is not known.
  static Result<std::unique_ptr<Terminal>> open(std::FILE* output, std::FILE* input, const Options& options);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  Size size() const;
  // Only what changed is sent.
  void draw(const std::vector<Line>& lines);
  // A character or a Key; nothing within the time: none. `kResize`: size() is another one.
  std::optional<int> read_key(int milliseconds);

 private:
  struct State;
  explicit Terminal(const Options& options);
  Options options_;
  std::unique_ptr<State> state_;
};

// Whether this one can be drawn on: known, and no typewriter. Says why not.
Result<void> check_terminal(int descriptor);

}  // namespace phlox::top
