"""The words of the command line: what is misspelt is understood well enough to help, and messages speak of what was typed."""
import os
import re
import subprocess

import pytest
from cli_support import PHLOX, PYTHON, phlox
from test_help import complete
from test_record import run_on_terminal

USAGE = 2


@pytest.mark.parametrize("words, message, hint", [
    ("record --durration 10 -p 1", "phlox record has no option '--durration'", "did you mean --duration?"),
    ("record --dur=10 -p 1", "phlox record has no option '--dur'", "did you mean --duration?"),
    ("record -native -p 1", "no option", "did you mean --native?"),
    ("record --Pid 1", "no option '--Pid'", "did you mean --pid?"),
    ("record --ouput a.svg -p 1", "no option '--ouput'", "did you mean --output?"),
    ("export a.phlox --rate 5", "phlox export has no option '--rate'", "it is an option of: phlox record"),
    ("report a.phlox --fail-if x", "no option '--fail-if'", "it is an option of: phlox diff"),
    ("dump -P 1", "no option '-P'", "did you mean -p?"),
    ("record --zzzzzz -p 1", "no option '--zzzzzz'", "phlox record --help"),
    ("--verison", "there is no option '--verison'", "did you mean --version or --verbose?"),
    ("recrod -p 1", "there is no command 'recrod'", "did you mean phlox record?"),
    ("ps", "there is no command 'ps'", "did you mean phlox list?"),
    ("flamegraph a.phlox", "there is no command 'flamegraph'", "did you mean phlox export?"),
    ("help recrd", "there is no command 'recrd'", "did you mean phlox record?"),
    ("xyzzy", "there is no command 'xyzzy'", "phlox help lists the commands"),
])
def test_did_you_mean(workdir, words, message, hint):
    done = phlox(*words.split())
    assert done.returncode == USAGE
    assert message in done.stderr and f"hint: {hint}" in done.stderr, done.stderr


@pytest.mark.parametrize("words, start", [
    ("record -p", "-p needs a value"), ("record --pid", "--pid needs a value"), ("dump -p", "-p needs a value"),
    ("record -p x", "-p: 'x' is not the id"), ("record --pid x", "--pid: 'x' is not the id"), ("record --pid=x", "--pid: 'x' is not the id"),
    ("record -p 1 -d soon", "-d: 'soon' is not a duration"), ("record -p 1 --duration soon", "--duration: 'soon' is not a duration"),
    ("record -p 1 -r fast", "-r: 'fast' is not a rate"), ("record -p 1 -rfast", "-r: 'fast' is not a rate"),
    ("record -p 1 -o app.py", "-o: cannot tell from 'app.py'"), ("record -p 1 --max-overhead x", "--max-overhead: 'x' is not"),
    ("record -p 1 --mode magic", "--mode: 'magic' is none of"), ("record -p 1 --way magic", "--mode: 'magic' is none of"), ("export a.phlox -f gif", "-f: 'gif' is none of"),
    ("export a.phlox --format gif", "--format: 'gif' is none of"), ("export a.phlox --state asleep", "--state: "),
    ("report a.phlox --time later", "--time: "), ("report a.phlox --pid x", "--pid: 'x' is not the id"), ("dump -p x", "-p: 'x' is not the id"),
    ("record -p 1 --debuginfod", "--debuginfod without --native"),
])
def test_messages_name_the_option_as_it_was_typed(workdir, words, start):
    done = phlox(*words.split())
    assert done.returncode == USAGE
    assert done.stderr.startswith("phlox: " + start), done.stderr


@pytest.mark.parametrize("words, message", [
    ("doctor -p 1 --pid 2", "-p is given 2 times: this command takes one process"),
    ("dump -p 1 -p 2 -p 3", "-p is given 3 times"),
    ("dump -p 1 -p 2", "-p is given 2 times"),
    ("record -p 1 2", "'2' was not expected: each process has its own -p"),
    ("record -p 1 -d 1 -d 2", "-d is given twice"),
    ("record -p 1 -o a.svg --output b.svg", "-o is given twice (--output is the same)"),
])
def test_given_twice(workdir, words, message):
    done = phlox(*words.split())
    assert done.returncode == USAGE
    assert message in done.stderr, done.stderr
    if "at a time" in message:
        assert "& wait" in done.stderr


