// The commands that sample programs: record, dump, top, agent and their relatives.
#include "phlox/cli/grammar.h"

namespace phlox::cli {
namespace {

constexpr const char* kMoreOnRecord =
    "Phlox changes nothing in the program and, by default, never stops it.\n\nChild processes are recorded "
    "in the same file: the workers of a server, the children of a pool, tests that run side by side. Each is "
    "a process of the recording (--by process, --by program, --pid). COMMAND, or the process with the PID, "
    "need not be a Python itself: it may be a script, make, or a wrapper such as timeout. With --no-follow, "
    "the first Python that COMMAND starts is recorded and, when it has ended, the next. --max-overhead holds "
    "for each process.\n\n--name, --user, --cgroup and --all choose among the Pythons of this host, also "
    "those that start later, and include what these start. If you give several, a process has to match all; "
    "a process given with --pid is always recorded. Such a recording ends with -d or Ctrl-C, not when the "
    "programs end. Phlox never records itself, nor what it started.\n\nCtrl-C (SIGINT) ends the recording "
    "and writes all of it; a second Ctrl-C ends phlox at once. SIGTERM ends the recording of a program that "
    "was running before. Both also work where a script has put phlox into the background with SIGINT "
    "ignored. A program that phlox starts gets the signals that phlox gets, and phlox exits with its exit "
    "status. Under sudo that program runs as the calling user, who also owns the files.\n\nWith --keep or "
    "--max-size, phlox can record for days; the file then holds the last part. SIGUSR1 writes what there is "
    "to another file, and the recording goes on. If phlox started the program, use phlox snapshot "
    "instead.\n\nThe choices of the view apply to .svg, .html and .txt outputs only: a .phlox file holds "
    "everything.";

constexpr const char* kMoreOnAgent =
    "For each interval, phlox sends one profile of each process: CPU time, wall time, the time in which "
    "threads were off the CPU, waited for the GIL or waited for a CPU, and what tasks awaited. It sends the "
    "names of functions, files and threads, line numbers, and what identifies the process, but not command "
    "lines, variables or data. docs/agent.md has the list, and a systemd unit.\n\nIf a server does not "
    "answer, phlox says why, once. It tries again after longer and longer waits, and sends everything when "
    "the server is back. SIGTERM or Ctrl-C stops the agent. It tries to send the last interval for up to "
    "five seconds, and keeps the rest for the next start.\n\nPhlox reads these environment variables: "
    "OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL (grpc or http/protobuf), "
    "OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE, http_proxy, https_proxy and no_proxy. With "
    "PHLOX_MESSAGES=json, each message is a JSON object.";

// How long phlox records, and what it writes.
void describe_the_recording(CommandBuilder& b, RecordArguments& a) {
  b.value("-d,--duration", a.duration,
          {.value = "SECONDS",
           .text = "end the recording after this time (default: Ctrl-C, or the program's end)"});
  b.value(
      "-r,--rate", a.rate,
      {.value = "HZ",
       .text = "samples a second (default: up to 200, as --max-overhead allows); max: as many as possible"});
  b.value("-o,--output", a.output,
          {.value = "FILE",
           .text = "the file to write; its extension chooses the format: .phlox, .svg, .html, .txt or "
                   ".collapsed. For all but .phlox the recording is kept too, as FILE.phlox. -: collapsed "
                   "stacks on standard output, and no recording (default: a .phlox named after program, "
                   "process and time). With --on: the FOLDER for the incidents",
           .file = true});
  b.value("--keep", a.keep,
          {.value = "TIME", .text = "keep only the last part: 1h, 30m; for recordings of days"});
  b.flag("--no-async", a.no_async, "do not record what tasks of asyncio and trio await");
  b.value("--max-size", a.max_size,
          {.value = "SIZE", .text = "drop the oldest part when the file would become larger: 200M, 2G"});
  b.value("--stall", a.stall,
          {.value = "DURATION",
           .text = "report an event loop that does not wait for events for this long as a stall in the "
                   "summary (default 50ms)"});
  b.triggers(a.triggers);
  b.flag("--append", a.append, "continue the recording in FILE, for example after its recorder was killed");
  b.source(a.source);
  b.force(a.force);
  b.value("--ready-fd", a.ready_fd,
          {.value = "N",
           .text = "for programs that start phlox: when recording has begun, write a line of JSON with the "
                   "recording's name to this open file descriptor, and close it"});
}

// Of --mode, for record and agent.
std::vector<std::string> modes() {
  return {"auto", "kernel", "same-cpu", "ptrace", "hands-off", "no-kernel"};
}

// How the program is read, and what that may cost it.
void describe_the_sampling(CommandBuilder& b, RecordArguments& a) {
  b.value("--max-overhead", a.max_overhead,
          {.value = "PERCENT",
           .text = "how much of a CPU sampling may take from the program; beyond that the rate is lowered. "
                   "off: no limit (default 2)"});
  b.value("--max-pause", a.max_pause,
          {.value = "DURATION",
           .text = "where threads are stopped for microseconds: when phlox itself is stopped meanwhile "
                   "(Ctrl-Z), it lets the thread go after this (default 10ms)"});
  b.flag("--hands-off", a.hands_off,
         "read only from other CPUs than the program's; stacks are not proved (same as --mode hands-off)");
  b.value(
      "--mode", a.mode,
      {.value = "MODE",
       .text = "how to read the program. kernel: inside the kernel, as root; same-cpu: on the thread's own "
               "CPU; ptrace: while the thread is stopped for microseconds; hands-off: from other CPUs; "
               "no-kernel: the best of the last three (default auto: the first that this host allows). Its "
               "older name is --way",
       .choices = modes(),
       .older = "--way"});
}

void describe_the_profiles(CommandBuilder& b, AgentArguments& a) {
  b.value("--interval", a.interval,
          {.value = "TIME", .text = "how much time a profile covers: 1s to 10m (default 15s)"});
  b.value("-r,--rate", a.rate, {.value = "HZ", .text = "samples a second (default 20)"});
  b.value("--max-overhead", a.max_overhead,
          {.value = "PERCENT",
           .text = "how much of a CPU sampling may take from a program; beyond that the rate is lowered. "
                   "off: no limit (default 1)"});
  b.value("--mode", a.mode,
          {.value = "MODE",
           .text = "how to read the programs, as with phlox record (default auto)",
           .choices = modes(),
           .older = "--way"});
  b.flag("--no-async", a.no_async, "do not send what tasks of asyncio and trio await");
  b.native_here(a.native);
}

// What is sent with the profiles, and where they wait and stay.
void describe_the_sending(CommandBuilder& b, AgentArguments& a) {
  b.value("--header-file", a.header_file,
          {.value = "FILE",
           .text = "a file with headers to send, such as Authorization, one on each line. For several "
                   "servers, put [otlp], [otlp-grpc], [pyroscope], [parca] or [URL] above them. No other "
                   "user may be able to read the file",
           .file = true});
  b.value("--buffer", a.buffer,
          {.value = "SIZE",
           .text = "how much may wait on disk while a server does not answer; beyond that, the oldest is "
                   "dropped (default 256M)"});
  b.value("--state", a.state,
          {.value = "DIR",
           .text = "the folder where profiles wait; no other user may be able to write to it (default: "
                   "$STATE_DIRECTORY, which systemd sets, or ~/.local/state/phlox/agent)",
           .file = true});
  b.value("-o,--output", a.output,
          {.value = "FILE",
           .text = "also write a recording of the last hour, for phlox report and snapshot. With --on: the "
                   "FOLDER for the incidents",
           .file = true});
  b.value("--keep", a.keep, {.value = "TIME", .text = "how much time that recording covers (default 1h)"});
}

}  // namespace

void Grammar::describe_record() {
  CommandBuilder b = command("record", "record a running or a new Python program",
                             "[options] -p PID | --name REGEX | --all | -- COMMAND [ARGUMENT...]");
  text().examples = {
      {"phlox record -p 4711 -d 10", "ten seconds of a running program, into a .phlox file"},
      {"phlox record -o flame.svg -- python3 app.py --port 80",
       "a new program from its first line to its end, as a flame graph"},
      {"sudo phlox record -r 1000 -p $(pgrep -f worker.py) -o worker.phlox",
       "another user's program, 1,000 samples a second"},
      {"phlox record --native -o flame.svg -- python3 train.py", "down to the line of C, C++ or Rust"},
      {"phlox record -o app.html -p 4711 -d 60", "one page with timeline, flame graph, tables and filters"},
      {"sudo phlox record --name 'celery.*worker' -d 60",
       "all workers on this host, also those that start later"},
      {"sudo phlox record --on stall=200ms --on death -o incidents -p 4711",
       "the time before and after each stall of an event loop, and what led to a crash"},
  };
  auto& a = line.record;
  b.running_processes(
      "-p,--pid", a.pids,
      "record this process and the Pythons that it has started or will start; may be repeated");
  b.container(a.container);
  b.selection(a.selection);
  b.flag("--no-follow", a.no_follow,
         "record only these processes, not what they start; of COMMAND, one Python at a time");
  describe_the_recording(b, a);
  describe_the_sampling(b, a);
  b.native(a.native);
  b.view(a.view, false);
  text().more = kMoreOnRecord;
}

void Grammar::describe_dump() {
  CommandBuilder b =
      command("dump", "print the stack of every thread and what tasks await, now", "[options] -p PID");
  text().examples = {{"phlox dump -p 4711", "what is it doing right now?"},
                     {"phlox dump --locals -p 4711", "also with arguments and local variables"},
                     {"phlox dump --async all -p 4711", "with each task of asyncio and what it awaits"},
                     {"phlox dump --native -p 4711", "down to the line of C, C++ or Rust"},
                     {"phlox dump --json -p 4711", "for a program to read"}};
  auto& a = line.dump;
  b.running_process("-p,--pid", a.pid, "the process");
  b.container(a.container);
  b.flag("--no-follow", a.no_follow, "only this process, not the Pythons that it has started");
  b.flag("--locals", a.locals, "also print arguments and local variables (they may hold secrets)");
  b.value("--async", a.async_tasks,
          {.value = "WHICH",
           .text = "the tasks of asyncio and trio to print: groups, by outermost coroutine and await "
                   "(default), or all, each with its chain of awaits",
           .choices = {"groups", "all"}});
  b.flag("--no-async", a.no_async, "do not print the tasks of asyncio and trio");
  b.flag("--json", a.json, "print JSON, as docs/json/ describes it");
  b.native(a.native);
  b.flag("--all-frames", a.all_frames,
         "also show the C frames of the interpreter itself, which are hidden otherwise");
}

void Grammar::describe_top() {
  CommandBuilder b = command("top", "show where the time goes while a program runs",
                             "[options] -p PID | --name REGEX | FILE | -- COMMAND [ARGUMENT...]");
  text().examples = {
      {"phlox top -p 4711", "functions, lines, threads, processes, once a second; ? lists the keys"},
      {"phlox top -- python3 app.py", "a new program; its output goes to a file"},
      {"phlox top --name gunicorn", "every Python whose command line matches; --all: every Python"},
      {"phlox top app.phlox", "a recording that another phlox is writing"},
      {"phlox top -n 3 -p 4711 | grep parse", "three tables as text"}};
  auto& a = line.top;
  b.positional("FILE", a.file, {.text = "a recording; it may be growing", .file = true});
  b.running_processes("-p,--pid", a.pids,
                      "this process and the Pythons that it has started or will start; may be repeated");
  b.container(a.container);
  b.selection(a.selection);
  b.flag("--no-follow", a.no_follow, "only this process");
  b.value("-r,--rate", a.rate,
          {.value = "HZ", .text = "samples a second (default: up to 200, and no more than 2 % of a CPU)"});
  b.value("--interval", a.interval, {.value = "SECONDS", .text = "time between two refreshes (default 1)"});
  b.value("--window", a.window,
          {.value = "SECONDS", .text = "how much time the first two columns cover (default 5)"});
  b.value("-n,--count", a.count, {.value = "COUNT", .text = "print this many tables as text, then end"});
  b.value("--filter", a.filter, {.value = "REGEX", .text = "show only rows that match"});
  b.value("--page", a.page,
          {.value = "PAGE",
           .text = "the page to begin with (default functions)",
           .choices = {"functions", "lines", "threads", "processes", "loops"}});
  b.native(a.native);
  text().more =
      "The first two columns cover the last seconds, the next two all time since the start: the time in a "
      "function itself, and with everything that it called, as a share of what the threads do. As in report, "
      "the waiting of threads that have nothing to do is left out; v shows it.\n\nWhere standard output is "
      "no terminal, or a terminal that cannot move its cursor (TERM=dumb), phlox prints a table each "
      "--interval. It honours NO_COLOR. w writes a recording of what was seen. If you leave phlox with q, a "
      "program that it started runs on. Ctrl-C reaches both, and phlox waits for the program to end.";
}

void Grammar::describe_agent() {
  CommandBuilder b =
      command("agent", "record every Python on this host all day, and send profiles to a server",
              "[options] --otlp URL | --otlp-grpc URL | --pyroscope URL | --parca URL");
  text().examples = {
      {"sudo phlox agent --otlp http://localhost:4318", "to an OpenTelemetry Collector, every 15 seconds"},
      {"sudo phlox agent --otlp-grpc http://localhost:4317", "the same by gRPC"},
      {"sudo phlox agent --pyroscope https://example.com --header-file /etc/phlox/headers",
       "to Pyroscope, with a token that is on no command line"},
      {"phlox agent --otlp http://localhost:4318 --name 'celery.*worker' --listen 127.0.0.1:9464",
       "only some processes; and metrics of the agent itself, for Prometheus"}};
  auto& a = line.agent;
  b.values(
      "--otlp", a.otlp,
      {.value = "URL", .text = "a server that accepts OpenTelemetry profiles over HTTP; may be repeated"});
  b.values(
      "--otlp-grpc", a.otlp_grpc,
      {.value = "URL", .text = "a server that accepts OpenTelemetry profiles over gRPC; may be repeated"});
  b.values("--pyroscope", a.pyroscope,
           {.value = "URL", .text = "a Pyroscope server, or one with the same interface; may be repeated"});
  b.values("--parca", a.parca,
           {.value = "URL", .text = "a Parca server, or one with the same interface; may be repeated"});
  b.selection(a.selection);
  describe_the_profiles(b, a);
  describe_the_sending(b, a);
  b.triggers(a.triggers);
  b.value(
      "--listen", a.listen,
      {.value = "ADDRESS",
       .text = "serve /metrics and /healthz at 127.0.0.1:PORT, for this host only (default: do not listen)"});
  text().more = kMoreOnAgent;
}

void Grammar::describe_pyflame() {
  command("pyflame", "Pyflame's own command line and output",
          "[options] [-p] PID | -t COMMAND [ARGUMENT...]");
  text().examples = {{"phlox pyflame -s 60 -r 0.01 -p 4711 -o prof.txt",
                      "as with Pyflame; also if you call phlox by the name pyflame"},
                     {"phlox pyflame -x -t python3 app.py | flamegraph.pl > app.svg",
                      "a new program, without its idle time"}};
  text().more = "phlox pyflame --help lists its options.";
}

void Grammar::describe_snapshot() {
  CommandBuilder b =
      command("snapshot", "copy a recording while it is recorded", "[options] -p RECORDER | FILE");
  text().examples = {
      {"phlox snapshot -p $(pgrep -x phlox) -o incident.phlox", "what a recorder has so far"},
      {"phlox snapshot app.phlox", "the same, by the name of its file: writes app-20261123-093000.phlox"}};
  auto& a = line.snapshot;
  b.value("-p,--pid", a.pid, {.value = "RECORDER", .text = "the process id of the phlox that records"});
  b.positional("FILE", a.file, {.text = "its recording", .file = true});
  b.value("-o,--output", a.output,
          {.value = "FILE",
           .text = "the file to write (default: named after the recording and the time)",
           .file = true});
  text().more =
      "The recorder goes on meanwhile. If phlox records for days with --keep 1h (phlox record -r 20 --keep "
      "1h --max-size 200M -o app.phlox -p PID), a snapshot keeps the last hour after something has happened.";
}

}  // namespace phlox::cli
