#include "phlox/profile/descendants.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "phlox/base/text.h"

namespace phlox::profile {
namespace {

// Limits for what a file may claim.
constexpr size_t kMostDescendants = 1000;
constexpr int64_t kLargestNumber = int64_t{1} << 60;

// Takes the text before the next tab, and drops the tab.
std::string_view take_field(std::string_view& text) {
  const size_t tab = text.find('\t');
  const std::string_view field = text.substr(0, tab);
  text.remove_prefix(tab == std::string_view::npos ? text.size() : tab + 1);
  return field;
}

bool take_amount(std::string_view& text, int64_t most, int64_t& into) {
  const auto value = parse_number<int64_t>(take_field(text));
  if (!value || *value < 0 || *value > most) return false;
  into = *value;
  return true;
}

bool parse_descendant(std::string_view text, Descendant& row) {
  int64_t pid = 0, parent = 0, ended = 0;
  if (!take_amount(text, INT32_MAX, pid) || !take_amount(text, INT32_MAX, parent) ||
      !take_amount(text, kLargestNumber, row.start) || !take_amount(text, kLargestNumber, row.end) ||
      !take_amount(text, kLargestNumber, row.cpu) || !take_amount(text, 1, ended))
    return false;
  row.pid = static_cast<int32_t>(pid);
  row.parent = static_cast<int32_t>(parent);
  row.ended = ended != 0;
  row.command_line = text;
  return true;
}

}  // namespace

std::vector<Descendant> descendants(const Profile& profile) {
  std::vector<Descendant> rows;
  for (size_t i = 1; i <= kMostDescendants; ++i) {
    const auto found = profile.meta().find(fmt::format("descendant.{}", i));
    if (found == profile.meta().end()) break;
    if (Descendant row; parse_descendant(found->second, row)) rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.cpu > b.cpu; });
  return rows;
}

void put_descendants(Sink& sink, const std::vector<Descendant>& rows) {
  for (size_t i = 0; i < std::min(rows.size(), kMostDescendants); ++i) {
    const Descendant& row = rows[i];
    sink.emit_meta(fmt::format("descendant.{}", i + 1),
                   fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}", row.pid, row.parent, row.start, row.end, row.cpu,
                               row.ended ? 1 : 0, row.command_line));
  }
}

std::vector<DescendantGroup> descendant_groups(const std::vector<Descendant>& rows) {
  std::vector<DescendantGroup> groups;
  for (const Descendant& row : rows) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const DescendantGroup& known) {
      return known.command_line == row.command_line && (known.processes == 0) == (row.pid == 0);
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {row.command_line, 0, 0});
    group->processes += row.pid != 0;
    group->cpu += row.cpu;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.cpu > b.cpu; });
  return groups;
}

}  // namespace phlox::profile
