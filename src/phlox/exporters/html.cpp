#include "phlox/exporters/html.h"

#include <fmt/format.h>

#include <span>
#include <string>

#include "phlox/base/encodings.h"
#include "phlox/exporters/page_columns.h"
#include "phlox/exporters/page_data.h"
#include "phlox/exporters/page_pair.h"
#include "phlox/exporters/page_size.h"
#include "phlox/exporters/page_tables.h"
#include "phlox/exporters/web_bundle.h"
#include "phlox/exporters/words.h"
#include "phlox/view/work.h"

namespace phlox::exporters {
namespace {

// A policy's 'sha256-…', from the hexadecimal digits that the build produced.
std::string source_hash(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  return "'sha256-" + base64(bytes) + "'";
}

// The page loads nothing and runs only its one script (in the page, and again in its worker).
std::string policy() {
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; worker-src blob:; img-src data:; base-uri 'none'; "
      "form-action 'none'",
      source_hash(web::page_script_sha256()), source_hash(web::page_style_sha256()));
}

uint64_t page_size(const PageData& data) {
  return data.columns.size() + data.head.size() + web::page_script().size() + web::page_style().size() + 4096;
}

struct Fitted {
  PageData data;
  PageMerge merge;
};

// Unmerged if it fits, otherwise with the mildest merge that fits.
Result<Fitted> fit(std::span<const PageSide> sides, const PageTables& whole, const view::Choices& choices,
                   const ExportOptions& options, const PageSources& sources) {
  auto data = make_page_data(sides, choices, options, whole, {}, sources);
  if (!data) return fail(data);
  if (page_size(*data) <= options.page_bytes) return Fitted{*std::move(data), {}};
  const uint64_t needed = page_size(*data);
  Fitted best;
  bool fits = false;
  size_t low = 0, high = kMergeSteps;
  while (low < high) {
    const size_t step = (low + high) / 2;
    PageTables tables = whole;
    const PageMerge merge = merge_page(tables, step);
    auto merged = make_page_data(sides, choices, options, tables, merge, sources);
    if (!merged) return fail(merged);
    if (page_size(*merged) <= options.page_bytes) {
      best = {*std::move(merged), merge};
      fits = true;
      high = step;
    } else {
      low = step + 1;
    }
  }
  if (fits) return best;
  return fail(ErrorKind::output,
              fmt::format("a page of {} needs {}, and is too large even with everything merged that may be",
                          size_words(options.page_bytes), size_words(needed)),
              "give it more with --max-page-size, or choose less with --time or --thread");
}

std::string source_words(const PageSources& sources) {
  std::string words = fmt::format("the source of {} {} is in the page: {} more", sources.files,
                                  sources.files == 1 ? "file" : "files", size_words(sources.packed));
  if (sources.missing > 0) words += fmt::format("; of {} more there is none here", sources.missing);
  if (sources.left_out > 0) words += fmt::format("; {} had no room", sources.left_out);
  return words;
}

Result<void> write(std::span<const PageSide> sides, const PageTables& tables, const view::Choices& choices,
                   const ExportOptions& options, std::ostream& out) {
  const auto sources = collect_sources(tables, options.source);
  if (!sources) return fail(sources);
  auto fitted = fit(sides, tables, choices, options, *sources);
  if (!fitted) return fail(fitted);
  const PageData& data = fitted->data;
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      << "<meta http-equiv=\"Content-Security-Policy\" content=\"" << policy() << "\">\n"
      << "<meta name=\"viewport\" content=\"width=device-width\">\n"
      << "<meta name=\"color-scheme\" content=\"light dark\">\n"
      << "<link rel=\"icon\" href=\"data:,\">\n"
      << "<title>" << xml_escaped(data.title) << "</title>\n<style>" << web::page_style()
      << "</style>\n</head>\n<body>\n"
      << "<noscript>This page needs JavaScript, which is switched off here.</noscript>\n"
      << "<script type=\"application/json\" id=\"phlox-head\">" << data.head << "</script>\n"
      << "<script type=\"text/plain\" id=\"phlox-columns\">" << data.columns << "</script>\n"
      << "<script id=\"phlox-script\">" << web::page_script() << "</script>\n</body>\n</html>\n";
  if (options.remarks != nullptr && fitted->merge.window > 0) {
    options.remarks->push_back(
        fmt::format("the page would be larger than {}: within {} the order of what a thread did is lost{}; "
                    "--max-page-size allows more",
                    size_words(options.page_bytes), weight_words(fitted->merge.window, view::Weight::wall),
                    fitted->merge.rare_share > 0 ? ", and rare stacks lack their inner frames" : ""));
  }
  if (options.notes != nullptr && options.source) options.notes->push_back(source_words(*sources));
  return {};
}

}  // namespace

Result<void> write_page(const profile::Profile& profile, const view::Choices& choices,
                        const ExportOptions& options, std::ostream& out) {
  const auto tables = make_page_tables(profile, choices, options.with_inherited);
  if (!tables) return fail(tables);
  const PageSide sides[] = {{&profile, {}}};
  return write(sides, *tables, choices, options, out);
}

Result<void> write_diff_page(const profile::Profile& before, const profile::Profile& after,
                             const view::Choices& choices, const ExportOptions& options, std::ostream& out) {
  const auto before_tables = make_page_tables(before, choices);
  if (!before_tables) return fail(before_tables);
  const auto after_tables = make_page_tables(after, choices);
  if (!after_tables) return fail(after_tables);
  const PageSide sides[] = {{&before, "before"}, {&after, "after"}};
  return write(sides, combine_pages(*before_tables, *after_tables, before.threads().size()), choices, options,
               out);
}

}  // namespace phlox::exporters
