// gRPC, as far as one request with one answer needs it: the frame around a message, and the status after it.
// github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "phlox/base/clock.h"
#include "phlox/http/http.h"

namespace phlox::push {

// The beginning of the names of gRPC's headers and trailers.
inline constexpr std::string_view kGrpcHeaders = "grpc-";

// `message` may be gzipped: then the request has the header grpc-encoding.
std::string grpc_frame(std::string_view message, bool compressed);

struct GrpcStatus {
  int code = 0;
  std::string words;
  std::optional<Nanoseconds> retry_after;  // google.rpc.RetryInfo
};
// None: it is no answer of gRPC.
std::optional<GrpcStatus> grpc_status(const http::Answer& answer);
// What the body of an answer carries; none: it is cut off, or no frame.
std::optional<std::string> grpc_message(std::string_view body);

}  // namespace phlox::push
