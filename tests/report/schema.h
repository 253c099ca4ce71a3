// Whether a JSON text is what docs/json says it is.
#pragma once

#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/schema.h>
#include <rapidjson/stringbuffer.h>

#include <fstream>
#include <sstream>
#include <string>

#include "support/source_path.h"

namespace phlox::test {

// Empty when it holds; else what is wrong, and where.
inline std::string schema_violation(const std::string& json, const std::string& schema_name) {
  std::ifstream file(test::source_path("docs/json/" + schema_name));
  std::stringstream text;
  text << file.rdbuf();
  rapidjson::Document schema_text, document;
  if (schema_text.Parse(text.str().c_str()).HasParseError()) return schema_name + " is no JSON";
  if (document.Parse<rapidjson::kParseValidateEncodingFlag>(json.c_str()).HasParseError()) {
    return std::string("no JSON: ") + rapidjson::GetParseError_En(document.GetParseError()) + " at " +
           std::to_string(document.GetErrorOffset());
  }
  const rapidjson::SchemaDocument schema(schema_text);
  rapidjson::SchemaValidator validator(schema);
  if (document.Accept(validator)) return {};
  rapidjson::StringBuffer where;
  validator.GetInvalidDocumentPointer().StringifyUriFragment(where);
  return std::string(validator.GetInvalidSchemaKeyword()) + " at " + where.GetString();
}

}  // namespace phlox::test
