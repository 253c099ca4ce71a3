#include "phlox/exporters/page_loops.h"

#include <algorithm>

#include "phlox/profile/loop_stalls.h"
#include "phlox/profile/loops_and_pools.h"
#include "phlox/profile/wait_class.h"

namespace phlox::exporters {
namespace {

constexpr size_t kMostWords = 3;      // of each kind
constexpr size_t kMostStalls = 1000;  // for all loops

std::string words_of(const profile::Profile& profile, const profile::LoopTime& loop,
                     const std::vector<profile::LoopStalls>& stalls) {
  std::string words = profile::loop_sentence(profile, loop);
  for (const profile::LoopStalls& one : stalls) {
    const std::string more = one.thread == loop.thread ? profile::stalls_words(profile, one) : "";
    if (!more.empty()) words += ". " + more;
  }
  return words;
}

}  // namespace

PageLoops loops_of_page(const profile::Profile& profile, profile::Choices choices) {
  PageLoops page;
  // Regardless of what the page shows first.
  choices.show = profile::Show::everything;
  const auto filter = profile::SampleFilter::make_judging(profile, choices);
  if (!filter) return page;
  const auto stalls = profile::loop_stalls(profile, *filter, profile::kStall);
  for (const profile::LoopTime& loop : profile::loop_times(profile, *filter)) {
    if (page.words.size() == kMostWords) break;
    page.words.push_back(words_of(profile, loop, stalls));
  }
  const size_t most = page.words.size() + kMostWords;
  for (const profile::BusyPool& pool : profile::busy_pools(profile, *filter)) {
    if (page.words.size() == most) break;
    page.words.push_back(profile::busy_pool_words(profile, pool));
  }
  profile::WaitClasses classes(profile);
  for (const profile::LoopStalls& loop : stalls) {
    for (const profile::Stall& stall : loop.rows) {
      page.stalls.push_back({loop.thread, stall.start, stall.wall, profile::stall_length(stall),
                             profile::stall_place(profile, stall.frame),
                             profile::stall_words(profile, classes, stall), loop.exact, stall.is_one_turn(),
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
