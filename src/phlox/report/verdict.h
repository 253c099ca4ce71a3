// What a comparison says of one item, in words (comparison.h). Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "phlox/report/comparison.h"

namespace phlox::report {

enum class Question : uint8_t { recordings, runs };

// same, unclear, less, more: comparison.h. Of recordings, `appeared`: only in AFTER.
enum class Verdict { same, unclear, grew, shrank, appeared, vanished };

bool is_certain(Verdict verdict);
Verdict verdict_of(const Comparison& found, const Amount& before, const Amount& after);
// "inconclusive", "grew"; the same word in text and JSON.
std::string_view verdict_name(Verdict verdict, Question question);

}  // namespace phlox::report
