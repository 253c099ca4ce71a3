// What libraries.py calls in the C++ library: containers, algorithms, streams, a thrown exception, and a call
// back into Python.
#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {
int sort_with(int (*call_back)(int), int count) {
  std::vector<std::string> words;
  for (int i = 0; i < count; ++i) words.push_back(std::to_string(i * 7919 % 1000));
  std::stable_sort(words.begin(), words.end(),
                   [&](const auto& a, const auto& b) { return call_back(1) == 2 && a < b; });
  std::map<std::string, int> found;
  for (const auto& word : words) ++found[word];
  std::ostringstream out;
  for (const auto& [word, times] : found) out << word << ' ' << times * 0.5 << '\n';
  const std::string text = out.str();
  const std::regex pattern("([0-9]+) 0\\.5");
  if (std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()) < 0)
    throw std::logic_error(text);
  throw std::runtime_error(text);
}
}  // namespace

extern "C" int work(int (*call_back)(int)) {
  try {
    return sort_with(call_back, 300);
  } catch (const std::runtime_error& error) {
    return static_cast<int>(std::string(error.what()).size());
  }
}
