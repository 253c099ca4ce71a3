// The programs that are recorded now, in the order in which they began. Used by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "phlox/sampler/session/program_recording.h"

namespace phlox::sampler {

class ActivePrograms {
 public:
  size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  ProgramRecording& operator[](size_t index) const { return *all_[index]; }

  ProgramRecording& add(std::unique_ptr<ProgramRecording> one) { return *all_.emplace_back(std::move(one)); }
  void remove(size_t index) { all_.erase(all_.begin() + static_cast<ptrdiff_t>(index)); }
  // The first program of the process that is still here: its next one may have begun.
  std::optional<size_t> first_of(pid_t pid) const {
    const auto one = std::find_if(begin(), end(), [pid](const auto& each) { return each->pid() == pid; });
    return one == end() ? std::nullopt : std::optional(static_cast<size_t>(one - begin()));
  }
  // Empties the rings until `deadline`. Each time another one is first, so that none starves behind one that
  // has more than can be taken.
  void drain(Nanoseconds deadline) {
    for (size_t i = 0; i < size(); ++i) all_[(first_ + i) % size()]->drain(deadline);
    ++first_;
  }

 private:
  std::vector<std::unique_ptr<ProgramRecording>> all_;
  size_t first_ = 0;  // to drain
};

}  // namespace phlox::sampler
