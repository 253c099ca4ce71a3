#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "phlox/base/text.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/values.h"
#include "phlox/recording/query.h"
#include "phlox/report/json_text.h"
#include "phlox/report/table.h"

namespace phlox::cli {
namespace {

constexpr size_t kMostRows = 1'000'000;  // 4 MB of values are fewer
constexpr size_t kWidestValue = 200;     // in a table

std::string cell_of(const recording::QueryValue& value, size_t& too_wide) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{:.9g}", *real);
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return "NULL";
  if (text->size() > kWidestValue) ++too_wide;
  return report::plain(shortened(*text, kWidestValue));
}

std::string table_of(const recording::QueryAnswer& answer, size_t& too_wide) {
  report::Table table;
  for (size_t i = 0; i < answer.columns.size(); ++i) {
    const bool number = !answer.rows.empty() && !std::holds_alternative<std::string>(answer.rows.front()[i]);
    table.columns.push_back({report::plain(answer.columns[i]), number});
  }
  for (const auto& row : answer.rows) {
    std::vector<std::string> cells;
    for (const recording::QueryValue& value : row) cells.push_back(cell_of(value, too_wide));
    table.rows.push_back(std::move(cells));
  }
  return report::table_text(table);
}

void write_value(report::JsonText& json, std::string_view name, const recording::QueryValue& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) {
    json.integer(name, *whole);
  } else if (const auto* real = std::get_if<double>(&value)) {
    json.number(name, *real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    json.text(name, *text);
  } else {
    json.nothing(name);
  }
}

// A column may be named as another one is: then with its number.
std::vector<std::string> names_of(const recording::QueryAnswer& answer) {
  std::vector<std::string> names;
  for (const std::string& column : answer.columns) {
    std::string name = column;
    for (size_t number = 2; std::find(names.begin(), names.end(), name) != names.end(); ++number)
      name = fmt::format("{}:{}", column, number);
    names.push_back(std::move(name));
  }
  return names;
}

std::string json_of(const recording::QueryAnswer& answer) {
  const std::vector<std::string> names = names_of(answer);
  return report::JsonText::document([&](report::JsonText& json) {
    json.text("format", "phlox query");
    json.integer("version", 1);
    json.texts("columns", names);
    json.objects("rows", answer.rows, [&](const auto& row) {
      for (size_t i = 0; i < row.size(); ++i) write_value(json, names[i], row[i]);
    });
    json.truth("has_more", answer.has_more);
    json.count("shortened_values", answer.shortened_values);
  });
}

Result<void> run_query(const QueryArguments& a, Talk& talk) {
  if (a.file.empty() || a.sql.empty())
    return fail(ErrorKind::usage, a.file.empty() ? "query which recording?" : "query: no SELECT was given",
                "phlox query app.phlox 'SELECT * FROM function_total LIMIT 20'");
  recording::QueryLimits limits;
  if (!a.rows.empty()) {
    const auto rows = parse_count("--rows", a.rows);
    if (!rows) return fail(rows);
    limits.rows = std::min(*rows, kMostRows);
  }
  const auto answer = recording::query(a.file, a.sql, limits);
  if (!answer) return fail(answer);
  size_t too_wide = 0;
  const std::string table = a.json && !talk.wants_text() ? "" : table_of(*answer, too_wide);
  auto output = OutputFile::open("-", {.inputs = {a.file}, .text = true});
  if (!output) return fail(output);
  (*output)->stream() << (a.json ? json_of(*answer) : table);
  if (auto done = (*output)->commit(); !done) return done;
  if (a.json && talk.wants_text()) talk.text(table);
  if (answer->has_more)
    talk.warn(fmt::format("there are more rows than these {}; --rows N, a WHERE or a LIMIT chooses others",
                          answer->rows.size()));
  if (answer->shortened_values > 0)
    talk.warn(fmt::format("{} values are longer than {} bytes and were shortened", answer->shortened_values,
                          limits.value_bytes));
  if (!a.json && too_wide > 0)
    talk.note(
        fmt::format("{} values are longer than {} bytes: --json has more of them", too_wide, kWidestValue));
  return {};
}

}  // namespace

int query(const CommandLine& line, Talk& talk) {
  return status_of(run_query(line.query, talk), talk);
}

}  // namespace phlox::cli