def test_several_by_comma(workdir):
    done = phlox("record", "-p", "1,2")
    assert done.returncode == USAGE and "one process for each -p" in done.stderr


def test_what_may_be_repeated_may_be(workdir):
    done = phlox("diff", "a.phlox", "b.phlox", "--fail-if", "total(f) > 1%", "--fail-if", "total(g) > 1%")
    assert "twice" not in done.stderr


@pytest.fixture
def recording(busy, workdir):
    assert phlox("record", "-p", busy.pid, "-d", "0.6", "-o", "a.phlox").returncode == 0


def test_export_says_what_it_wrote(recording):
    done = phlox("export", "a.phlox", "-o", "a.svg")
    assert re.fullmatch(r"phlox: wrote a\.svg \(\d+ KB\)\n", done.stderr)
    assert phlox("export", "a.phlox", "-f", "collapsed").stderr == ""
    assert phlox("-q", "export", "a.phlox", "-o", "b.svg").stderr == ""


@pytest.mark.parametrize("words, why", [
    (["--thread", "^none$"], "no sample of the recording passes these choices; its threads: Thread "),
    (["--time", "50s.."], "--time begins at 50 s, but the recording ends at 0."),
    (["--time", "50s..60s"], "--time begins at 50 s, but the recording ends at 0."),
])
def test_an_empty_choice_says_so_wherever_it_is_seen(recording, words, why):
    for command in (["export"], ["report"], ["diff", "a.phlox"]):
        done = phlox(*command, "a.phlox", *words)
        assert done.returncode == 0 and why in done.stderr, done.stderr
    done = phlox("export", "a.phlox", "-o", "a.svg", *words)
    assert done.returncode == 0 and why in done.stderr
    assert why in open("a.svg").read().split('<script type="application/json"')[0].replace("&gt;", ">")
    assert why in open("a.svg").read().split('<script type="application/json"')[1]


def test_a_recording_into_a_picture_says_so_too(busy, workdir):
    done = phlox("record", "-p", busy.pid, "-d", "0.4", "-o", "a.svg", "--time", "50s..")
    assert done.returncode == 0, done.stderr
    assert "--time begins at 50 s, but the recording ends at 0." in done.stderr


def test_a_time_that_reaches_beyond_the_end_is_no_mistake(recording):
    done = phlox("export", "a.phlox", "--time", "100ms..50s")
    assert done.returncode == 0 and done.stderr == "" and "hot" in done.stdout


def test_completions_know_pids_states_formats_and_recordings(busy, recording, monkeypatch):
    os.mkdir("folder")
    open("a.txt", "w").close()
    monkeypatch.setenv("PATH", os.path.dirname(os.path.abspath(PHLOX)) + ":" + os.environ["PATH"])
    for command in ("record", "dump"):
        for option in ("-p", "--pid"):
            assert str(busy.pid) in complete(f"phlox {command} {option} ")
    assert complete("phlox report a.phlox --state gil") == ["gil-holds", "gil-waits"]
    assert complete("phlox report a.phlox --state running,run") == ["running,running", "running,runnable"]
    assert complete("phlox export a.phlox --by li") == ["line"]
    assert "svg" in complete("phlox export a.phlox -f ")
    assert complete("phlox report ") == ["a.phlox", "folder/"]
    assert complete("phlox diff a.phlox a") == ["a.phlox"]
    assert set(complete("phlox record -o a")) == {"a.phlox", "a.txt"}
    assert complete("phlox list ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_what_their_shell_reads(shell, tmp_path):
    import shutil
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    (tmp_path / "script").write_text(phlox("completions", shell).stdout)
    done = subprocess.run([shell, "-n", str(tmp_path / "script")], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize("columns", [8, 16, 36, 50, 60, 90])
def test_the_progress_line_fits(busy, workdir, columns):
    status, seen = run_on_terminal(["record", "-p", busy.pid, "-d", "0.6", "-o", "a.phlox"], columns=columns)
    assert status == 0
    lines = re.findall(r"\r\x1b\[K([^\r\n\x1b]*)", seen)
    lines = [line for line in lines if " s" in line and not line.startswith("phlox")]
    assert lines and max(map(len, lines)) < columns
    if columns >= 36:
        assert all(line.endswith("Ctrl-C ends it") for line in lines)
    assert ("samples" in lines[-1]) == (columns >= 50) and ("rejected" in lines[-1]) == (columns >= 90)
