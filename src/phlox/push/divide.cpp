#include "phlox/push/divide.h"

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <vector>

#include "phlox/push/gzip.h"

namespace phlox::push {
namespace {

constexpr size_t kLargestBody = size_t{256} << 20;

}  // namespace

std::optional<std::pair<std::string, std::string>> divided(std::string_view body, uint32_t carried_field) {
  const bool compressed = body.starts_with("\x1f\x8b");
  const auto plain = compressed ? gunzip(body, kLargestBody) : std::string(body);
  if (!plain) return {};
  std::vector<protozero::data_view> carried;
  std::string rest;
  try {
    protozero::pbf_writer others(rest);
    for (protozero::pbf_reader message(*plain); message.next();) {
      const auto tag = message.tag();
      if (tag != carried_field && message.wire_type() == protozero::pbf_wire_type::varint) {
        others.add_uint64(tag, message.get_uint64());
        continue;
      }
      if (message.wire_type() != protozero::pbf_wire_type::length_delimited) return {};
      const auto view = message.get_view();
      if (tag == carried_field) {
        carried.push_back(view);
      } else {
        others.add_bytes(tag, view);
      }
    }
  } catch (const protozero::exception&) {
    return {};
  }
  if (carried.size() < 2) return {};
  std::pair<std::string, std::string> halves;
  protozero::pbf_writer first(halves.first), second(halves.second);
  for (size_t i = 0; i < carried.size(); ++i)
    (i < carried.size() / 2 ? first : second).add_bytes(carried_field, carried[i]);
  for (std::string* half : {&halves.first, &halves.second}) {
    *half += rest;
    if (compressed) *half = gzip(*half);
  }
  return halves;
}

}  // namespace phlox::push
