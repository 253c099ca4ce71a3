"""The programs of section `conclusions`, and what is true of each."""
from .conclusion_judges import (at_work, busiest_thread, changed, collecting, cpu, hottest, idle, never, never_a_place, nobody, no_empty_blocks,
                                nothing_changed, own_children, says, waker, wall, whole_first)

# All programs compute in these functions: `part` is where that begins.
SPIN = ("spin", "<genexpr>")


class Case:
    """script:program, and its claims. `meanwhile`: a shell command that runs at the same time; `options`: those
    of phlox record."""

    def __init__(self, name, *claims, seconds=1.5, meanwhile="", options=(), small=False, before_after=False, topic="small"):
        self.name, self.claims, self.seconds, self.meanwhile = name, claims, seconds, meanwhile
        self.options, self.small, self.before_after, self.topic = options, small, before_after, topic
        self.script, self.program = name.split()[0].split(":")


FORKS = "while :; do /bin/true; done"
CAT = "yes | cat > /dev/null"

CASES = [
    # Waits
    Case("waits:timeouts", nobody("wait_in_vain"), wall("wait_in_vain"), meanwhile=FORKS, topic="wakers"),
    Case("waits:poll_timeouts", nobody("poll_in_vain"), wall("poll_in_vain"), meanwhile=CAT, topic="wakers"),
    Case("waits:queues", waker("consume", "producer"), wall("consume"), topic="wakers", small=True),
    Case("waits:pipes", waker("read_pipe", "pipe-writer"), wall("read_pipe"), meanwhile=CAT, topic="wakers"),
    Case("waits:sockets", waker("receive_bytes", "sender"), wall("receive_bytes"), topic="wakers"),
    Case("waits:locks", waker("want_lock", "holder"), wall("want_lock"), topic="wakers"),
    Case("waits:sleeps", wall("nap"), cpu("nap"), cpu("stir"), nobody("nap"), hottest(*SPIN), says("nap"), small=True),
    Case("waits:timers", cpu("fire")),
    Case("waits:children", wall("run_sleep"), cpu("run_sleep"), says("waits more than it works"), topic="procs"),
    Case("waits:stall", wall("stand_still"), cpu("stand_still"), cpu("before"), cpu("after"), hottest(*SPIN), no_empty_blocks, small=True),
    Case("waits:brief", wall("short_nap"), says("short_nap"), seconds=0.5, options=("-r", "20")),
    Case("waits:sleeps unprivileged", wall("nap"), cpu("nap"), cpu("stir"), hottest(*SPIN), options=("--way", "no-kernel")),
    Case("waits:stall unprivileged", wall("stand_still"), cpu("stand_still"), cpu("before"), no_empty_blocks, options=("--way", "no-kernel"), small=True),
    # Computing
    Case("work:recursion", cpu("recursive"), cpu("side"), hottest("fibonacci")),
    Case("work:deep", cpu("deep_calls"), cpu("side")),
    Case("work:generators", cpu("generated"), cpu("side"), hottest("numbers", "<genexpr>")),
    Case("work:expressions", cpu("matched"), cpu("side"), hottest("matched")),
    Case("work:documents", cpu("encoded"), cpu("side"), small=True),
    Case("work:tables", cpu("queried"), cpu("side"), hottest("queried")),
    Case("work:in_c", cpu("compressed"), cpu("side"), hottest("compressed"), busiest_thread("compressed"), small=True),
    Case("work:logs", cpu("logged"), cpu("side")),
    Case("work:collections", cpu("littered"), cpu("side"), collecting),
    Case("work:imports", cpu("import_much"), cpu("side"), says("importing")),
    Case("work:arrays", cpu("fit_batch"), cpu("make_batch"), hottest("fit_batch")),
    Case("work:frames", cpu("apply_rows"), cpu("group_rows")),
    Case("work:plain", cpu("count_words"), cpu("side"), hottest("count_words"), busiest_thread("count_words")),
    Case("work:plain native", cpu("count_words"), hottest("count_words"), never(r"bytecodes\.c|Include/|dictobject|native code"), options=("--native",), topic="native"),
    Case("waits:locks native", wall("want_lock"), never_a_place(r"__futex|nptl"), options=("--native",), topic="native"),
    # Loops
    Case("loops:idle", idle("tick"), idle("select"), never("waits more than it works"), topic="work"),
    Case("loops:busy", cpu("callback"), at_work("callback"), idle("select"), hottest(*SPIN), topic="work"),
    Case("loops:blocked", at_work("block_loop"), cpu("block_loop"), idle("select"), topic="work", small=True),
    Case("loops:executor", at_work("call_upstream"), idle("select"), topic="work"),
    Case("loops:streams", cpu("handle"), idle("select"), topic="work"),
    Case("loops:busy unprivileged", cpu("callback"), at_work("callback"), idle("select"), hottest(*SPIN), options=("--way", "no-kernel"), topic="work"),
    # Pools
    Case("pools:saturated", at_work("ask_database"), wall("ask_database"), topic="work"),
    Case("pools:unused", cpu("compute"), idle("_worker"), hottest(*SPIN), busiest_thread("spin", "compute"), topic="work"),
    Case("pools:thread_pool", cpu("burn"), idle("_handle_results"), idle("_handle_tasks"), idle("_handle_workers"), idle("worker"), hottest("burn"), topic="work"),
    Case("pools:own_pool", at_work("slow_task"), cpu("quick_task"), idle("fetch_task"), topic="work", small=True),
    Case("pools:contention", cpu("crunch"), says("waiting for the GIL"), hottest(*SPIN)),
    Case("pools:processes", says("child_work|spin"), idle("worker"), idle("_handle_results"), topic="procs"),
    Case("pools:executor_processes", says("child_work|spin"), idle("_process_worker"), topic="procs"),
    Case("pools:forks", cpu("train"), topic="procs"),
    # Servers
    Case("servers:http_server", cpu("computing_page"), idle("select"), topic="work"),
    Case("servers:threading_server", at_work("waiting_page"), idle("select"), topic="work"),
    Case("servers:idle_server", idle("select"), cpu("computing_page"), topic="work"),
    Case("servers:wsgi", cpu("computing_page"), idle("select"), topic="work"),
    Case("servers:line_server", cpu("computing_page"), idle("select"), topic="work"),
    # Children that are not Python
    Case("processes:busy_children", own_children, cpu("compute"), topic="procs"),
    Case("processes:compiler", own_children, wall("wait_for_compiler"), cpu("wait_for_compiler"), topic="procs"),
    Case("processes:many_children", cpu("think"), wall("run_true", 0.15), topic="procs"),
    Case("processes:pipe_from_child", waker("read_child", r"\bsh\b"), wall("read_child"), meanwhile=CAT, topic="wakers"),
    # Two recordings
    Case("changes:removed", changed("changing"), whole_first, before_after=True, topic="diff"),
    Case("changes:faster", changed("changing"), whole_first, before_after=True, topic="diff"),
    Case("changes:unblocked", changed("blocking"), whole_first, before_after=True, topic="diff"),
    Case("changes:lock_dropped", changed("slow_step"), whole_first, before_after=True, topic="diff"),
    Case("changes:nothing", nothing_changed, whole_first, before_after=True, topic="diff"),
]
