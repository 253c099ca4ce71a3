#include "phlox/target/awaits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <iterator>
#include <span>

#include "phlox/base/address.h"

namespace phlox::target {
namespace {

#ifdef __aarch64__
constexpr bool kArm = true;
#else
constexpr bool kArm = false;
#endif

struct Call {
  int16_t x86_64;   // arch/x86/entry/syscalls/syscall_64.tbl
  int16_t aarch64;  // include/uapi/asm-generic/unistd.h; -1: not there
};
template <size_t N>
bool is_among(const Call (&calls)[N], int64_t number) {
  return number >= 0 && std::any_of(std::begin(calls), std::end(calls), [number](const Call& call) {
           return number == (kArm ? call.aarch64 : call.x86_64);
         });
}

// Whose first argument is what they wait for: read, write, close, ioctl, pread64, pwrite64, readv, writev,
// sendfile, connect, accept, sendto, recvfrom, sendmsg, recvmsg, fcntl, flock, fsync, fdatasync, ftruncate,
// getdents64, epoll_wait, splice, tee, sync_file_range, vmsplice, epoll_pwait, fallocate, accept4, preadv,
// pwritev, recvmmsg, sendmmsg, preadv2, pwritev2, io_uring_enter, epoll_pwait2.
constexpr Call kOfDescriptor[] = {
    {0, 63},    {1, 64},    {3, 57},    {16, 29},   {17, 67},   {18, 68},  {19, 65},  {20, 66},
    {40, 71},   {42, 203},  {43, 202},  {44, 206},  {45, 207},  {46, 211}, {47, 212}, {72, 25},
    {73, 32},   {74, 82},   {75, 83},   {77, 46},   {217, 61},  {232, -1}, {275, 76}, {276, 77},
    {277, 84},  {278, 75},  {281, 22},  {285, 47},  {288, 242}, {295, 69}, {296, 70}, {299, 243},
    {307, 269}, {327, 286}, {328, 287}, {426, 426}, {441, 441}};
constexpr Call kPoll[] = {{7, -1}, {271, 73}};     // poll, ppoll
constexpr Call kSelect[] = {{23, -1}, {270, 72}};  // select, pselect6
constexpr Call kWait4[] = {{61, 260}};
constexpr Call kWaitid[] = {{247, 95}};
// P_PID, P_PIDFD of include/uapi/linux/wait.h.
constexpr uint64_t kByNumber = 1, kByDescriptor = 3;

constexpr size_t kMostSelected = 256, kMostPolled = 1'000'000;

// The last before the number that comes first is in one of its sets, or the caller gives more than it has to;
// that is not looked into.
Awaits of_select(const BlockedIn& call, memory::RemoteMemory& memory) {
  const uint64_t most = call.arguments[0];
  const auto sets = std::span(call.arguments).subspan(1, 3);
  if (most == 0 || std::all_of(sets.begin(), sets.end(), [](uint64_t set) { return set == 0; }))
    return {.kind = Awaits::Kind::time};
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
  if (count == 0) return {.kind = Awaits::Kind::time};
  if ((seen[(most - 1) / 64] >> (most - 1) % 64 & 1) == 0) return {};
  return {Awaits::Kind::descriptor, static_cast<int32_t>(most - 1), count - 1};
}

Awaits of_poll(const BlockedIn& call, memory::RemoteMemory& memory) {
  const uint64_t count = call.arguments[1];
  int32_t descriptor = -1;  // the first of struct pollfd
  if (count == 0) return {.kind = Awaits::Kind::time};
  if (count > kMostPolled || !memory.read_value(RemoteAddress(call.arguments[0]), descriptor) ||
      descriptor < 0)
    return {};
  return {Awaits::Kind::descriptor, descriptor, static_cast<int32_t>(count - 1)};
}

}  // namespace

bool stands_in_memory(const BlockedIn& call) {
  return is_among(kPoll, call.number) || is_among(kSelect, call.number);
}

Awaits awaits_of(const BlockedIn& call, memory::RemoteMemory& memory) {
  const auto descriptor = [](uint64_t number) {
    const auto value = static_cast<int32_t>(number);
    return value >= 0 ? Awaits{Awaits::Kind::descriptor, value, 0} : Awaits{};
  };
  const auto child = [](uint64_t number) {
    const auto value = static_cast<int32_t>(number);
    return value > 0 ? Awaits{Awaits::Kind::child, value, 0} : Awaits{};
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

}  // namespace phlox::target
