// The formats in which a recording can be written, in one list: `phlox export -f NAME`, `-o FILE.EXT`, the
// help text and the default extension follow from it. A new format is one file in this directory and one row
// in registry.cpp. Exporters see a Profile and never a process, so a recording can be exported again at any
// time. They never open a file: the caller owns the stream and checks it after the last byte.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

// The text of a source file that a recording names; nothing if it cannot be read.
using SourceOf = std::function<std::optional<std::string>(const std::string& file)>;

struct ExportOptions {
  std::string title;  // of a picture; empty: made from the recording's meta
  // The page's limit: data that does not fit is merged. A million intervals of 500 threads need 10 MB;
  // browsers open 24 MB within two seconds, and mail still carries it.
  uint64_t page_bytes = 24'000'000;
  // For a page: the same recording with the frames that forked children inherited, which the page can then
  // show; nullptr: it has none. `show_inherited`: the page begins with them.
  const profile::Profile* with_inherited = nullptr;
  bool show_inherited = false;
  bool weigh_awaits = false;                    // a page begins with await time, if it has any
  const profile::TaskRows* tasks = nullptr;     // for a page: of the same recording; nullptr: none
  SourceOf source;                              // for a page: the source to include; empty: none
  std::vector<std::string>* notes = nullptr;    // receives notes about requested actions; may be nullptr
  std::vector<std::string>* remarks = nullptr;  // receives remarks that the user should know; may be nullptr
};

// Writes one whole document. An error says why this format cannot show the choices; nothing was written then.
using WriteFunction = Result<void> (*)(const profile::Profile&, const view::Choices&, const ExportOptions&,
                                       std::ostream&);

// Await time (view/await_time.h) in a format: not at all, as its samples have a moment; in place of the
// threads' time; or also alongside it, as a weight of its own; or always alongside it, and the page begins
// with it where it is chosen.
enum class Awaits : uint8_t { never, chosen, alongside, page };

struct Format {
  std::string_view name;                     // of `-f`
  std::vector<std::string_view> extensions;  // with the dot; the first is the default one
  std::string_view description;              // one line of --help
  WriteFunction write;
  // Unless another choice is made: everything, for a format that shows one thread at a time.
  view::Show show = view::Show::work;
  bool is_text = true;  // may be written to a terminal
  Awaits awaits = Awaits::never;
};

// In the order of the help text.
std::span<const Format> formats();

// nullptr: no such format.
const Format* find_format(std::string_view name);
// By the file name's extension, case ignored. nullptr: no format has it.
const Format* find_format_for_file(std::string_view path);
// "collapsed, svg": for error messages.
std::string format_names();

}  // namespace phlox::exporters
