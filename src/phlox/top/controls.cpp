#include "phlox/top/controls.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "phlox/report/table.h"

namespace phlox::top {
namespace {

std::unique_ptr<RE2> compiled(const std::string& pattern) {
  if (pattern.empty()) return nullptr;
  RE2::Options options;
  options.set_log_errors(false);
  auto expression = std::make_unique<RE2>(pattern, options);
  return expression->ok() ? std::move(expression) : nullptr;
}

double weight_of(const PlaceRow& row, Order order) {
  switch (order) {
    case Order::self:
      return row.self;
    case Order::total:
      return row.total;
    case Order::self_all:
      return row.self_all;
    case Order::total_all:
      return row.total_all;
  }
  return 0;
}

// The texts that the filter matches, one by one, so that ^ and $ apply to a name.
std::vector<std::string> texts_of(const Picture& picture, Page page, size_t row) {
  switch (page) {
    case Page::functions:
    case Page::lines:
      return {picture.places[row].name, picture.places[row].where};
    case Page::threads: {
      const ThreadRow& thread = picture.threads_seen[row];
      return {thread.name, std::to_string(thread.tid), thread.busiest};
    }
    case Page::processes: {
      const ProcessRow& process = picture.processes_seen[row];
      return {std::to_string(process.pid), process.command, process.busiest};
    }
    case Page::loops: {
      const LoopRow& loop = picture.loops[row];
      return {loop.name, std::to_string(loop.tid), loop.kind, loop.blocked_in};
    }
    case Page::stack:
    case Page::help:
      break;
  }
  return {};
}

bool matches(const std::vector<std::string>& texts, const RE2& expression) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return RE2::PartialMatch(text, expression); });
}

size_t count_of(const Picture& picture, Page page) {
  switch (page) {
    case Page::functions:
    case Page::lines:
      return picture.places.size();
    case Page::threads:
      return picture.threads_seen.size();
    case Page::processes:
      return picture.processes_seen.size();
    case Page::loops:
      return picture.loops.size();
    case Page::stack:
      return picture.stack.size();
    case Page::help:
      break;
  }
  return 0;
}

void go_to(Controls& controls, Page page) {
  controls.page = page;
  controls.cursor = controls.first = 0;
}

void choose(Controls& controls, const Picture& picture) {
  const std::vector<size_t> rows = rows_of(picture, controls);
  if (controls.cursor >= rows.size()) return;
  const size_t row = rows[controls.cursor];
  if (controls.page == Page::functions || controls.page == Page::lines) {
    controls.stack_name = picture.places[row].name;
    controls.stack_where = picture.places[row].where;
    controls.back = controls.page;
    go_to(controls, Page::stack);
    return;
  }
  const auto pick_thread = [&](const auto& thread) {
    controls.pick = {thread.id, {}};
    controls.picked = fmt::format("thread {} ({})", report::plain(thread.name), thread.tid);
  };
  if (controls.page == Page::threads) {
    pick_thread(picture.threads_seen[row]);
  } else if (controls.page == Page::loops) {
    pick_thread(picture.loops[row]);
  } else if (controls.page == Page::processes) {
    const ProcessRow& process = picture.processes_seen[row];
    controls.pick = {{}, process.id};
    controls.picked = fmt::format("process {}", process.pid);
  } else {
    return;
  }
  controls.filter.clear();  // it was only for finding the row
  go_to(controls, Page::functions);
}

// Goes one step back: leaves a stack or the help, then the filter, then the pick.
void leave(Controls& controls) {
  if (controls.page == Page::help) {
    go_to(controls, controls.before_help);
  } else if (controls.page == Page::stack) {
    go_to(controls, controls.back);
  } else if (!controls.filter.empty()) {
    controls.filter.clear();
    go_to(controls, controls.page);
  } else {
    controls.pick = {};
    controls.picked.clear();
    go_to(controls, controls.page);
  }
}

void move(Controls& controls, int key, size_t rows, size_t visible) {
  const size_t last = rows == 0 ? 0 : rows - 1;
  const size_t page = std::max<size_t>(1, visible);
  size_t& cursor = controls.cursor;
  if (key == kUp && cursor > 0) --cursor;
  if (key == kDown) ++cursor;
  if (key == kPageUp) cursor -= std::min(cursor, page);
  if (key == kPageDown) cursor += page;
  if (key == kHome) cursor = 0;
  if (key == kEnd) cursor = last;
  cursor = std::min(cursor, last);
  if (cursor < controls.first) controls.first = cursor;
  if (cursor >= controls.first + page) controls.first = cursor - page + 1;
}

