#include "phlox/python/trio_module.h"

#include <algorithm>

#include "phlox/base/load.h"

namespace phlox::python {
namespace {

constexpr uint64_t kMaxContext = 512;  // bytes of a threading.local: some 80
constexpr size_t kMaxRunners = 1024;
constexpr size_t kRunnerTries = 5;

}  // namespace

bool TrioModule::is_dict(RemoteAddress object) {
  return is_plausible(object) && module_.type_of(object).name == "dict";
}

bool TrioModule::open(RemoteAddress interpreter) {
  auto& objects = module_.objects();
  const auto modules = objects.modules(interpreter);
  if (!modules) return false;
  const auto names = objects.names_of(*modules, "trio._core._run");
  if (!names || names->empty()) {
    is_absent_ = names.has_value();
    return false;
  }
  const auto named = [&](std::string_view name) {
    const auto value = objects.find(*names, name);
    return value ? *value : RemoteAddress();
  };
  context_ = named("GLOBAL_RUN_CONTEXT");
  runner_type_ = named("Runner");
  fields_.type = named("Task");
  if (const auto file = objects.string(named("__file__"), 4096)) {
    const size_t core = file->rfind("_core/");
    folder_ = core == std::string::npos ? std::string() : file->substr(0, core);
  }
  const auto of_task = [&](std::string_view name, uint32_t& into) {
    const auto offset = module_.slot(fields_.type, name);
    if (offset) into = *offset;
    return offset.has_value();
  };
  const auto tasks = module_.slot(runner_type_, "tasks");
  if (tasks) tasks_ = *tasks;
  const bool known = context_ && tasks && module_.code_type() && of_task("coro", fields_.coroutine) &&
                     of_task("name", fields_.name) && of_task("_next_send_fn", fields_.next) &&
                     of_task("_child_nurseries", fields_.nurseries) && of_task("_runner", fields_.runner) &&
                     of_task("custom_sleep_data", fields_.sleep_data);
  of_task("_counter", fields_.counter);
  if (!known) problem_ = "trio's tasks have a form that Phlox does not know";
  return known;
}

bool TrioModule::open_again(const TrioNames& found) {
  context_ = found.context;
  runner_type_ = found.runner_type;
  tasks_ = found.tasks;
  fields_ = found.fields;
  folder_ = found.folder;
  return found.imported;
}

std::optional<TrioNames> TrioModule::found() const {
  if (!problem_.empty() || (!is_absent_ && !fields_.type)) return {};
  return TrioNames{!is_absent_, context_, runner_type_, tasks_, fields_, folder_};
}

// A threading.local has one dict, whose values are one dict per thread (Modules/_threadmodule.c). False: one
// of these has no runner.
bool TrioModule::add_runners(std::vector<RemoteAddress>& found) {
  const RemoteAddress type = memory_.word(context_ + *layout_.object.ob_type);
  const uint64_t size = std::min(memory_.word(type + *layout_.type.tp_basicsize).value, kMaxContext);
  bool all = true;
  for (uint64_t at = *layout_.object.size; at + 8 <= size; at += 8) {
    const RemoteAddress threads = memory_.word(context_ + at);
    if (!is_dict(threads)) continue;
    const auto items = module_.objects().dict(threads);
    if (!items) continue;
    for (const DictItem& item : *items) {
      if (!is_dict(item.value)) continue;
      const auto runner = module_.objects().find_in_dict(item.value, "runner");
      if (!runner || !is_plausible(*runner) ||
          memory_.word(*runner + *layout_.object.ob_type) != runner_type_) {
        all = false;
      } else if (found.size() < kMaxRunners &&
                 std::find(found.begin(), found.end(), *runner) == found.end()) {
        found.push_back(*runner);
      }
    }
  }
  return all;
}

// At each step of a task, trio adds `task` to the dict of its thread, and removes it: so the dict is often
// replaced while it is read. A thread that has no runner costs a few more reads.
std::vector<RemoteAddress> TrioModule::runners() {
  std::vector<RemoteAddress> found;
  for (size_t i = 0; i < kRunnerTries && !add_runners(found); ++i) memory_.forget();
  return found;
}

std::vector<RemoteAddress> TrioModule::tasks(RemoteAddress runner, size_t most) {
  const RemoteAddress set = memory_.word(runner + tasks_);
  if (!is_plausible(set) || module_.type_of(set).name != "set") return {};
  const auto members = module_.set_members(set, most);
  if (!members) {
    problem_ = "the tasks of trio changed each time they were read";
    return {};
  }
  return *members;
}

}  // namespace phlox::python
