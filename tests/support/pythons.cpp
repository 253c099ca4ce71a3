#include "support/pythons.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>

namespace phlox::test {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Output and exit status of a shell command.
std::pair<std::string, int> output_of(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"),
                                             [](FILE* f) { return f ? ::pclose(f) : 0; });
  if (!pipe) return {"", -1};
  std::string text;
  std::array<char, 65536> buffer;
  while (const size_t n = ::fread(buffer.data(), 1, buffer.size(), pipe.get())) text.append(buffer.data(), n);
  return {text, ::pclose(pipe.release())};
}

// Reads the list of tools/get-pythons.sh: name, path, how it came, version, flags. Starts no interpreter.
std::vector<Python> listed(const char* path) {
  std::ifstream list(path);
  if (!list) throw std::runtime_error(std::string("PHLOX_PYTHONS: cannot read ") + path);
  std::vector<Python> found;
  for (std::string line; std::getline(list, line);) {
    std::stringstream fields(line);
    std::string name, how, version;
    Python python;
    std::getline(fields, name, '\t');
    std::getline(fields, python.path, '\t');
    std::getline(fields, how, '\t');
    std::getline(fields, version, '\t');
    if (std::sscanf(version.c_str(), "%d.%d", &python.major, &python.minor) != 2)
      throw std::runtime_error(std::string("PHLOX_PYTHONS: no version in ") + path + ": " + line);
    for (char c : name) python.label += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    found.push_back(python);
  }
  return found;
}

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  if (const char* given = std::getenv("PHLOX_PYTHONS")) {
    std::stringstream list(given);
    for (std::string path; std::getline(list, path, ':');) {
      if (!path.empty()) paths.push_back(path);
    }
    return paths;
  }
  const char* root = std::getenv("PYENV_ROOT");
  const char* home = std::getenv("HOME");
  const fs::path versions =
      root ? fs::path(root) / "versions" : fs::path(home ? home : "/root") / ".pyenv/versions";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(versions, error))
    paths.push_back(entry.path() / "bin/python");
  paths.push_back("/usr/bin/python3");
  return paths;
}

std::vector<Python> started() {
  std::vector<Python> found;
  std::set<fs::path> seen;
  for (const std::string& path : candidates()) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error || !seen.insert(real).second) continue;
    const auto [text, status] =
        output_of(quoted(path) + " -c 'import sys; print(\"%d %d %d\" % sys.version_info[:3])' 2>/dev/null");
    Python python;
    int micro = 0;
    if (status != 0 || std::sscanf(text.c_str(), "%d %d %d", &python.major, &python.minor, &micro) != 3)
      continue;
    python.path = path;
    python.label =
        std::to_string(python.major) + "_" + std::to_string(python.minor) + "_" + std::to_string(micro);
    for (const Python& other : found) {
      if (other.label == python.label) python.label += "_" + std::to_string(found.size());
    }
    found.push_back(python);
  }
  return found;
}

std::vector<Python> find_pythons() {
  const char* given = std::getenv("PHLOX_PYTHONS");
  std::vector<Python> found = given && std::string_view(given).ends_with(".list") ? listed(given) : started();
  std::sort(found.begin(), found.end(), [](const Python& a, const Python& b) {
    return std::tie(a.major, a.minor, a.label) < std::tie(b.major, b.minor, b.label);
  });
  return found;
}

}  // namespace

const std::vector<Python>& pythons() {
  static const std::vector<Python> all = find_pythons();
  return all;
}

std::string run_python(const Python& python, const std::vector<std::string>& arguments) {
  std::string command = quoted(python.path);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  auto [text, status] = output_of(command);
  EXPECT_EQ(status, 0) << command;
  return status == 0 ? text : std::string();
}

}  // namespace phlox::test
