#include "phlox/process/container.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace phlox::process {
namespace {

const std::string kId = "4d216b14a0c40e23de0a7aae3a289f3e4d216b14a0c40e23de0a7aae3a289f3e";
const std::string kOther = "00006b14a0c40e23de0a7aae3a289f3e4d216b14a0c40e23de0a7aae3a289f3e";

TEST(Container, groups_of_the_engines) {
  for (const std::string& path : {
           "/docker/" + kId, "/system.slice/docker-" + kId + ".scope",
           "/machine.slice/libpod-" + kId + ".scope/container",
           "/kubepods/burstable/pod0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f/" + kId,
           "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_0a1b.slice/"
           "cri-containerd-" +
               kId + ".scope",
           "/system.slice/containerd.service/kubepods-burstable-pod0a1b.slice:cri-containerd:" + kId,
           "/kubepods.slice/kubepods-pod0a1b.slice/crio-" + kId + ".scope/app/worker",
           "/ecs/0123456789abcdef0123456789abcdef/" + kId, "/../cri-containerd-" + kId + ".scope",
           "/docker/" + kOther + "/docker/" + kId,  // one in another: the inner one
       }) {
    EXPECT_EQ(container_of_group(path), kId) << path;
  }
  EXPECT_EQ(container_of_group("/ecs/0123456789abcdef0123456789abcdef-1234567890"),
            "0123456789abcdef0123456789abcdef-1234567890");
  EXPECT_EQ(container_of_group("/lxc/web/init.scope"), "web");
  EXPECT_EQ(container_of_group("/lxc.payload.web-1/system.slice/app.service"), "web-1");
  EXPECT_EQ(container_of_group("/machine.slice/machine-debian\\x2dtree.scope/payload"), "debian-tree");
}

TEST(Container, other_groups_are_none) {
  for (const std::string& path :
       {std::string("/"), std::string(""), std::string("/user.slice/user-1000.slice/session-3.scope"),
        std::string("/system.slice/docker.service"), "/x/" + kId + "ab", "/x/" + kId.substr(1),
        "/machine.slice/libpod-conmon-" + kId + ".scope", std::string("/machine-.scope")}) {
    EXPECT_EQ(container_of_group(path), "") << path;
  }
}

TEST(Container, the_group_that_names_it_or_the_one_that_says_most) {
  const Container named =
      parse_container("4:memory:/docker/" + kId + "\n3:cpu:/\n0::/system.slice/app.service\n");
  EXPECT_EQ(named.id, kId);
  EXPECT_EQ(named.control_group, "/docker/" + kId);
  EXPECT_EQ(
      parse_container("0::/system.slice/app.service\n4:memory:/a/longer/path/of/version/one\n").control_group,
      "/system.slice/app.service");
  EXPECT_EQ(parse_container("0::/\n4:memory:/work\n").control_group, "/work");
  EXPECT_EQ(parse_container("0::/\n").control_group, "/");
  EXPECT_EQ(parse_container("").control_group, "");
}

TEST(Container, seen_from_within_by_what_is_mounted_there) {
  const std::string before = "600 590 254:1 /var/lib/docker/containers/" + kOther +
                             "/resolv.conf /etc/resolv.conf rw - ext4 /dev/vda rw\n";
  EXPECT_EQ(container_of_mounts(before + "601 590 254:1 /var/lib/docker/containers/" + kId +
                                "/hostname /etc/hostname rw - ext4 /dev/vda rw\n"),
            kId);
  // Podman's.
  EXPECT_EQ(container_of_mounts("601 590 0:24 /containers/storage/overlay-containers/" + kId +
                                "/userdata/hostname /etc/hostname rw - tmpfs tmpfs rw\n"),
            kId);
  EXPECT_EQ(container_of_mounts("601 590 0:24 /containers/ /etc/hostname rw\nnonsense"), "");
}

TEST(Container, a_process_names_its_own_namespace) {
  const auto space = find_pid_namespace(std::to_string(::getpid()));
  ASSERT_TRUE(space) << space.error().message;
  EXPECT_TRUE(space->name.starts_with("pid:[")) << space->name;
  EXPECT_EQ(find_within(std::to_string(::getpid()), ::getpid()), ::getpid());
  const auto nobody = find_within(std::to_string(::getpid()), 0x3fffff + 1);
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().kind, ErrorKind::no_such_process);
  EXPECT_EQ(find_pid_namespace(kId.substr(0, 12)).error().kind, ErrorKind::no_such_process);
}

}  // namespace
}  // namespace phlox::process
