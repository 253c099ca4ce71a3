#include <fcntl.h>
#include <fmt/format.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "phlox/cli/attempts.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/overdue.h"
#include "phlox/cli/process_of.h"
#include "phlox/cli/signal_watch.h"
#include "phlox/cli/top_source.h"
#include "phlox/cli/values.h"
#include "phlox/selection/attach_error.h"
#include "phlox/top/layout.h"
#include "phlox/top/terminal.h"
#include "phlox/view/forks.h"
#include "phlox/view/prepared.h"

namespace phlox::cli {
namespace {

struct Request {
  TopSource::Options source;
  Nanoseconds interval = kSecond;
  std::optional<size_t> count;  // number of refreshes
  top::Controls controls;
};

Result<void> read_programs(const CommandLine& line, TopSource::Options& source) {
  const TopArguments& a = line.top;
  if (auto checked = check_container(!a.pids.empty(), a.container); !checked) return checked;
  auto selection = selection::Selection::of(a.selection);
  if (!selection) return fail(selection);
  source.selection = *std::move(selection);
  if (int(line.has_program) + int(!a.pids.empty() || source.selection) + int(!a.file.empty()) != 1) {
    return fail(
        ErrorKind::usage, "give one of these: running processes, a program to start, or a recording",
        "phlox top -p PID, phlox top --name gunicorn, phlox top -- python3 app.py, or: phlox top app.phlox");
  }
  source.file = a.file;
  source.program = line.program;
  if (line.has_program && line.program.empty())
    return fail(ErrorKind::usage, "no program after --", "phlox top -- python3 app.py");
  for (const std::string& text : a.pids) {
    auto pid = process_of(line, text, a.container);
    if (!pid) return fail(pid);
    if (std::find(source.pids.begin(), source.pids.end(), *pid) == source.pids.end())
      source.pids.push_back(*pid);
  }
  return {};
}

Result<void> read_source(const CommandLine& line, TopSource::Options& source) {
  const TopArguments& a = line.top;
  if (auto read = read_programs(line, source); !read) return read;
  sampler::Options& recorder = source.recorder;
  recorder.follow = !a.no_follow;
  recorder.launched = line.has_program;
  recorder.command_line = line.text;
  recorder.max_overhead_percent = 2;
  recorder.rate_is_limit = a.rate.empty();
  if (auto read = read_option(line, "--rate", a.rate, parse_rate, recorder.rate_hz); !read) return read;
  auto native = native_source_of(a.native);
  if (!native) return fail(native);
  recorder.native = *native;
  if (recorder.native) recorder.unwind_cache = unwind_cache();
  source.debug_search = debug_search_of(a.native);
  return read_option(line, "--window", a.window, parse_duration, source.window);
}

top::Page page_of(std::string_view name) {
  constexpr std::pair<std::string_view, top::Page> kPages[] = {{"functions", top::Page::functions},
                                                               {"lines", top::Page::lines},
                                                               {"threads", top::Page::threads},
                                                               {"processes", top::Page::processes},
                                                               {"loops", top::Page::loops}};
  for (const auto& [known, page] : kPages) {
    if (name == known) return page;
  }
  return top::Controls().page;
}

Result<Request> request_of(const CommandLine& line) {
  const TopArguments& a = line.top;
  Request request;
  if (auto read = read_source(line, request.source); !read) return fail(read);
  if (auto read = read_option(line, "--interval", a.interval, parse_duration, request.interval); !read)
    return fail(read);
  request.interval = std::max(request.interval, kSecond / 10);
  if (!a.count.empty()) {
    auto count = parse_count("--count", a.count);
    if (!count) return fail(count);
    request.count = *count;
  }
  request.controls.filter = a.filter;
  request.controls.page = page_of(a.page);
  auto tried = top::make_picture({}, request.controls.picture_options());
  if (!tried) return fail(tried);
  if (!top::is_expression(request.controls.filter))
    return fail(ErrorKind::usage, fmt::format("--filter: '{}' is not a regular expression", a.filter),
                "as RE2 reads it: --filter 'parse|load'");
  return request;
}

// Why no screen can be drawn; empty if it can.
std::string no_screen(const Request& request) {
  if (request.count) return "asked for";
  if (::isatty(STDOUT_FILENO) != 1 || ::isatty(STDIN_FILENO) != 1) return "no terminal";
  const auto fit = top::check_terminal(STDOUT_FILENO);
  return fit ? std::string() : fit.error().message;
}

bool is_unicode() {
  std::setlocale(LC_CTYPE, "");
  return std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
}

bool wants_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == 0;
}

// The size of text output: as wide as the terminal, or as the text needs.
top::Size text_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return {size.ws_col, std::max<size_t>(size.ws_row, 10)};
  return {160, 25};
}

class Top {
 public:
  Top(Request request, Talk& talk)
      : request_(std::move(request)), controls_(request_.controls), talk_(talk), watch_(kEnding) {}

  int run() {
    const std::string why_text = no_screen(request_);
    const bool is_screen = why_text.empty();
    if (!is_screen && !request_.count && ::isatty(STDOUT_FILENO) == 1) talk_.note(why_text + ": plain text");
    watch_.start([this](SignalSeen seen) {
      const bool key = seen.from_kernel && (seen.number == SIGINT || seen.number == SIGQUIT);
      if (stop_) leave_ = true;
      if (!stop_ && key) signalled_program_ = true;
      stop_ = true;
    });
    overdue_.emplace(
        stop_, [this](Overdue::Why why) { give_up(why); }, Overdue::Limits{.work = kMostWork});
    auto source = TopSource::open(request_.source, watch_.mask_before(), stop_, talk_);
    if (!source) return failed(source.error());
    source_ = *std::move(source);
    auto done = is_screen ? show() : print();
    stop_ = true;
    source_->close();
    overdue_.reset();
    if (signalled_program_) wait_for_program();
    for (const std::string& note : source_->notes()) talk_.note(note);
    if (!done) return failed(done.error());
    if (const auto error = source_->error()) return failed(*error);
    return kSuccess;
  }

