#include "phlox/process/process_context.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "phlox/base/load.h"

namespace phlox::process {
namespace {

constexpr size_t kMostContexts = 8, kMostContextBytes = size_t{64} << 10;
constexpr int kContextTries = 3;
constexpr uint32_t kContextVersion = 2;
constexpr std::string_view kContextSignature = "OTEL_CTX";
// A memfd that is named or not, and memory without a file.
constexpr std::array<std::string_view, 3> kContextNames = {"[anon_shmem:OTEL_CTX", "/memfd:OTEL_CTX",
                                                           "[anon:OTEL_CTX"};

// signature, version (4 bytes), size of the message (4), time of publication (8), address of the message (8)
using ContextHeader = std::array<std::byte, 32>;

}  // namespace

std::vector<RemoteAddress> context_mappings(const std::vector<Mapping>& maps) {
  std::vector<RemoteAddress> found;
  for (const Mapping& one : maps) {
    const bool is_named = std::any_of(kContextNames.begin(), kContextNames.end(),
                                      [&](std::string_view name) { return one.path.starts_with(name); });
    if (is_named && one.readable && found.size() < kMostContexts) found.push_back(one.start);
  }
  return found;
}

std::optional<PublishedContext> read_context(memory::RemoteMemory& memory, RemoteAddress header) {
  for (int tries = 0; tries < kContextTries; ++tries) {
    ContextHeader before, after;
    if (!memory.read(header, std::span(before))) return {};
    const std::span<const std::byte> bytes(before);
    if (std::memcmp(bytes.data(), kContextSignature.data(), kContextSignature.size()) != 0) return {};
    const auto version = load<uint32_t>(bytes, 8), size = load<uint32_t>(bytes, 12);
    if (version != kContextVersion || size > kMostContextBytes) return {};
    PublishedContext context{load<uint64_t>(bytes, 16), std::string(size, '\0')};
    const RemoteAddress message(load<uint64_t>(bytes, 24));
    if (context.published_at == 0) continue;  // it is being changed
    if (size > 0 && !memory.read(message, std::as_writable_bytes(std::span(context.message)))) continue;
    if (!memory.read(header, std::span(after))) return {};
    if (before == after) return context;
  }
  return {};
}

std::optional<PublishedContext> ContextReader::find() {
  if (header_ != RemoteAddress()) {
    if (auto context = read_context(memory_, header_)) return context;
  }
  header_ = {};
  const auto maps = read_maps(pid_);
  if (!maps) return {};
  for (const RemoteAddress at : context_mappings(*maps)) {
    auto context = read_context(memory_, at);
    if (!context) continue;
    header_ = at;
    return context;
  }
  return {};
}

std::optional<std::string> ContextReader::read_new() {
  auto context = find();
  if (!context || std::exchange(published_at_, context->published_at) == context->published_at) return {};
  return std::move(context->message);
}

}  // namespace phlox::process