void type(Controls& controls, int key) {
  std::string& text = *controls.typing;
  if (key == kEscape) {
    controls.typing.reset();
  } else if (key == kEnter) {
    if (!text.empty() && !compiled(text)) {
      controls.message = "not a regular expression: " + text;
    } else {
      controls.filter = text;
      controls.cursor = controls.first = 0;
    }
    controls.typing.reset();
  } else if (key == kBackspace) {
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
    if (!text.empty()) text.pop_back();
  } else if (key >= 0x20 && key < 0x7f) {
    text += static_cast<char>(key);
  } else if (key >= 0x80 && key < 0x110000) {
    const auto c = static_cast<uint32_t>(key);
    if (c < 0x800) {
      text += static_cast<char>(0xc0 | c >> 6);
    } else {
      if (c < 0x10000) {
        text += static_cast<char>(0xe0 | c >> 12);
      } else {
        text += static_cast<char>(0xf0 | c >> 18);
        text += static_cast<char>(0x80 | (c >> 12 & 0x3f));
      }
      text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    }
    text += static_cast<char>(0x80 | (c & 0x3f));
  }
}

template <class Enum>
Enum next(Enum value, Enum last) {
  return value == last ? Enum{} : static_cast<Enum>(static_cast<int>(value) + 1);
}

constexpr std::pair<int, Page> kPageKeys[] = {
    {'?', Page::help},      {'h', Page::help},      {'1', Page::functions}, {'f', Page::functions},
    {'2', Page::lines},     {'l', Page::lines},     {'3', Page::threads},   {'t', Page::threads},
    {'4', Page::processes}, {'p', Page::processes}, {'5', Page::loops},     {'e', Page::loops}};

}  // namespace

PictureOptions Controls::picture_options() const {
  PictureOptions options;
  options.choices.by.line = page == Page::lines || (page == Page::stack && back == Page::lines);
  options.choices.show = show;
  options.choices.weight = weight;
  if (page == Page::stack) {
    options.stack_name = stack_name;
    options.stack_where = stack_where;
  }
  return options;
}

std::vector<size_t> rows_of(const Picture& picture, const Controls& controls) {
  // A stack is always shown completely.
  const auto expression = controls.page == Page::stack ? nullptr : compiled(controls.filter);
  std::vector<size_t> rows;
  for (size_t i = 0; i < count_of(picture, controls.page); ++i) {
    if (!expression || matches(texts_of(picture, controls.page, i), *expression)) rows.push_back(i);
  }
  if (controls.page == Page::functions || controls.page == Page::lines) {
    const auto nothing = [&](size_t i) { return weight_of(picture.places[i], controls.order) <= 0; };
    rows.erase(std::remove_if(rows.begin(), rows.end(), nothing), rows.end());
    std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
      return weight_of(picture.places[a], controls.order) > weight_of(picture.places[b], controls.order);
    });
  }
  return rows;
}

Wish press(Controls& controls, int key, const Picture& picture, size_t visible) {
  controls.message.clear();
  if (key == kResize) return Wish::nothing;
  if (controls.typing) {
    type(controls, key);
    return Wish::nothing;
  }
  for (const auto& [of_page, page] : kPageKeys) {
    if (key != of_page) continue;
    if (page == Page::help && controls.page != Page::help) controls.before_help = controls.page;
    go_to(controls, page);
  }
  switch (key) {
    case 'q':
      return Wish::quit;
    case 'w':
      return Wish::save;
    case 's':
      controls.order = next(controls.order, Order::total_all);
      controls.cursor = controls.first = 0;
      break;
    case 'v':
      // everything, work, computing, waiting, whatever their order
      controls.show = next(controls.show, view::Show::waiting);
      break;
    case 'c':
      controls.weight = controls.weight == view::Weight::wall ? view::Weight::cpu : view::Weight::wall;
      break;
    case ' ':
      controls.frozen = !controls.frozen;
      break;
    case '/':
      controls.typing = controls.filter;
      break;
    case kEnter:
      choose(controls, picture);
      break;
    case kEscape:
    case kBackspace:
      leave(controls);
      break;
    case 'k':
      key = kUp;
      break;
    case 'j':
      key = kDown;
      break;
    default:
      break;
  }
  move(controls, key, rows_of(picture, controls).size(), visible);
  return Wish::nothing;
}

bool is_expression(const std::string& pattern) {
  return pattern.empty() || compiled(pattern) != nullptr;
}

std::string_view order_words(Order order) {
  switch (order) {
    case Order::self:
      return "self";
    case Order::total:
      return "total";
    case Order::self_all:
      return "self since the start";
    case Order::total_all:
      return "total since the start";
  }
  return "";
}

}  // namespace phlox::top
