// What a wait was for, in words. What a recording says of it is a row of `awaited` (docs/recording.md). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// In recordings and for programs: "socket".
std::string_view awaited_key(AwaitedKind kind);
// One that is not known: other.
AwaitedKind awaited_kind(std::string_view key);

// Which one: "10.0.0.5:5432", "a client of 127.0.0.1:8000", "/var/log/app.log". Empty: that is not known.
// `everything`: with who has the other end, and a process's number, by which many that are alike differ.
enum class AwaitedDetail { alike, everything };
std::string awaited_words(const Awaited& awaited, AwaitedDetail detail = AwaitedDetail::everything);

// "worker.py (4712)" without its number.
std::string_view without_number(std::string_view process);

// Those of a recording that are alike, numbered; 0: nothing that is known.
class AlikeAwaited {
 public:
  struct Group {
    AwaitedKind kind = AwaitedKind::other;
    std::string words;
  };
  explicit AlikeAwaited(const Profile& profile);
  uint32_t of(AwaitedId id) const { return id.value < groups_of_.size() ? groups_of_[id.value] : 0; }
  const Group& operator[](uint32_t group) const { return groups_[group]; }

 private:
  std::vector<uint32_t> groups_of_;  // by id
  std::vector<Group> groups_;
};

}  // namespace phlox::profile
