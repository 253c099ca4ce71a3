#include "phlox/exporters/page_loops.h"

#include <algorithm>

#include "phlox/view/loop_stalls.h"
#include "phlox/view/loops_and_pools.h"
#include "phlox/view/wait_class.h"

namespace phlox::exporters {
namespace {

constexpr size_t kMostWords = 3;      // of each kind
constexpr size_t kMostStalls = 1000;  // for all loops

std::string words_of(const profile::Profile& profile, const view::LoopTime& loop,
                     const std::vector<view::LoopStalls>& stalls) {
  std::string words = view::loop_sentence(profile, loop);
  for (const view::LoopStalls& one : stalls) {
    const std::string more = one.thread == loop.thread ? view::stalls_words(profile, one) : "";
    if (!more.empty()) words += ". " + more;
  }
  return words;
}

}  // namespace

PageLoops loops_of_page(const profile::Profile& profile, view::Choices choices) {
  PageLoops page;
  // Regardless of what the page shows first.
  choices.show = view::Show::everything;
  const auto filter = view::SampleFilter::make_judging(profile, choices);
  if (!filter) return page;
  const auto stalls = view::loop_stalls(profile, *filter, view::kStall);
  for (const view::LoopTime& loop : view::loop_times(profile, *filter)) {
    if (page.words.size() == kMostWords) break;
    page.words.push_back(words_of(profile, loop, stalls));
  }
  const size_t most = page.words.size() + kMostWords;
  for (const view::BusyPool& pool : view::busy_pools(profile, *filter)) {
    if (page.words.size() == most) break;
    page.words.push_back(view::busy_pool_words(profile, pool));
  }
  view::WaitClasses classes(profile);
  for (const view::LoopStalls& loop : stalls) {
    for (const view::Stall& stall : loop.rows) {
      page.stalls.push_back({loop.thread, stall.start, stall.wall, view::stall_length(stall),
                             view::stall_place(profile, stall.frame),
                             view::stall_words(profile, classes, stall), loop.exact, stall.is_one_turn(),
                             static_cast<int64_t>(stall.callbacks)});
    }
  }
  std::stable_sort(page.stalls.begin(), page.stalls.end(),
                   [](const PageStall& a, const PageStall& b) { return a.wall > b.wall; });
  if (page.stalls.size() > kMostStalls) page.stalls.resize(kMostStalls);
  return page;
}

void put_stall(Json& json, int64_t thread, const PageStall& stall) {
  json.open('{');
  json.number("thread", thread);
  json.number("start", stall.start);
  json.number("wall", stall.wall);
  json.text("length", stall.length);
  json.key("exact");
  json.truth(stall.exact);
  json.key("oneTurn");
  json.truth(stall.one_turn);
  json.text("place", stall.place);
  json.text("words", stall.words);
  json.number("callbacks", stall.callbacks);
  json.close('}');
}

}  // namespace phlox::exporters
