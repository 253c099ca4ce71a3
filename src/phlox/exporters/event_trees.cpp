#include "phlox/exporters/event_trees.h"

#include <utility>

#include "phlox/view/await_time.h"
#include "phlox/view/shown_event.h"

namespace phlox::exporters {

Result<std::vector<EventTree>> other_events(const profile::Profile& profile, const view::Choices& choices) {
  std::vector<EventTree> out;
  const auto events = profile::sampled_events(profile);
  const std::vector<bool> there = view::sampled_but_not_shown(profile);
  for (size_t i = 0; i < events.size(); ++i) {
    if (!there[i]) continue;
    // Without a name it is thread time next to await time: it was not requested.
    if (events[i].name.empty()) continue;
    const auto number = static_cast<uint16_t>(i + 1);
    view::Choices wanted = choices;
    wanted.weight = view::weight_of(events[i].unit);
    if (wanted.weight == view::Weight::wall && choices.weight == view::Weight::cpu &&
        events[i].name != view::kAwaitTime)
      wanted.weight = view::Weight::cpu;
    auto tree = view::build_call_tree_of_event(profile, wanted, number);
    if (!tree) return fail(tree);
    if (tree->total > 0) out.push_back({events[i], *std::move(tree)});
  }
  return out;
}

}  // namespace phlox::exporters
