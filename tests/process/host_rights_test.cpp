#include "phlox/process/host_rights.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

namespace phlox::process {
namespace {

constexpr const char* kRetry = "record -p 4711";

uint64_t bit(Capability capability) {
  return uint64_t{1} << static_cast<unsigned>(capability);
}

// An ordinary user of an ordinary machine.
HostRights user() {
  HostRights host;
  host.uid = {1000, 1000, 1000, 1000};
  host.perf_paranoid = 2;
  return host;
}

TEST(HostRights, capabilities_of_a_user_namespace_do_not_count) {
  HostRights host = user();
  host.capabilities = bit(Capability::sys_nice);
  EXPECT_TRUE(host.counts(Capability::sys_nice));
  EXPECT_FALSE(host.has(Capability::perfmon));
  host.initial_user_namespace = false;
  EXPECT_TRUE(host.has(Capability::sys_nice));
  EXPECT_FALSE(host.counts(Capability::sys_nice));
}

TEST(HostRights, no_right_to_real_time) {
  const auto why = explain_no_real_time(user(), EPERM, kRetry);
  EXPECT_EQ(why.reason, "no CAP_SYS_NICE, and RLIMIT_RTPRIO is 0");
  EXPECT_EQ(why.hint, "sudo phlox record -p 4711, or for this shell: sudo prlimit --rtprio=1 --pid $$");
}

TEST(HostRights, a_right_to_real_time_that_does_not_count) {
  HostRights host = user();
  host.capabilities = bit(Capability::sys_nice);
  host.initial_user_namespace = false;
  EXPECT_NE(explain_no_real_time(host, EPERM, kRetry).reason.find("does not count"), std::string::npos);
}

TEST(HostRights, a_group_without_a_real_time_budget) {
  HostRights host = user();
  host.capabilities = bit(Capability::sys_nice);
  host.real_time_group = 0;
  EXPECT_NE(explain_no_real_time(host, EPERM, kRetry).reason.find("cpu.rt_runtime_us"), std::string::npos);
  host.real_time_group = 950000;
  EXPECT_EQ(explain_no_real_time(host, EPERM, kRetry).reason.find("cpu.rt_runtime_us"), std::string::npos);
}

TEST(HostRights, a_filter_where_everything_else_allows_it) {
  HostRights host = user();
  host.most_real_time = 1;
  host.seccomp = 2;
  EXPECT_NE(explain_no_real_time(host, EPERM, kRetry).reason.find("seccomp"), std::string::npos);
  EXPECT_NE(explain_no_event(host, {"perf_event_open", EPERM}, kRetry).reason.find("seccomp"),
            std::string::npos);
  host.seccomp = 0;
  EXPECT_NE(explain_no_event(host, {"perf_event_open", EACCES}, kRetry).reason.find("security module"),
            std::string::npos);
}

TEST(HostRights, a_container_gets_a_hint_how_to_start_it) {
  HostRights host = user();
  host.in_container = true;
  host.uid = {};
  EXPECT_NE(explain_no_real_time(host, EPERM, kRetry).hint.find("--cap-add SYS_NICE"), std::string::npos);
  EXPECT_EQ(advise_kernel_events(host, kRetry).find("sysctl"), std::string::npos);
  EXPECT_NE(advise_kernel_events(host, kRetry).find("--cap-add PERFMON"), std::string::npos);
  host.seccomp = 2;
  EXPECT_NE(explain_no_event(host, {"perf_event_open", EPERM}, kRetry).hint.find("--security-opt"),
            std::string::npos);
}

TEST(HostRights, events_refused_by_the_kernels_paranoia) {
  HostRights host = user();
  host.perf_paranoid = 4;
  const auto why = explain_no_event(host, {"perf_event_open", EACCES}, kRetry);
  EXPECT_EQ(why.reason,
            "kernel.perf_event_paranoid is 4: only CAP_PERFMON may have any (perf_event_open, errno 13)");
  EXPECT_EQ(why.hint, "sudo phlox record -p 4711, or for all: sudo sysctl kernel.perf_event_paranoid=2");
  host.capabilities = bit(Capability::perfmon);
  EXPECT_EQ(explain_no_event(host, {"perf_event_open", EACCES}, kRetry).reason.find("paranoid"),
            std::string::npos);
}

TEST(HostRights, a_kernel_without_events) {
  HostRights host = user();
  EXPECT_NE(explain_no_event(host, {"perf_event_open", ENOSYS}, kRetry).reason.find("has no perf events"),
            std::string::npos);
  host.perf_paranoid.reset();
  EXPECT_NE(explain_no_event(host, {"perf_event_open", EPERM}, kRetry).reason.find("has no perf events"),
            std::string::npos);
}

TEST(HostRights, no_memory_to_lock) {
  EXPECT_NE(explain_no_event(user(), {"mmap", EPERM}, kRetry).reason.find("RLIMIT_MEMLOCK"),
            std::string::npos);
}

TEST(HostRights, ours_are_read) {
  const HostRights host = read_host_rights();
  EXPECT_EQ(host.uid.effective, ::geteuid());
}

}  // namespace
}  // namespace phlox::process