 private:
  static constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

  int failed(const Error& error) {
    talk_.error(error);
    return exit_status(error.kind);
  }

  // Runs on its own thread while another one draws, reads or waits for ever.
  void give_up(Overdue::Why why) {
    top::Terminal::give_back();
    talk_.error(Overdue::error_of(why, "It shows nothing any more"));
    ::_exit(exit_status(ErrorKind::system));
  }

  // A Ctrl-C goes to the program, too.
  void wait_for_program() {
    constexpr Nanoseconds kSilently = kSecond;
    const Nanoseconds until = clock_now() + kSilently;
    while (!leave_ && source_->runs_on() && clock_now() < until) ::usleep(10'000);
    if (leave_ || !source_->runs_on()) return;
    talk_.note("waiting for the program to end (Ctrl-C again leaves it running)");
    while (!leave_ && source_->runs_on()) ::usleep(10'000);
  }

  // Takes a new picture and draws it.
  Result<void> refresh() {
    if (auto refreshed = source_->refresh(); !refreshed) return refreshed;
    whole_ = source_->seen();
    head_ = source_->head();
    for (profile::Profile* part : {&whole_.lately, &whole_.all}) {
      if (auto ready = view::prepare_view(*part, {}, view::Inherited::hidden); !ready) return ready;
    }
    return pick();
  }

  Result<void> pick() {
    if (controls_.pick) picked_ = top::picked(whole_, controls_.pick);
    return draw_numbers();
  }

  Result<void> draw_numbers() {
    auto made = top::make_picture(controls_.pick ? picked_ : whole_, controls_.picture_options());
    if (!made) return fail(made);
    picture_ = *std::move(made);
    return {};
  }

  Result<void> show() {
    auto terminal = top::Terminal::open(stdout, stdin, {wants_colour(), is_unicode()});
    if (!terminal) return fail(terminal);
    if (auto refreshed = refresh(); !refreshed) return refreshed;
    Nanoseconds next = clock_now() + kFirstSample;
    while (!stop_) {
      (*terminal)->draw(top::layout(head_, picture_, controls_, (*terminal)->size()));
      constexpr Nanoseconds kLongestWait = kSecond / 5;  // the time until a signal is noticed
      const Nanoseconds left = controls_.frozen ? kLongestWait : next - clock_now();
      const auto key = (*terminal)->read_key(
          static_cast<int>(std::clamp<Nanoseconds>(left, 1'000'000, kLongestWait) / 1'000'000));
      if (key) {
        const auto before = std::pair(controls_.pick.thread, controls_.pick.process);
        switch (top::press(controls_, *key, picture_, top::visible_rows((*terminal)->size()))) {
          case top::Wish::quit:
            return {};
          case top::Wish::save:
            controls_.message = source_->save();
            break;
          case top::Wish::nothing:
            break;
        }
        if (before != std::pair(controls_.pick.thread, controls_.pick.process)) {
          // A frozen picture already has all rows.
          if (auto refreshed = controls_.frozen ? pick() : refresh(); !refreshed) return refreshed;
        } else if (auto drawn = draw_numbers(); !drawn) {
          return drawn;
        }
      }
      if (controls_.frozen || clock_now() < next) continue;
      const Nanoseconds begin = clock_now();
      if (auto refreshed = refresh(); !refreshed) return refreshed;
      // If a refresh takes long, refresh less often.
      next = begin + std::max(request_.interval, 4 * (clock_now() - begin));
    }
    return {};
  }

  Result<void> print() {
    for (size_t i = 0; !request_.count || i < *request_.count; ++i) {
      const Nanoseconds next = clock_now() + request_.interval;
      while (!stop_ && !source_->has_ended() && clock_now() < next) ::usleep(20'000);
      if (auto refreshed = refresh(); !refreshed) return refreshed;
      auto output = OutputFile::open("-", {.text = true});
      if (!output) return fail(output);
      (*output)->stream() << (i > 0 ? "\n" : "") << top::as_text(head_, picture_, controls_, text_size());
      if (auto committed = (*output)->commit(); !committed) return committed;
      if (stop_ || source_->has_ended()) break;
    }
    return {};
  }

  // Short, so that the screen soon shows something.
  static constexpr Nanoseconds kFirstSample = kSecond / 2;
  // CPU time after the request to end: there is nothing to finish.
  static constexpr Nanoseconds kMostWork = 10 * kSecond;

  Request request_;
  top::Controls controls_;
  Talk& talk_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> signalled_program_{false}, leave_{false};  // by Ctrl-C; by any later signal
  top::Head head_;
  top::Seen whole_, picked_;  // everything, and the picked part of it
  top::Picture picture_;
  SignalWatch watch_;
  std::unique_ptr<TopSource> source_;
  std::optional<Overdue> overdue_;
};

}  // namespace

int top(const CommandLine& line, Talk& talk) {
  auto request = request_of(line);
  if (!request) {
    talk.error(request.error());
    return exit_status(request.error().kind);
  }
  return Top(*std::move(request), talk).run();
}

}  // namespace phlox::cli
