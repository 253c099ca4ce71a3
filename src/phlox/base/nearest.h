// The known words that an unknown one may have meant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace phlox {

// Letters to insert, remove, replace or swap with their neighbour to turn one into the other.
inline size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(above, row);
  }
  return above[b.size()];
}

// The nearest words, the most likely first. Allows one wrong letter in three, and a word that stops early.
inline std::vector<std::string> nearest(std::string_view word, std::span<const std::string> words,
                                        size_t most = 1) {
  constexpr size_t kLongest = 200;  // longer ones are no typing error, and cost the square of it
  std::vector<std::pair<size_t, std::string>> found;
  for (const std::string& candidate : words) {
    if (word.size() > kLongest || candidate.size() > kLongest) continue;
    const bool begun = word.size() >= 3 && candidate.starts_with(word);
    const size_t apart = begun ? 1 : letters_apart(word, candidate);
    if (apart <= std::max<size_t>(1, std::min(word.size(), candidate.size()) / 3))
      found.emplace_back(apart, candidate);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(most, found.size()); ++i) names.push_back(found[i].second);
  return names;
}

}  // namespace phlox
