"""What a recording of programs/lines.py must hold: stacks whose lines were all reported by the program itself."""
import json
import pathlib

LINES = pathlib.Path(__file__).parent / "programs" / "lines.py"
# Quality of a sample: whole, or cut in the middle (profile/model.h).
STANDS = (0, 1)


def reported_lines(path):
    return {tuple(tuple(frame) for frame in stack) for stack in json.loads(path.read_text())}


def lines_of(recording, reported):
    """(samples in which spot() was called, samples whose lines were all reported by the program)."""
    looks, right, wrong = 0, 0, []
    for stack, count, quality in recording.query("SELECT s.stack, s.samples, state.quality FROM sample s JOIN state ON state.id = s.state "
                                                 "WHERE s.stack IS NOT NULL"):
        if quality not in STANDS:
            continue
        frames = recording.stack(stack)[::-1]
        at = [i for i, frame in enumerate(frames) if frame[1] == "spot" and frame[3].endswith(LINES.name)]
        if not at:
            continue
        seen = tuple((function, file, first, line) for _, function, _, file, first, line in frames[at[0] + 1:])
        looks += count
        if seen in reported:
            right += count
        else:
            wrong.append(seen)
    return looks, right, wrong
