#include "phlox/top/terminal.h"

#include <array>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <curses.h>

// From <term.h>, which defines words such as "lines" as macros.
extern "C" int setupterm(const char* term, int descriptor, int* error);

namespace phlox::top {
namespace {

constexpr std::array<int, 5> kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

// What a crash restores, prepared for a signal handler. A process has one screen.
struct Restoring {
  int descriptor = -1;
  termios before{};
  char text[256] = {};
  size_t length = 0;
};
Restoring restoring;  // NOLINT: a signal handler has nothing else to ask

void restore() {
  ::tcsetattr(restoring.descriptor, TCSANOW, &restoring.before);
  (void)!::write(restoring.descriptor, restoring.text, restoring.length);
}

void restore_and_die(int signal) {
  restore();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void remember(int descriptor) {
  restoring.descriptor = descriptor;
  ::tcgetattr(descriptor, &restoring.before);
  restoring.length = 0;
  for (const char* name : {"sgr0", "cnorm", "rmkx", "rmcup"}) {
    std::string capability = name;
    const char* text = ::tigetstr(capability.data());
    if (text == nullptr || text == reinterpret_cast<const char*>(-1)) continue;
    const size_t length = std::strlen(text);
    if (restoring.length + length > sizeof restoring.text) continue;
    std::memcpy(restoring.text + restoring.length, text, length);
    restoring.length += length;
  }
}

struct Attributes {
  short colour;  // -1: unchanged
  attr_t attributes;
};

Attributes attributes_of(Style style) {
  switch (style) {
    case Style::plain:
      return {-1, A_NORMAL};
    case Style::title:
      return {-1, A_BOLD};
    case Style::header:
      return {-1, A_BOLD | A_UNDERLINE};
    case Style::chosen:
      return {-1, A_REVERSE};
    case Style::faint:
      return {-1, A_NORMAL};
    case Style::hot:
      return {COLOR_RED, A_BOLD};
    case Style::warning:
      return {COLOR_YELLOW, A_BOLD};
    case Style::running:
      return {COLOR_GREEN, A_NORMAL};
    case Style::runnable:
      return {COLOR_YELLOW, A_NORMAL};
    case Style::gil:
      return {COLOR_MAGENTA, A_NORMAL};
  }
  return {-1, A_NORMAL};
}

std::string ascii(std::string_view text) {
  constexpr std::string_view kCut = "…";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) out += text[i];
    if (byte >= 0xc0) out += text.substr(i).starts_with(kCut) ? '~' : '?';
  }
  return out;
}

std::optional<int> key_of(int code, wint_t read) {
  if (code == KEY_CODE_YES) {
    switch (read) {
      case KEY_UP:
        return kUp;
      case KEY_DOWN:
        return kDown;
      case KEY_PPAGE:
        return kPageUp;
      case KEY_NPAGE:
        return kPageDown;
      case KEY_HOME:
        return kHome;
      case KEY_END:
        return kEnd;
      case KEY_ENTER:
        return kEnter;
      case KEY_BACKSPACE:
        return kBackspace;
      case KEY_RESIZE:
        return kResize;
      default:
        return {};
    }
  }
  switch (read) {
    case '\r':
    case '\n':
      return kEnter;
    case 0x7f:
    case '\b':
      return kBackspace;
    case 0x1b:
      return kEscape;
    default:
      return static_cast<int>(read);
  }
}

}  // namespace

struct Terminal::State {
  SCREEN* screen = nullptr;
  std::array<struct sigaction, kCrashes.size()> before{};
};

Terminal::Terminal(const Options& options) : options_(options) {}

Result<void> check_terminal(int descriptor) {
  int error = 0;
  const char* name = std::getenv("TERM");
  const std::string shown = name != nullptr ? name : "";
  if (::setupterm(name, descriptor, &error) != OK || shown.empty())
    return fail(ErrorKind::system, "no terminal of the kind '" + shown + "' is known (TERM)");
  char capability[] = "cup";
  const char* move = ::tigetstr(capability);
  if (move == nullptr || move == reinterpret_cast<const char*>(-1))
    return fail(ErrorKind::system,
                "the terminal, of the kind '" + shown + "', cannot move its cursor (TERM)");
  return {};
}

Result<std::unique_ptr<Terminal>> Terminal::open(std::FILE* output, std::FILE* input,
                                                 const Options& options) {
  std::unique_ptr<Terminal> made(new Terminal(options));
  made->state_ = std::make_unique<State>();
  // The terminal's state before ncurses changes it.
  restoring = {};
  const int descriptor = ::fileno(output);
  termios before{};
  ::tcgetattr(descriptor, &before);
  // newterm(), since initscr() ends the program on failure.
  made->state_->screen = ::newterm(nullptr, output, input);
  if (made->state_->screen == nullptr)
    return fail(ErrorKind::system, "the terminal cannot be set up: its kind is not known (TERM)");
  remember(descriptor);
  restoring.before = before;
  struct sigaction action {};
  action.sa_handler = restore_and_die;
  for (size_t i = 0; i < kCrashes.size(); ++i) ::sigaction(kCrashes[i], &action, &made->state_->before[i]);
  ::cbreak();
  ::noecho();
  ::nonl();
  ::curs_set(0);
  ::set_escdelay(50);
  ::keypad(stdscr, TRUE);
  ::intrflush(stdscr, FALSE);
  ::leaveok(stdscr, TRUE);
  if (options.colour && ::has_colors()) {
    ::start_color();
    ::use_default_colors();
    for (short colour = 1; colour < 8; ++colour) ::init_pair(colour, colour, -1);
  } else {
    made->options_.colour = false;
  }
  return made;
}

Terminal::~Terminal() {
  if (!state_ || state_->screen == nullptr) return;
  ::endwin();
  for (size_t i = 0; i < kCrashes.size(); ++i) ::sigaction(kCrashes[i], &state_->before[i], nullptr);
  ::delscreen(state_->screen);
  restoring = {};
}

void Terminal::give_back() {
  if (restoring.descriptor >= 0) restore();
}

Size Terminal::size() const {
  // A stopped process (Ctrl-Z) gets no signal for a new size.
  winsize now{};
  if (::ioctl(restoring.descriptor, TIOCGWINSZ, &now) == 0 && now.ws_row > 0 && now.ws_col > 0 &&
      ::is_term_resized(now.ws_row, now.ws_col))
    ::resizeterm(now.ws_row, now.ws_col);
  const int rows = ::getmaxy(stdscr), columns = ::getmaxx(stdscr);
  return {static_cast<size_t>(columns), static_cast<size_t>(rows)};
}

void Terminal::draw(const std::vector<Line>& lines) {
  ::werase(stdscr);
  for (size_t row = 0; row < lines.size(); ++row) {
    ::wmove(stdscr, static_cast<int>(row), 0);
    for (const Span& span : lines[row]) {
      const Attributes drawn = attributes_of(span.style);
      ::wattrset(stdscr,
                 static_cast<int>(drawn.attributes |
                                  (options_.colour && drawn.colour >= 0 ? COLOR_PAIR(drawn.colour) : 0)));
      const std::string text = options_.unicode ? span.text : ascii(span.text);
      ::waddnstr(stdscr, text.c_str(), static_cast<int>(text.size()));
    }
  }
  ::wattrset(stdscr, A_NORMAL);
  ::wrefresh(stdscr);
}

std::optional<int> Terminal::read_key(int milliseconds) {
  ::wtimeout(stdscr, milliseconds);
  wint_t read = 0;
  const int code = ::wget_wch(stdscr, &read);
  if (code == ERR) return {};
  return key_of(code, read);
}

}  // namespace phlox::top
