#include "phlox/sampler/session/context_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "phlox/process/own_attributes.h"
#include "phlox/profile/recorded_words.h"

namespace phlox::sampler {
namespace {

// At once, in all processes: those whose files never answer stay.
constexpr int kMostSearches = 8;
std::atomic<int> searches{0};

}  // namespace

// Files of the process may never answer, and the recorder's thread must not wait for them. Whoever still
// searches when the recorder ends has its own share of this.
struct ContextWatch::Search {
  explicit Search(pid_t pid) : files(pid) {}
  process::ThreadContextSearch files;
  std::optional<process::ThreadVariable> found;
  std::atomic<bool> runs{false};

  static bool begin(const std::shared_ptr<Search>& search) {
    if (searches.fetch_add(1) >= kMostSearches) {
      searches.fetch_sub(1);
      return false;
    }
    search->runs = true;
    std::thread([search] {
      search->found = search->files.find();
      search->runs = false;
      searches.fetch_sub(1);
    }).detach();
    return true;
  }
};

ContextWatch::ContextWatch(pid_t pid, profile::ProcessId id, const std::string& environment,
                           profile::Sink& sink)
    : pid_(pid),
      id_(id),
      environment_(process::environment_attributes(environment)),
      sink_(sink),
      reader_(pid) {}

// What it publishes counts more than its environment: its SDK has read that, and the program's own settings.
void ContextWatch::put(const std::string& published) {
  const bool both = !published.empty() && !environment_.empty();
  std::string text = published + (both ? "," : "") + environment_;
  if (text == put_) return;
  sink_.emit_meta(fmt::format("{}{}", profile::kResource, id_.value), text);
  put_ = std::move(text);
}

std::optional<process::ThreadVariable> ContextWatch::look(Nanoseconds now) {
  if (now >= due_) {
    pause_ = std::min(2 * pause_, kLongest);
    due_ = now + pause_;
    if (const auto message = reader_.read_new()) {
      put(process::context_attributes(*message));
      if (process::publishes_traces(*message) && !search_) search_ = std::make_shared<Search>(pid_);
    } else if (put_.empty()) {
      put("");
    }
    // The dynamic linker may not have resolved it the last time.
    if (search_ && !has_variable_ && !search_->runs && !search_->found) Search::begin(search_);
  }
  if (!search_ || has_variable_ || search_->runs || !search_->found) return {};
  has_variable_ = true;
  return search_->found;
}

}  // namespace phlox::sampler
