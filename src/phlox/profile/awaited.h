// What a wait was for, in words. What a recording says of it is a row of `awaited` (docs/recording.md). Pure.
#pragma once

#include <string>
#include <string_view>

#include "phlox/profile/model.h"

namespace phlox::profile {

// In recordings and for programs: "socket".
std::string_view awaited_key(AwaitedKind kind);
// One that is not known: other.
AwaitedKind awaited_kind(std::string_view key);

// Which one: "10.0.0.5:5432", "a client of 127.0.0.1:8000", "/var/log/app.log". Empty: that is not known.
// `everything`: with who has the other end, and a process's number, by which many that are alike differ.
enum class AwaitedDetail { alike, everything };
std::string awaited_words(const Awaited& awaited, AwaitedDetail detail = AwaitedDetail::everything);

}  // namespace phlox::profile
