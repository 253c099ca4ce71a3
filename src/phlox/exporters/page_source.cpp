#include "phlox/exporters/page_source.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "phlox/exporters/page_columns.h"
#include "phlox/exporters/words.h"

namespace phlox::exporters {
namespace {

constexpr size_t kMostFiles = 500;  // more than anyone opens; a recording of all imports names thousands
constexpr size_t kMostBytes = size_t{16} << 20;  // of text: 4 MB in a page, a sixth of its limit

// As for names, but line by line: tabs and line ends are part of the text.
std::string displayable_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\t\n\r"), text.size());
    out += displayable(text.substr(0, end));
    if (end < text.size() && text[end] != '\r') out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Files that have a sampled line, those with the most self time first.
std::vector<std::string> files_by_time(const PageTables& tables) {
  std::vector<Nanoseconds> self(tables.places.size(), 0);
  for (const PageSpan& span : tables.spans) self[tables.nodes[span.node].place] += span.wall + 1;
  std::map<std::string, Nanoseconds> times;
  for (size_t i = 0; i < tables.places.size(); ++i) {
    const PagePlace& place = tables.places[i];
    const std::string& file = place.file.empty() ? tables.functions[place.function].label.file : place.file;
    if (place.line > 0 && !file.empty()) times[file] += self[i];
  }
  std::vector<std::pair<std::string, Nanoseconds>> rows(times.begin(), times.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> files;
  files.reserve(rows.size());
  for (auto& [file, time] : rows) files.push_back(std::move(file));
  return files;
}

}  // namespace

Result<PageSources> collect_sources(const PageTables& tables, const SourceOf& source) {
  PageSources sources;
  if (!source) return sources;
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> json(buffer);
  const auto put = [&](std::string_view text) {
    json.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
  };
  size_t bytes = 0;
  json.StartArray();
  for (const std::string& file : files_by_time(tables)) {
    if (sources.files == kMostFiles) {
      ++sources.left_out;
      continue;
    }
    const auto text = source(file);
    if (!text) {
      ++sources.missing;
    } else if (bytes + text->size() > kMostBytes) {
      ++sources.left_out;
    } else {
      ++sources.files;
      bytes += text->size();
      json.StartArray();
      put(displayable(file));  // as in the page's table of functions
      put(displayable_lines(*text));
      json.EndArray();
    }
  }
  json.EndArray();
  sources.json.assign(buffer.GetString(), buffer.GetSize());
  auto packed = deflated(sources.json);
  if (!packed) return fail(packed);
  sources.packed = packed->size() * 4 / 3;
  return sources;
}

}  // namespace phlox::exporters
