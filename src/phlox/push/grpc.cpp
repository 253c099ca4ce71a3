#include "phlox/push/grpc.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <protozero/pbf_reader.hpp>

#include "phlox/base/encodings.h"
#include "phlox/base/text.h"
#include "phlox/push/gzip.h"

namespace phlox::push {
namespace {

constexpr size_t kFramePrefix = 5;  // whether it is compressed, and its size as four bytes

// google.rpc.Status and RetryInfo, google.protobuf.Any and Duration.
constexpr protozero::pbf_tag_type kStatusDetails = 3, kAnyType = 1, kAnyValue = 2, kRetryDelay = 1,
                                  kDurationSeconds = 1, kDurationNanos = 2;
constexpr std::string_view kRetryInfo = "google.rpc.RetryInfo";

std::optional<std::string_view> header_in(const http::Answer& answer, std::string_view name) {
  const auto found = std::find_if(answer.headers.begin(), answer.headers.end(),
                                  [&](const http::Header& one) { return lower_case(one.name) == name; });
  if (found == answer.headers.end()) return {};
  return found->value;
}

Nanoseconds duration_of(protozero::pbf_reader duration) {
  constexpr int64_t kMostSeconds = 1'000'000;
  int64_t seconds = 0, nanos = 0;
  while (duration.next()) {
    if (duration.tag() == kDurationSeconds && duration.wire_type() == protozero::pbf_wire_type::varint) {
      seconds = duration.get_int64();
    } else if (duration.tag() == kDurationNanos && duration.wire_type() == protozero::pbf_wire_type::varint) {
      nanos = duration.get_int32();
    } else {
      duration.skip();
    }
  }
  return std::clamp<int64_t>(seconds, 0, kMostSeconds) * kSecond + std::clamp<int64_t>(nanos, 0, kSecond - 1);
}

std::optional<Nanoseconds> delay_in(protozero::pbf_reader any) {
  std::string_view type;
  protozero::data_view value;
  while (any.next()) {
    if (any.wire_type() != protozero::pbf_wire_type::length_delimited) {
      any.skip();
      continue;
    }
    const auto tag = any.tag();
    const protozero::data_view view = any.get_view();
    if (tag == kAnyType) type = {view.data(), view.size()};
    if (tag == kAnyValue) value = view;
  }
  if (!type.ends_with(kRetryInfo)) return {};
  protozero::pbf_reader info(value);
  if (!info.next(kRetryDelay, protozero::pbf_wire_type::length_delimited)) return {};
  return duration_of(info.get_message());
}

std::optional<Nanoseconds> retry_delay(std::string_view details) {
  const std::string bytes = base64_decoded(details);
  try {
    protozero::pbf_reader status(bytes);
    while (status.next(kStatusDetails, protozero::pbf_wire_type::length_delimited)) {
      if (const auto delay = delay_in(status.get_message())) return delay;
    }
  } catch (const protozero::exception&) {
    return {};
  }
  return {};
}

}  // namespace

std::string grpc_frame(std::string_view message, bool compressed) {
  std::string frame(1, compressed ? '\1' : '\0');
  for (int shift = 24; shift >= 0; shift -= 8)
    frame += static_cast<char>(static_cast<uint32_t>(message.size()) >> shift & 0xff);
  frame += message;
  return frame;
}

std::optional<GrpcStatus> grpc_status(const http::Answer& answer) {
  const auto code = header_in(answer, "grpc-status");
  if (!code) return {};
  GrpcStatus status;
  constexpr int kUnknown = 2;  // also for what is no number
  status.code = parse_number<int>(*code).value_or(kUnknown);
  status.words = percent_decoded(header_in(answer, "grpc-message").value_or(""));
  if (const auto details = header_in(answer, "grpc-status-details-bin"))
    status.retry_after = retry_delay(*details);
  return status;
}

std::optional<std::string> grpc_message(std::string_view body) {
  if (body.size() < kFramePrefix) return {};
  size_t size = 0;
  for (size_t i = 1; i < kFramePrefix; ++i) size = size << 8 | static_cast<unsigned char>(body[i]);
  if (body.size() - kFramePrefix < size) return {};
  const std::string_view message = body.substr(kFramePrefix, size);
  constexpr size_t kMost = size_t{1} << 20;
  return body.front() == '\0' ? std::string(message) : gunzip(message, kMost);
}

}  // namespace phlox::push
