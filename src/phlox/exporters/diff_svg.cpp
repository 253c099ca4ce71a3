#include "phlox/exporters/diff_svg.h"

#include <utility>

#include "phlox/exporters/difference.h"
#include "phlox/exporters/recording_picture.h"
#include "phlox/exporters/svg.h"
#include "phlox/exporters/words.h"
#include "phlox/view/empty_view.h"
#include "phlox/view/quality.h"
#include "phlox/view/whole_run.h"

namespace phlox::exporters {

Result<void> write_diff_svg(const profile::Profile& before, const profile::Profile& after,
                            const view::Choices& choices, const ExportOptions& options, std::ostream& out) {
  Result<view::CallTree> before_tree = view::build_call_tree(before, choices);
  if (!before_tree) return fail(before_tree);
  Result<view::CallTree> after_tree = view::build_call_tree(after, choices);
  if (!after_tree) return fail(after_tree);

  const auto before_length = static_cast<double>(view::summarize_quality(before).elapsed);
  const auto after_length = static_cast<double>(view::summarize_quality(after).elapsed);
  const bool per_second =
      before_length > 0 && after_length > 0 && !(view::is_whole_run(before) && view::is_whole_run(after));
  FlamePicture picture;
  std::string title = recording_title(after);
  if (recording_title(before) != title) title = recording_title(before) + " → " + title;
  picture.title = displayable(options.title.empty() ? "Difference: " + title : options.title);
  picture.subtitle = displayable(
      "Red: more time" + std::string(per_second ? " in each second of recording" : "") +
      " than before; blue: less; grey: not seen to differ. " + recording_subtitle(after, choices));
  for (const auto& [name, profile] : {std::pair{"before: ", &before}, std::pair{"after: ", &after}}) {
    view::QualitySummary quality = view::summarize_quality(*profile);
    picture.quality.push_back(displayable(name + view::quality_line(quality)));
    const auto empty = view::why_empty(*profile, choices);
    std::string warning = empty ? "nothing to show: " + *empty : view::quality_warning(quality);
    if (!warning.empty())
      picture.warning += (picture.warning.empty() ? "" : "; ") + displayable(name + warning);
  }
  picture.weight = choices.weight;
  Difference difference = combine(*before_tree, *after_tree, choices.by.line);
  fill_difference(picture, std::move(difference), choices.by.line,
                  per_second ? Scales{1 / before_length, 1 / after_length} : Scales{});
  write_flame_svg(picture, out);
  return {};
}

}  // namespace phlox::exporters
