#include "phlox/cli/agent_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "phlox/cli/trigger_request.h"
#include "phlox/cli/values.h"
#include "phlox/push/metrics_port.h"
#include "phlox/push/target.h"

namespace phlox::cli {
namespace {

constexpr double kAgentRate = 20;
constexpr Nanoseconds kShortestInterval = kSecond, kLongestInterval = 600 * kSecond;
constexpr uint64_t kSmallestBuffer = 1'000'000;

// Variables of OpenTelemetry's specification, "OpenTelemetry Protocol Exporter".
constexpr const char* kEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";
constexpr const char* kProtocol = "OTEL_EXPORTER_OTLP_PROTOCOL";
constexpr const char* kHeaders = "OTEL_EXPORTER_OTLP_HEADERS";
constexpr const char* kCertificate = "OTEL_EXPORTER_OTLP_CERTIFICATE";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

Result<void> add_targets(push::Protocol protocol, const std::vector<std::string>& urls,
                         std::vector<push::Target>& targets) {
  for (const std::string& url : urls) {
    auto target = push::target_of(protocol, url);
    if (!target) return fail(target);
    const bool twice =
        std::any_of(targets.begin(), targets.end(), [&](const auto& one) { return one.url == target->url; });
    if (!twice) targets.push_back(*std::move(target));
  }
  return {};
}

// Of the server that the environment names.
Result<push::Protocol> protocol_of_environment() {
  const std::string protocol = variable(kProtocol);
  if (protocol.empty() || protocol == "http/protobuf") return push::Protocol::otlp;
  if (protocol == "grpc") return push::Protocol::otlp_grpc;
  return fail(ErrorKind::usage, fmt::format("{}: phlox does not send by '{}'", kProtocol, protocol),
              "use grpc or http/protobuf");
}

Result<void> find_targets(const AgentArguments& a, AgentRequest& request) {
  const std::pair<push::Protocol, const std::vector<std::string>&> kGiven[] = {
      {push::Protocol::otlp, a.otlp},
      {push::Protocol::otlp_grpc, a.otlp_grpc},
      {push::Protocol::pyroscope, a.pyroscope},
      {push::Protocol::parca, a.parca}};
  for (const auto& [protocol, urls] : kGiven) {
    if (auto added = add_targets(protocol, urls, request.targets); !added) return added;
  }
  if (request.targets.empty() && !variable(kEndpoint).empty()) {
    const auto protocol = protocol_of_environment();
    if (!protocol) return fail(protocol);
    return add_targets(*protocol, {variable(kEndpoint)}, request.targets);
  }
  if (!request.targets.empty()) return {};
  return fail(ErrorKind::usage, "no server to send profiles to",
              "name one: phlox agent --otlp http://localhost:4318, or: phlox agent --pyroscope "
              "http://localhost:4040");
}

Result<void> find_headers(const AgentArguments& a, AgentRequest& request) {
  auto of_environment = push::parse_header_list(variable(kHeaders));
  if (!of_environment) return fail(of_environment);
  const auto of_otlp =
      std::count_if(request.targets.begin(), request.targets.end(),
                    [](const push::Target& target) { return push::is_otlp(target.protocol); });
  if (!of_environment->empty() && of_otlp > 1)
    return fail(ErrorKind::usage, fmt::format("{} does not say which server it is for", kHeaders),
                "write the headers into a file, below [URL], and name the file with --header-file");
  for (push::Target& target : request.targets) {
    if (push::is_otlp(target.protocol)) target.headers = *of_environment;
  }
  if (!a.header_file.empty()) {
    const auto text = push::read_secret_file(a.header_file);
    if (!text) return fail(text);
    const auto lines = push::parse_header_file(*text);
    if (!lines) return fail(lines);
    if (auto assigned = push::assign_headers(*lines, request.targets); !assigned) return assigned;
  }
  for (const push::Target& target : request.targets) {
    if (!target.headers.empty() && !target.encrypted && !target.loopback)
      request.warnings.push_back(
          fmt::format("the headers for {} are sent unencrypted: use https", target.shown));
  }
  return {};
}

Result<void> read_times_and_sizes(const CommandLine& line, AgentRequest& request) {
  const AgentArguments& a = line.agent;
  if (!a.interval.empty()) {
    auto interval = named(line, "--interval", parse_duration(a.interval));
    if (!interval) return fail(interval);
    if (*interval < kShortestInterval || *interval > kLongestInterval)
      return fail(ErrorKind::usage, fmt::format("--interval: {} is not between 1s and 10m", a.interval),
                  "the default is 15s");
    request.interval = *interval;
  }
  if (!a.keep.empty()) {
    auto keep = named(line, "--keep", parse_duration(a.keep));
    if (!keep) return fail(keep);
    if (a.output.empty())
      return fail(ErrorKind::usage, "--keep needs a recording", "name one with -o, or leave out --keep");
    request.keep = *keep;
  }
  if (auto used = check_trigger_use(a.triggers); !used) return used;
  auto triggers = trigger_request_of(line, a.triggers, a.output);
  if (!triggers) return fail(triggers);
  request.triggers = *std::move(triggers);
  request.recording = request.triggers ? request.triggers.recording() : a.output;
  if (request.triggers) {
    auto kept = kept_for(request.triggers, a.keep, request.keep);
    if (!kept) return fail(kept);
    request.keep = *kept;
  }
  if (!a.buffer.empty()) {
    auto bytes = named(line, "--buffer", parse_size(a.buffer));
    if (!bytes) return fail(bytes);
    if (*bytes < kSmallestBuffer)
      return fail(ErrorKind::usage, fmt::format("--buffer: {} is too small for one interval", a.buffer),
                  "use at least --buffer 1M");
    request.buffer = *bytes;
  }
  request.state = a.state.empty() ? agent_folder() : a.state;
  if (request.state.empty())
    return fail(ErrorKind::usage, "no folder for profiles that cannot be sent at once",
                "name one: --state DIR");
  if (request.state.front() != '/')
    return fail(ErrorKind::usage, fmt::format("--state: {} is not an absolute path", request.state),
                "begin the path with /");
  return {};
}

Result<void> read_recorder(const CommandLine& line, AgentRequest& request) {
  const AgentArguments& a = line.agent;
  selection::Chosen selection = a.selection;
  if (selection.name.empty() && selection.user.empty() && selection.cgroup.empty()) selection.all = true;
  auto chosen = selection::Selection::of(selection);
  if (!chosen) return fail(chosen);
  request.selection = *std::move(chosen);
  sampler::Options& recorder = request.recorder;
  recorder.rate_hz = kAgentRate;
  if (auto read = read_option(line, "--rate", a.rate, parse_rate, recorder.rate_hz); !read) return read;
  if (auto read = read_option(line, "--max-overhead", a.max_overhead.empty() ? "1" : a.max_overhead,
                              parse_overhead, recorder.max_overhead_percent);
      !read)
    return read;
  auto mode = parse_mode(a.mode, false);
  if (!mode) return fail(mode);
  recorder.mode = *mode;
  auto native = native_source_of(a.native);
  if (!native) return fail(native);
  recorder.native = *native;
  if (recorder.native) recorder.unwind_cache = unwind_cache();
  request.debug_search = debug_search_of(a.native);
  recorder.follow = true;
  // One that lives for fewer than two samples says little.
  recorder.search_pause = static_cast<Nanoseconds>(2 * static_cast<double>(kSecond) / recorder.rate_hz);
  recorder.command_line = line.text;
  recorder.command = "Pythons " + request.selection->words();
  recorder.chosen = [selection = request.selection](pid_t pid) { return selection->takes(pid); };
  return {};
}

}  // namespace

Result<AgentRequest> agent_request_of(const CommandLine& line) {
  AgentRequest request;
  if (auto done = find_targets(line.agent, request); !done) return fail(done);
  if (auto done = find_headers(line.agent, request); !done) return fail(done);
  if (auto done = read_times_and_sizes(line, request); !done) return fail(done);
  if (auto done = read_recorder(line, request); !done) return fail(done);
  request.tasks = !line.agent.no_async;
  request.listen = line.agent.listen;
  if (!request.listen.empty()) {
    if (auto possible = push::MetricsPort::check(request.listen); !possible) return fail(possible);
  }
  request.certificates = variable(kCertificate);
  return request;
}

}  // namespace phlox::cli
