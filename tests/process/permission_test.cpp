#include "phlox/process/permission.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

namespace phlox::process {
namespace {

constexpr uint64_t kSysPtrace = uint64_t{1} << 19;

Ids all(uint32_t id) {
  return {id, id, id, id};
}

// Two processes of user 60001: each may read the other.
PermissionFacts neighbours() {
  PermissionFacts f;
  f.pid = 4711;
  f.our_uid = f.our_gid = f.uid = f.gid = all(60001);
  f.dumpable = true;
  f.other_user_namespace = false;
  return f;
}

PermissionCheck check_of(const PermissionFacts& f) {
  const Refusal refusal = explain_refusal(f, "record -p 4711");
  EXPECT_FALSE(refusal.reason.empty());
  EXPECT_FALSE(refusal.hint.empty());
  return refusal.check;
}

TEST(Permission, another_user) {
  PermissionFacts f = neighbours();
  f.uid = all(60002);
  EXPECT_EQ(check_of(f), PermissionCheck::user);
  EXPECT_EQ(explain_refusal(f, "record -p 4711").reason, "it runs as user 60002, phlox as user 60001");
  EXPECT_EQ(explain_refusal(f, "record -p 4711").hint, "sudo phlox record -p 4711");
  f.in_container = true;
  EXPECT_EQ(explain_refusal(f, "record -p 4711").hint,
            "run phlox as that user: docker exec -u 60002 CONTAINER phlox record -p 4711");
}

TEST(Permission, one_of_the_three_user_ids_is_enough) {
  for (uint32_t Ids::*id : {&Ids::real, &Ids::effective, &Ids::saved}) {
    PermissionFacts f = neighbours();
    f.uid.*id = 0;
    EXPECT_EQ(check_of(f), PermissionCheck::user);
    PermissionFacts g = neighbours();
    g.gid.*id = 0;
    EXPECT_EQ(check_of(g), PermissionCheck::user);
  }
}

TEST(Permission, root_of_a_container_without_the_capability) {
  PermissionFacts f = neighbours();
  f.our_uid = f.our_gid = all(0);
  f.in_container = true;
  EXPECT_EQ(check_of(f), PermissionCheck::container);
  EXPECT_NE(explain_refusal(f, "").hint.find("--cap-add SYS_PTRACE"), std::string::npos);
}

TEST(Permission, a_capability_of_another_user_namespace_does_not_count) {
  PermissionFacts f = neighbours();
  f.our_uid = all(0);
  f.our_capabilities = kSysPtrace;
  f.other_user_namespace = true;
  EXPECT_EQ(check_of(f), PermissionCheck::user_namespace);
  PermissionFacts same_user = neighbours();
  same_user.other_user_namespace = true;
  EXPECT_EQ(check_of(same_user), PermissionCheck::user_namespace);
}

TEST(Permission, not_dumpable) {
  PermissionFacts f = neighbours();
  f.dumpable = false;
  EXPECT_EQ(check_of(f), PermissionCheck::dumpable);
  f.our_capabilities = kSysPtrace;
  EXPECT_EQ(check_of(f), PermissionCheck::security_module);
}

TEST(Permission, a_target_with_more_rights) {
  PermissionFacts f = neighbours();
  f.capabilities = uint64_t{1} << 10;
  EXPECT_EQ(check_of(f), PermissionCheck::capabilities);
  f.our_capabilities = uint64_t{1} << 10;
  EXPECT_EQ(check_of(f), PermissionCheck::security_module);
}

TEST(Permission, yama_says_which_scope) {
  PermissionFacts f = neighbours();
  f.yama_scope = 1;
  EXPECT_EQ(check_of(f), PermissionCheck::yama_descendant);
  EXPECT_NE(explain_refusal(f, "").hint.find("sysctl kernel.yama.ptrace_scope=0"), std::string::npos);
  f.descendant = true;
  EXPECT_EQ(check_of(f), PermissionCheck::security_module);
  f.yama_scope = 2;
  EXPECT_EQ(check_of(f), PermissionCheck::yama_capability);
  f.our_capabilities = kSysPtrace;
  EXPECT_EQ(check_of(f), PermissionCheck::security_module);
  f.yama_scope = 3;
  EXPECT_EQ(check_of(f), PermissionCheck::yama_off);
}

TEST(Permission, the_call_itself_is_filtered) {
  PermissionFacts f = neighbours();
  f.error = ENOSYS;
  EXPECT_EQ(check_of(f), PermissionCheck::system_call);
  PermissionFacts g = neighbours();
  g.our_seccomp = 2;
  EXPECT_EQ(check_of(g), PermissionCheck::system_call);
  g.in_container = true;
  EXPECT_EQ(check_of(g), PermissionCheck::system_call);
}

TEST(Permission, the_error_carries_call_and_number) {
  PermissionFacts f = neighbours();
  f.yama_scope = 1;
  EXPECT_EQ(permission_error(f, "record -p 4711").message,
            "cannot read memory of process 4711: kernel.yama.ptrace_scope is 1: a process may only read "
            "those that it started "
            "(process_vm_readv, errno 1)");
  EXPECT_EQ(permission_error(f, "record -p 4711").kind, ErrorKind::permission);
}

TEST(PermissionFacts, of_ourselves) {
  const auto state = read_process_state(getpid());
  ASSERT_TRUE(state);
  const PermissionFacts facts = read_permission_facts(*state);
  EXPECT_EQ(facts.our_uid, facts.uid);
  EXPECT_EQ(facts.our_uid.real, getuid());
  EXPECT_TRUE(facts.descendant);
  EXPECT_EQ(facts.other_user_namespace, false);
}

}  // namespace
}  // namespace phlox::process
