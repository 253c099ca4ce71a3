#include "phlox/process/waits_for.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>

#include "phlox/base/address.h"
#include "phlox/base/system_call_numbers.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/process/thread_probe.h"

namespace phlox::process {
namespace {

template <class Calls>
bool is_among(const Calls& calls, int64_t number) {
  return is_call(calls, number, kOnAarch64);
}

// Their first argument is the descriptor that they wait for.
constexpr SystemCall kOfDescriptor[] = {system_call("read"),
                                        system_call("write"),
                                        system_call("close"),
                                        system_call("ioctl"),
                                        system_call("pread64"),
                                        system_call("pwrite64"),
                                        system_call("readv"),
                                        system_call("writev"),
                                        system_call("sendfile"),
                                        system_call("connect"),
                                        system_call("accept"),
                                        system_call("sendto"),
                                        system_call("recvfrom"),
                                        system_call("sendmsg"),
                                        system_call("recvmsg"),
                                        system_call("fcntl"),
                                        system_call("flock"),
                                        system_call("fsync"),
                                        system_call("fdatasync"),
                                        system_call("ftruncate"),
                                        system_call("getdents64"),
                                        system_call("epoll_wait"),
                                        system_call("splice"),
                                        system_call("tee"),
                                        system_call("sync_file_range"),
                                        system_call("vmsplice"),
                                        system_call("epoll_pwait"),
                                        system_call("fallocate"),
                                        system_call("accept4"),
                                        system_call("preadv"),
                                        system_call("pwritev"),
                                        system_call("recvmmsg"),
                                        system_call("sendmmsg"),
                                        system_call("preadv2"),
                                        system_call("pwritev2"),
                                        system_call("io_uring_enter"),
                                        system_call("epoll_pwait2")};
constexpr SystemCall kPoll[] = {system_call("poll"), system_call("ppoll")};
constexpr SystemCall kSelect[] = {system_call("select"), system_call("pselect6")};
constexpr SystemCall kWait4[] = {system_call("wait4")};
constexpr SystemCall kWaitid[] = {system_call("waitid")};
// P_PID, P_PIDFD of include/uapi/linux/wait.h.
constexpr uint64_t kByNumber = 1, kByDescriptor = 3;

constexpr size_t kMostSelected = 256, kMostPolled = 1'000'000;

// Names the highest descriptor, which must be in one of the sets. If it is not, the caller passed a count
// larger than needed; that case is not examined.
WaitsFor of_select(const BlockedIn& call, memory::RemoteMemory& memory) {
  const uint64_t most = call.arguments[0];
  const auto sets = std::span(call.arguments).subspan(1, 3);
  if (most == 0 || std::all_of(sets.begin(), sets.end(), [](uint64_t set) { return set == 0; }))
    return {.kind = WaitsFor::Kind::time};
  if (most > kMostSelected) return {};
  std::array<uint64_t, kMostSelected / 64> seen{};
  for (const uint64_t set : sets) {
    std::array<uint64_t, kMostSelected / 64> here{};
    const auto words = std::span(here).first(static_cast<size_t>(most + 63) / 64);
    if (set == 0) continue;
    if (!memory.read(RemoteAddress(set), std::as_writable_bytes(words))) return {};
    for (size_t i = 0; i < seen.size(); ++i) seen[i] |= here[i];
  }
  int count = 0;
  for (const uint64_t word : seen) count += std::popcount(word);
  if (count == 0) return {.kind = WaitsFor::Kind::time};
  if ((seen[(most - 1) / 64] >> (most - 1) % 64 & 1) == 0) return {};
  return {WaitsFor::Kind::descriptor, static_cast<int32_t>(most - 1), count - 1};
}

WaitsFor of_poll(const BlockedIn& call, memory::RemoteMemory& memory) {
  const uint64_t count = call.arguments[1];
  int32_t descriptor = -1;  // first field of struct pollfd
  if (count == 0) return {.kind = WaitsFor::Kind::time};
  if (count > kMostPolled || !memory.read_value(RemoteAddress(call.arguments[0]), descriptor) ||
      descriptor < 0)
    return {};
  return {WaitsFor::Kind::descriptor, descriptor, static_cast<int32_t>(count - 1)};
}

}  // namespace

bool stands_in_memory(const BlockedIn& call) {
  return is_among(kPoll, call.number) || is_among(kSelect, call.number);
}

WaitsFor waits_for(const BlockedIn& call, memory::RemoteMemory& memory) {
  const auto descriptor = [](uint64_t number) {
    const auto value = static_cast<int32_t>(number);
    return value >= 0 ? WaitsFor{WaitsFor::Kind::descriptor, value, 0} : WaitsFor{};
  };
  const auto child = [](uint64_t number) {
    const auto value = static_cast<int32_t>(number);
    return value > 0 ? WaitsFor{WaitsFor::Kind::child, value, 0} : WaitsFor{};
  };
  if (call.running) return {};
  if (is_among(kOfDescriptor, call.number)) return descriptor(call.arguments[0]);
  if (is_among(kWait4, call.number)) return child(call.arguments[0]);
  if (is_among(kSelect, call.number)) return of_select(call, memory);
  if (is_among(kPoll, call.number)) return of_poll(call, memory);
  if (is_among(kWaitid, call.number)) {
    if (call.arguments[0] == kByNumber) return child(call.arguments[1]);
    if (call.arguments[0] == kByDescriptor) return descriptor(call.arguments[1]);
  }
  return {};
}

}  // namespace phlox::process
