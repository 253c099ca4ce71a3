// What a process says about itself: attributes of an OpenTelemetry resource, as OTEL_RESOURCE_ATTRIBUTES has
// them ("service.name=shop,service.version=3"). Never more than some kilobytes. Pure.
#pragma once

#include <string>
#include <string_view>

namespace phlox::process {

// From its environment, as /proc/PID/environ has it: OTEL_RESOURCE_ATTRIBUTES, and OTEL_SERVICE_NAME as
// service.name, which comes first and so wins. Nothing else of it. Empty: it has neither.
std::string environment_attributes(std::string_view environment);

// From the message ProcessContext that it publishes (process_context.h): the attributes of its resource,
// without those of its SDK, and without what Phlox sees itself. Empty: there are none, or the bytes are no
// such message.
std::string context_attributes(std::string_view message);
// Whether the same message says that its threads publish which span of a trace they work for
// (thread_context.h).
bool publishes_traces(std::string_view message);

}  // namespace phlox::process
