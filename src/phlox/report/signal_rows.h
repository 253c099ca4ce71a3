// Signals that end a program by default: rows, a table, a finding and JSON. Pure.
#pragma once

#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/report/json_text.h"
#include "phlox/report/report.h"
#include "phlox/report/table.h"

namespace phlox::report {

// The latest `limit` ones, in the order of time.
std::vector<SignalRow> signal_rows(const profile::Profile& profile, size_t limit);
// Whether it says why a process ended unexpectedly; whoever stops a program with SIGTERM knows that.
bool is_unexpected_end(const SignalRow& row);
// "SIGKILL ended process 4711 (python3 app.py) 12.3 s into the recording: gunicorn (4700) sent it in ...".
std::string signal_sentence(const SignalRow& row);
Table signal_table(const Report& report);
void write_signals(JsonText& json, const std::vector<SignalRow>& rows);

}  // namespace phlox::report
