#include "phlox/mcp/fitted.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/text.h"

namespace phlox::mcp {
namespace {

struct Step {
  size_t items, letters;
};
constexpr Step kSteps[] = {{1000, 4000}, {300, 1000}, {100, 300}, {50, 300}, {30, 200},
                           {20, 200},    {10, 200},   {5, 120},   {3, 120},  {1, 80}};

void shorten(Json& value, const Step& step, const std::string& name, std::vector<std::string>& cut,
             bool says) {
  if (value.is(Json::Kind::string) && value.text().size() > step.letters)
    value = std::string(start_of(value.text(), step.letters)) + "…";
  if (value.is(Json::Kind::array) && value.items().size() > step.items) {
    if (says) cut.push_back(fmt::format("{}: {} of {}", name, step.items, value.items().size()));
    value.items().resize(step.items);
  }
  // Of lists within lists one sentence is enough, and it is at the outer one's place.
  for (size_t i = 0; i < value.items().size(); ++i) {
    const bool member = value.is(Json::Kind::object);
    shorten(value.items()[i], step, member ? value.keys()[i] : name, cut, says && member);
  }
}

}  // namespace

Json fitted(Json value, size_t most, std::vector<std::string>& cut) {
  const size_t size = write_json(value).size();
  if (size <= most) return value;
  for (const Step& step : kSteps) {
    Json shorter = value;
    std::vector<std::string> said;
    shorten(shorter, step, "rows", said, true);
    if (write_json(shorter).size() > most) continue;
    cut.insert(cut.end(), said.begin(), said.end());
    cut.push_back(
        fmt::format("the result is {} bytes; lists within it have at most {} entries, texts {} bytes", size,
                    step.items, step.letters));
    return shorter;
  }
  cut.push_back(fmt::format("the whole result: it is {} bytes", size));
  return Json::object();
}

std::string fitted_text(std::string text, size_t most, std::vector<std::string>& cut) {
  if (text.size() <= most) return text;
  const size_t line = text.rfind('\n', most - 1);
  cut.push_back(fmt::format("the text is {} bytes; these are the first", text.size()));
  return std::string(line == std::string::npos ? start_of(text, most)
                                               : std::string_view(text).substr(0, line + 1));
}

}  // namespace phlox::mcp
