"""Among thousands of threads, those that run are sampled, however many wait."""
import pathlib
import re

from live_support import Target, few_pythons, since

ONE_HASHES = pathlib.Path(__file__).with_name("programs") / "one_hashes.py"
ONE_BUSY = pathlib.Path(__file__).with_name("programs") / "one_busy.py"


@since(3, 8)
@few_pythons
def test_the_one_that_computes_is_sampled(python, record):
    with Target(python, ONE_BUSY, 2000) as target:
        recording = record(target.pid, 4)
    stacks = [(names, samples) for names, samples, _, _ in recording.stacks() if "computes" in names]
    assert sum(samples for _, samples in stacks) >= 5


@since(3, 8)
@few_pythons
def test_the_one_that_computes_without_the_gil_is_sampled(python, record):
    with Target(python, ONE_HASHES, 2000) as target:
        recording = record(target.pid, 5)
    stacks = [(names, samples) for names, samples, _, _ in recording.stacks(running=True) if "hashes" in names]
    # With this many threads the limit allows a few turns a second; a busy host has even fewer.
    assert sum(samples for _, samples in stacks) >= 1


@since(3, 8)
@few_pythons
def test_those_that_it_did_not_come_to_are_counted(python, record):
    with Target(python, ONE_BUSY, 2000) as target:
        recording = record(target.pid, 0.5)
    (known,), = recording.query("SELECT count(*) FROM thread")
    said = recording.query("SELECT value FROM meta WHERE value LIKE '%not in the recording: of so many%'")
    missing = sum(int(number) for text, in said for number in re.findall(r"(\d+) threads? of process", text))
    assert known + missing == 2001, said
