// The choices on the screen, and the effect of each key. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "phlox/top/picture.h"

namespace phlox::top {

enum class Page : uint8_t { functions, lines, threads, processes, loops, stack, help };
enum class Order : uint8_t { self, total, self_all, total_all };

struct Controls {
  Page page = Page::functions;
  Page back = Page::functions;  // Escape leads here from a stack
  Page before_help = Page::functions;
  Order order = Order::self;
  view::Show show = view::Show::work;
  view::Weight weight = view::Weight::wall;
  std::string filter;                 // RE2 syntax; for names and places
  std::optional<std::string> typing;  // the filter while it is being typed
  Pick pick;
  std::string picked;  // in words
  std::string stack_name, stack_where;
  bool frozen = false;
  size_t cursor = 0, first = 0;  // for the page's rows: the selected one, and the first shown one
  std::string message;           // shown until the next key

  PictureOptions picture_options() const;
};

// Numbers of keys that are no characters.
enum Key : int {
  kUp = 0x110000,
  kDown,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kEnter,
  kBackspace,
  kEscape,
  kResize
};

enum class Wish : uint8_t { nothing, quit, save };

// The rows of the page as they are shown: filtered and sorted, as indices into the picture's.
std::vector<size_t> rows_of(const Picture& picture, const Controls& controls);

// `visible`: rows that the screen has room for.
Wish press(Controls& controls, int key, const Picture& picture, size_t visible);

bool is_expression(const std::string& pattern);
std::string_view order_words(Order order);

}  // namespace phlox::top
