// The cases that C++ and web/ have in common: what a report or a picture says, the page says too.
#pragma once

#include <rapidjson/document.h>

#include <fstream>
#include <sstream>
#include <string>

#include "support/source_path.h"

namespace phlox::test {

// tests/cases/NAME.json; web/test reads the same file. No object: it cannot be read.
inline rapidjson::Document common_cases(const std::string& name) {
  std::ifstream file(source_path("tests/cases/" + name + ".json"));
  std::stringstream text;
  text << file.rdbuf();
  rapidjson::Document document;
  document.Parse(text.str().c_str());
  return document;
}

}  // namespace phlox::test
