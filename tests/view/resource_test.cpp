#include "phlox/view/resource.h"

#include <gtest/gtest.h>

#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

using namespace std::string_literals;

std::string text_of(const std::vector<Attribute>& attributes) {
  std::string text;
  for (const Attribute& one : attributes)
    text += one.key + "=" + (one.number ? std::to_string(*one.number) : one.text) + "\n";
  return text;
}

Process of_command(std::string command) {
  Process process;
  process.executable = "/usr/bin/python3.11";
  process.command_line = std::move(command);
  return process;
}

TEST(Resource, the_name_of_a_service_is_the_best_that_is_known) {
  Profile profile;
  test::ProfileMaker make(profile);
  Process row = of_command("python3 /srv/shop.py --port 80");
  row.pid = 71;
  profile.emit(ProcessId(1), row);
  EXPECT_EQ(resource_of(profile, ProcessId(1))[0].text, "shop.py");
  profile.emit_meta("control_group.71", "/system.slice/shop-web.service");
  EXPECT_EQ(resource_of(profile, ProcessId(1))[0].text, "shop-web");
  profile.emit_meta("resource.1", "a=b,service.name=shop%3D1");
  EXPECT_EQ(resource_of(profile, ProcessId(1))[0], (Attribute{"service.name", "shop=1", {}}));
}

TEST(Resource, what_phlox_sees_counts_more_than_what_a_process_says) {
  Profile profile;
  Process row = of_command("python3 a.py secret");
  row.pid = 71;
  row.python_version = "3.12.1";
  row.python_build = "default";
  profile.emit(ProcessId(1), row);
  profile.emit_meta("host", "here");
  profile.emit_meta("container.71", "c0ffee");
  profile.emit_meta("control_group.71",
                    "/system.slice/containerd.service/kubepods-burstable-pod"
                    "0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-c0ffee.scope");
  profile.emit_meta("resource.1", "host.name=elsewhere,process.pid=1,service.version=3,,=x,novalue");
  EXPECT_EQ(text_of(resource_of(profile, ProcessId(1))),
            "service.name=a.py\nprocess.pid=71\nprocess.executable.name=python3.11\n"
            "process.runtime.name=cpython\nprocess.runtime.version=3.12.1\nhost.name=here\n"
            "container.id=c0ffee\nk8s.pod.uid=0a1b2c3d-1111-2222-3333-444455556666\nservice.version=3\n");
  EXPECT_TRUE(resource_of(profile, ProcessId()).empty());
  EXPECT_TRUE(resource_of(profile, ProcessId(2)).empty());
}

TEST(Resource, what_the_agent_says_of_the_host_is_of_every_process) {
  Profile profile;
  Process row = of_command("python3 a.py");
  row.pid = 71;
  profile.emit(ProcessId(1), row);
  profile.emit_meta("host", "phlox-agent-x7k2p");
  profile.emit_meta("host_resource",
                    "host.name=node-7,k8s.node.name=node-7,cloud.region=r,service.name=agent,process.pid=1");
  profile.emit_meta("resource.1", "cloud.region=own,host.name=elsewhere");
  EXPECT_EQ(text_of(resource_of(profile, ProcessId(1))),
            "service.name=a.py\nprocess.pid=71\nprocess.executable.name=python3.11\nhost.name=node-7\n"
            "cloud.region=own\nk8s.node.name=node-7\n");
}

TEST(Resource, what_a_process_says_has_limits) {
  Profile profile;
  profile.emit(ProcessId(1), of_command("python3 a.py"));
  std::string many;
  for (int i = 0; i < 1000; ++i)
    many += "k" + std::to_string(i) + "=" + std::string(i == 0 ? 5000 : 1, 'v') + ",";
  profile.emit_meta("resource.1", many);
  const auto attributes = resource_of(profile, ProcessId(1));
  EXPECT_LE(attributes.size(), 40U);
  for (const Attribute& one : attributes) EXPECT_LE(one.text.size(), 256U) << one.key;
}

TEST(Resource, script_names) {
  EXPECT_EQ(script_name(of_command("python3 -X dev -u /srv/shop.py --port 80")), "shop.py");
  EXPECT_EQ(script_name(of_command("/usr/bin/python3 -m celery worker")), "celery");
  EXPECT_EQ(script_name(of_command("python3 -c print(1)")), "python3");
  EXPECT_EQ(script_name(of_command("/opt/app/bin/interpreter-3.11 -u /srv/shop.py")), "shop.py");
  EXPECT_EQ(script_name(of_command("/srv/app/worker: busy")), "worker");
  EXPECT_EQ(script_name(of_command("gunicorn: worker [shop]")), "gunicorn");
  Process uwsgi = of_command("/usr/sbin/uwsgi --ini a.ini");
  uwsgi.executable = "/usr/sbin/uwsgi";
  EXPECT_EQ(script_name(uwsgi), "uwsgi");
  EXPECT_EQ(script_name(of_command("python3")), "python3");
  EXPECT_EQ(script_name(of_command("")), "python3.11");
  EXPECT_EQ(script_name(of_command("python3 -X")), "python3");
}

TEST(Resource, groups) {
  EXPECT_EQ(pod_of_group("/kubepods/besteffort/pod0a1b2c3d-1111-2222-3333-444455556666/abc"),
            "0a1b2c3d-1111-2222-3333-444455556666");
  EXPECT_EQ(pod_of_group("/kubepods.slice/kubepods-pod00112233445566778899aabbccddeeff.slice"),
            "00112233445566778899aabbccddeeff");
  EXPECT_EQ(pod_of_group("/machine.slice/libpod-0a1b2c3d.scope"), "");
  EXPECT_EQ(pod_of_group("/kubepods/pod12"), "");
  EXPECT_EQ(unit_of_group("/system.slice/system-shop.slice/shop@1.service"), "shop@1.service");
  EXPECT_EQ(unit_of_group("/user.slice/user-1000.slice/user@1000.service/app.slice/app.scope"), "");
  EXPECT_EQ(unit_of_group("/"), "");
}

TEST(Resource, a_sentence_names_the_services_of_the_processes) {
  Profile profile;
  EXPECT_EQ(service_words(profile), "");
  for (uint32_t id = 1; id <= 3; ++id) profile.emit(ProcessId(id), of_command("python3 /srv/shop.py"));
  EXPECT_EQ(service_words(profile), "");
  profile.emit_meta("resource.1", "service.name=shop,service.version=7,deployment.environment=prod");
  EXPECT_EQ(service_words(profile), "Service: shop, version 7, in prod (1 process)");
  profile.emit_meta("resource.2", "service.name=jobs");
  profile.emit_meta("resource.3", "service.name=jobs");
  EXPECT_EQ(service_words(profile), "Services: jobs (2 processes); shop, version 7, in prod (1 process)");
  profile.emit_meta("resource.1", "service.name=jobs");
  EXPECT_EQ(service_words(profile), "Service: jobs");
}

}  // namespace
}  // namespace phlox::view
