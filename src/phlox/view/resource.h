// What a process is called where the profiles of many hosts are stored: the attributes of an OpenTelemetry
// resource. Never the command line, whose arguments may be secret. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/recorded_words.h"

namespace phlox::view {

// Meta with the same of the agent's own environment, for every process on this host: "host.name=node-7". Also
// only in what the agent sends.
inline constexpr std::string_view kHostResource = "host_resource";

struct Attribute {
  std::string key;
  std::string text;
  std::optional<int64_t> number = {};  // in place of the text

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

// With the names of OpenTelemetry's semantic conventions; service.name first. Every key occurs once.
std::vector<Attribute> resource_of(const profile::Profile& profile, profile::ProcessId process);

// Which service a process says it belongs to; empty members: it does not say.
struct OwnService {
  std::string name, version, environment;

  friend auto operator<=>(const OwnService&, const OwnService&) = default;
};
OwnService own_service(const profile::Profile& profile, profile::ProcessId process);
// Of all processes, in a sentence: "Services: shop, version 7, in prod (3 processes); jobs (1 process)".
// Empty: none says.
std::string service_words(const profile::Profile& profile);

// "shop.py" of "python3 -X dev /srv/shop.py --port 80"; "celery" of "python3 -m celery worker"; the
// executable's name if it is given no program.
std::string script_name(const profile::Process& process);
// From a control group's path. Empty: none.
std::string pod_of_group(std::string_view path);   // the uid of a Kubernetes pod
std::string unit_of_group(std::string_view path);  // "shop.service"

}  // namespace phlox::view
