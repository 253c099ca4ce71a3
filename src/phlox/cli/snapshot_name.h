// What a snapshot of a recording is called where nothing was said.
#pragma once

#include <ctime>
#include <string>

namespace phlox::cli {

// "app-20261123-093000.phlox" of "app.phlox", beside it.
inline std::string snapshot_name(const std::string& recording, std::time_t now) {
  const std::string stem =
      recording.ends_with(".phlox") ? recording.substr(0, recording.size() - 6) : recording;
  char time[32] = {};
  struct tm local {};
  ::localtime_r(&now, &local);
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", &local);
  return stem + "-" + time + ".phlox";
}

}  // namespace phlox::cli
