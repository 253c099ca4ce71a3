#include "phlox/base/system_call_numbers.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <map>
#include <string>

namespace phlox {
namespace {

#define HAS(name) EXPECT_EQ(system_call(#name).number(kOnAarch64), SYS_##name) << #name

// As the C library's headers have them: so each machine proves its own column.
TEST(SystemCallNumbers, are_those_of_this_machine) {
  HAS(read);
  HAS(write);
  HAS(readv);
  HAS(writev);
  HAS(pread64);
  HAS(pwrite64);
  HAS(preadv);
  HAS(pwritev);
  HAS(preadv2);
  HAS(pwritev2);
  HAS(openat);
  HAS(openat2);
  HAS(close);
  HAS(fsync);
  HAS(fdatasync);
  HAS(sync_file_range);
  HAS(msync);
  HAS(ppoll);
  HAS(pselect6);
  HAS(epoll_pwait);
  HAS(epoll_pwait2);
  HAS(futex);
#ifdef SYS_futex_wake
  HAS(futex_wake);
#endif
  HAS(nanosleep);
  HAS(clock_nanosleep);
  HAS(rt_sigsuspend);
  HAS(rt_sigtimedwait);
  HAS(wait4);
  HAS(waitid);
  HAS(accept);
  HAS(accept4);
  HAS(connect);
  HAS(sendto);
  HAS(recvfrom);
  HAS(sendmsg);
  HAS(recvmsg);
  HAS(sendmmsg);
  HAS(recvmmsg);
  HAS(sendfile);
  HAS(splice);
  HAS(tee);
  HAS(vmsplice);
  HAS(copy_file_range);
  HAS(io_getevents);
  HAS(io_pgetevents);
  HAS(io_uring_enter);
  HAS(flock);
  HAS(fcntl);
  HAS(ioctl);
  HAS(getdents64);
  HAS(fstat);
  HAS(newfstatat);
  HAS(statx);
  HAS(unlinkat);
  HAS(renameat2);
  HAS(mkdirat);
  HAS(mmap);
  HAS(munmap);
  HAS(mprotect);
  HAS(mremap);
  HAS(madvise);
  HAS(brk);
  HAS(sched_yield);
  HAS(mq_timedsend);
  HAS(mq_timedreceive);
  HAS(msgsnd);
  HAS(msgrcv);
  HAS(semop);
  HAS(semtimedop);
  HAS(getrandom);
  HAS(inotify_add_watch);
  HAS(fallocate);
  HAS(ftruncate);
  HAS(clone);
  HAS(clone3);
  HAS(execve);
  HAS(exit_group);
  HAS(restart_syscall);
  HAS(process_vm_readv);
  HAS(membarrier);
  HAS(userfaultfd);
}

#undef HAS

TEST(SystemCallNumbers, that_aarch64_lacks_are_those_that_have_a_younger_form) {
#ifdef SYS_poll
  EXPECT_EQ(system_call("poll").number(kOnAarch64), SYS_poll);
#else
  EXPECT_EQ(system_call("poll").number(kOnAarch64), -1);
#endif
  EXPECT_EQ(system_call("epoll_wait").number(true), -1);
}

TEST(SystemCallNumbers, each_number_is_in_the_table_once) {
  for (const bool on_aarch64 : {false, true}) {
    std::map<int, std::string> seen;
    for (const SystemCall& call : kSystemCalls) {
      const int number = call.number(on_aarch64);
      if (number < 0) continue;
      EXPECT_TRUE(seen.emplace(number, call.name).second) << call.name << " is " << seen[number] << " too";
    }
  }
}

}  // namespace
}  // namespace phlox
