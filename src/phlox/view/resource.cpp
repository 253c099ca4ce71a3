#include "phlox/view/resource.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "phlox/base/encodings.h"
#include "phlox/base/text.h"

namespace phlox::view {

using namespace profile;

namespace {

// Of what a process says about itself: it may be anybody's.
constexpr size_t kMostAttributes = 32, kLongestAttribute = 256, kLongestResource = 8192;

using ResourcePairs = std::vector<std::pair<std::string, std::string>>;

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The first of each key counts.
ResourcePairs parse_resource(std::string_view text) {
  ResourcePairs pairs;
  text = start_of(text, kLongestResource);
  while (!text.empty() && pairs.size() < kMostAttributes) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    std::string key = percent_decoded(without_blanks(part.substr(0, equals)));
    std::string value = percent_decoded(without_blanks(part.substr(equals + 1)));
    if (key.empty() || key.size() > kLongestAttribute) continue;
    const bool known = std::any_of(pairs.begin(), pairs.end(), [&](const auto& p) { return p.first == key; });
    if (!known) pairs.emplace_back(std::move(key), start_of(value, kLongestAttribute));
  }
  return pairs;
}

std::string meta_of(const Profile& profile, const std::string& key) {
  const auto found = profile.meta().find(key);
  return found == profile.meta().end() ? std::string() : found->second;
}

// 8-4-4-4-12 hexadecimal digits, or 32 of them, as a static pod's uid has.
std::string pod_uid(std::string_view text) {
  constexpr size_t kDashed = 36, kPlain = 32;
  std::string uid;
  for (const char c : text.substr(0, kDashed)) {
    const bool dash_here = uid.size() == 8 || uid.size() == 13 || uid.size() == 18 || uid.size() == 23;
    if ((c == '-' || c == '_') && dash_here) {
      uid += '-';
    } else if (std::isxdigit(static_cast<unsigned char>(c))) {
      uid += c;
    } else {
      break;
    }
  }
  const auto dashes = std::count(uid.begin(), uid.end(), '-');
  if (uid.size() == kDashed && dashes == 4) return uid;
  return uid.size() == kPlain && dashes == 0 ? uid : std::string();
}

class ResourceRows {
 public:
  void add(std::string key, std::string text) {
    if (!text.empty()) put({std::move(key), std::move(text), {}});
  }
  void add(std::string key, int64_t number) { put({std::move(key), "", number}); }
  std::vector<Attribute> take() { return std::move(rows_); }

 private:
  void put(Attribute row) {
    const bool known =
        std::any_of(rows_.begin(), rows_.end(), [&](const Attribute& one) { return one.key == row.key; });
    if (!known) rows_.push_back(std::move(row));
  }
  std::vector<Attribute> rows_;
};

}  // namespace

OwnService own_service(const Profile& profile, ProcessId process) {
  OwnService service;
  for (const auto& [key, value] :
       parse_resource(meta_of(profile, fmt::format("{}{}", kResource, process.value)))) {
    if (key == "service.name") service.name = value;
    if (key == "service.version") service.version = value;
    if (key == "deployment.environment.name") service.environment = value;
    // Its name before version 1.27 of the semantic conventions.
    if (key == "deployment.environment" && service.environment.empty()) service.environment = value;
  }
  return service;
}

std::string service_words(const Profile& profile) {
  constexpr size_t kMost = 4;
  std::map<OwnService, size_t> services;
  for (uint32_t id = 1; id <= profile.processes().size(); ++id) {
    const OwnService service = own_service(profile, ProcessId(id));
    if (!service.name.empty()) ++services[service];
  }
  std::vector<std::pair<size_t, OwnService>> most;
  for (const auto& [service, processes] : services) most.emplace_back(processes, service);
  std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string words;
  for (size_t i = 0; i < std::min(kMost, most.size()); ++i) {
    const auto& [processes, service] = most[i];
    words += (i > 0 ? "; " : most.size() > 1 ? "Services: " : "Service: ") + service.name;
    if (!service.version.empty()) words += ", version " + service.version;
    if (!service.environment.empty()) words += ", in " + service.environment;
    if (processes < profile.processes().size())
      words += fmt::format(" ({} process{})", processes, processes == 1 ? "" : "es");
  }
  if (most.size() > kMost) words += fmt::format("; and {} more", most.size() - kMost);
  return words;
}

