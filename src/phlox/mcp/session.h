// The protocol, from one message to what is sent back: versions, requests, notifications, batches,
// cancellation, progress, errors. Of the tools it knows what describes them. Lines go in, lines come out;
// calls of tools go to a host, which answers them when it can. One thread.
//
// Both kinds of versions are spoken: those that begin with `initialize`, and those in which each request has
// the version in its `_meta`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/mcp/json.h"
#include "phlox/mcp/tool.h"

namespace phlox::mcp {

// What a tool found, or why it refused.
struct Answer {
  std::string text;  // for people, and for models
  Json structured;
  bool is_error = false;
};
// The answer of a tool that refused.
Answer refusal(const Error& error, std::string_view kind);

class Session {
 public:
  class Host {
   public:
    Host() = default;
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    virtual ~Host() = default;
    // One message, without the end of its line.
    virtual void send(const std::string& message) = 0;
    // To be answered now or later, by Session::answer() with this number. `arguments`: an object whose values
    // fit the tool's parameters.
    virtual void call(uint64_t number, const Tool& tool, const Json& arguments) = 0;
    // Nobody waits for its answer any more.
    virtual void cancel(uint64_t number) = 0;
  };

  Session(std::string version, std::string instructions, std::vector<Tool> tools, Host& host);

  // A line that came.
  void take(std::string_view message);
  // One that was too long to be read.
  void take_too_long(size_t longest);

  void answer(uint64_t number, const Answer& answer);
  // Sent only if the client asked for it. `progress` grows from one to the next.
  void report_progress(uint64_t number, double progress, std::optional<double> total,
                       const std::string& message);

 private:
  // Requests that came in one line are answered in one.
  struct Batch {
    size_t left = 0;
    std::string answers;
  };
  struct Request {
    Json id;
    bool is_modern = false;  // with its version in `_meta`
    std::shared_ptr<Batch> batch;
  };
  struct Call {
    Request request;
    std::optional<Json> progress_token;
  };

  void take_batch(const Json& messages);
  void take_one(const Json& message, std::shared_ptr<Batch> batch);
  void take_notification(const std::string& method, const Json* params);
  void take_request(Request request, const std::string& method, const Json* params);
  // Nothing is answered.
  void ignore(const Request& request);
  // One of the batch is done.
  void settle(Batch& batch, const std::string& answer);
  void initialize(const Request& request, const Json* params);
  void call_tool(const Request& request, const Json* params);
  // Why the request cannot be served, if it cannot: its version is not spoken, or none was agreed on.
  bool refuse_version(Request& request, const std::string& method, const Json* params);
  void reply(const Request& request, Json result);
  void reply_error(const Request& request, int code, std::string_view message, Json data = {});
  void send(const Request& request, const Json& message);
  bool has_structured(const Request& request) const;
  Json server() const;

  std::string version_, instructions_;
  std::vector<Tool> tools_;
  Host& host_;
  std::string agreed_;  // the version of `initialize`; empty: none yet
  std::map<uint64_t, Call> calls_;
  uint64_t last_call_ = 0;
};

}  // namespace phlox::mcp
