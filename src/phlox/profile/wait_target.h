// Wait targets in words. The recording's table `awaited` (docs/recording.md) has a row for each. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// In recordings and for programs: "socket".
std::string_view wait_target_key(WaitTargetKind kind);
// An unknown key: other.
WaitTargetKind wait_target_kind(std::string_view key);

// Names the wait target: "10.0.0.5:5432", "a client of 127.0.0.1:8000", "/var/log/app.log". Empty: not known.
// `everything`: includes the other end and a process's number, in which many similar targets differ.
enum class WaitTargetDetail { alike, everything };
std::string wait_target_words(const WaitTarget& wait_target,
                              WaitTargetDetail detail = WaitTargetDetail::everything);

// "worker.py (4712)" without its number.
std::string_view without_number(std::string_view process);

// Groups of similar wait targets in a recording, numbered; 0: nothing is known.
class WaitTargetGroups {
 public:
  struct Group {
    WaitTargetKind kind = WaitTargetKind::other;
    std::string words;
  };
  explicit WaitTargetGroups(const Profile& profile);
  uint32_t of(WaitTargetId id) const { return id.value < groups_of_.size() ? groups_of_[id.value] : 0; }
  const Group& operator[](uint32_t group) const { return groups_[group]; }

 private:
  std::vector<uint32_t> groups_of_;  // by id
  std::vector<Group> groups_;
};

}  // namespace phlox::profile