std::string script_name(const Process& process) {
  const std::string_view line = process.command_line;
  size_t at = line.find(' ');
  const std::string_view first = line.substr(0, at);
  std::string program(base_name(first.empty() ? std::string_view(process.executable) : first));
  if (program.ends_with(':')) program.pop_back();  // "gunicorn: worker [shop]"
  // A link to Python may have any name; a title, as gunicorn's, is no path.
  const bool is_link = first.find('/') != std::string_view::npos && first.back() != ':' &&
                       base_name(process.executable).starts_with("python");
  if (!is_link && !lower_case(program).starts_with("py")) return program;  // gunicorn, uwsgi
  while (at != std::string_view::npos) {
    const size_t begin = at + 1, end = line.find(' ', begin);
    const std::string_view word = line.substr(begin, end == std::string_view::npos ? end : end - begin);
    at = end;
    // Options of Python with a value of their own: the next word.
    if (word == "-X" || word == "-W" || word == "--check-hash-based-pycs") {
      at = end == std::string_view::npos ? end : line.find(' ', end + 1);
      continue;
    }
    if (word == "-m") continue;
    if (word == "-c" || word == "-") return program;
    if (!word.empty() && word.front() != '-') return std::string(base_name(word));
  }
  return program;
}

std::string pod_of_group(std::string_view path) {
  for (size_t at = path.find("pod"); at != std::string_view::npos; at = path.find("pod", at + 1)) {
    if (std::string uid = pod_uid(path.substr(at + 3)); !uid.empty()) return uid;
  }
  return {};
}

std::string unit_of_group(std::string_view path) {
  constexpr std::string_view kService = ".service";
  std::string_view unit;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    // That of a user's session is no service of its own.
    if (part.ends_with(kService) && part.size() > kService.size() && !part.starts_with("user@")) unit = part;
  }
  return std::string(unit);
}

std::vector<Attribute> resource_of(const Profile& profile, ProcessId id) {
  if (!id || id.value > profile.processes().size()) return {};
  const Process& process = profile.process(id);
  const std::string group = meta_of(profile, fmt::format("control_group.{}", process.pid));
  const std::string container = meta_of(profile, fmt::format("container.{}", process.pid));
  // The runtime of containers is itself a service.
  const std::string unit = container.empty() ? unit_of_group(group) : std::string();
  const ResourcePairs own = parse_resource(meta_of(profile, fmt::format("{}{}", kResource, id.value)));
  const ResourcePairs of_host = parse_resource(meta_of(profile, std::string(kHostResource)));

  ResourceRows rows;
  for (const auto& [key, value] : own) {
    if (key == "service.name") rows.add(key, value);
  }
  rows.add("service.name", unit.substr(0, unit.rfind('.')));
  rows.add("service.name", script_name(process));
  // What Phlox sees itself counts more than what the process says.
  if (process.pid != 0) rows.add("process.pid", int64_t{process.pid});
  rows.add("process.executable.name", std::string(base_name(process.executable)));
  if (!process.python_version.empty()) {
    rows.add("process.runtime.name", std::string("cpython"));
    rows.add("process.runtime.version", process.python_version);
    if (process.python_build != "default") rows.add("process.runtime.description", process.python_build);
  }
  // In a container the name of the host is another one.
  for (const auto& [key, value] : of_host) {
    if (key == "host.name") rows.add(key, value);
  }
  rows.add("host.name", meta_of(profile, "host"));
  rows.add("container.id", container);
  rows.add("k8s.pod.uid", pod_of_group(group));
  rows.add("systemd.unit", unit);
  for (const auto& [key, value] : own) rows.add(key, value);
  for (const auto& [key, value] : of_host) {
    if (!key.starts_with("service.") && !key.starts_with("process.")) rows.add(key, value);
  }
  return rows.take();
}

}  // namespace phlox::view
