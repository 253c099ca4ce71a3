"""What a recording of bench/targets/hard.py must hold: each stack has one family of functions, whole and in order."""
import re


def judge(recording):
    """(samples, impossible samples, [an impossible stack, ...]) of every stack that is marked as whole or cut."""
    looks, impossible, examples = 0, 0, []
    for names, count, _, quality in recording.stacks():
        if quality not in (0, 1):
            continue
        family = [name for name in names if re.fullmatch(r"[ab]\d+", name)]
        looks += count
        if [int(name[1:]) for name in family] != list(range(len(family))) or len({name[0] for name in family}) > 1:
            impossible += count
            examples.append(names)
    return looks, impossible, examples


def check(recording, at_least=50):
    looks, impossible, examples = judge(recording)
    assert impossible == 0, examples[:3]
    assert looks > at_least
    assert any("a" in {name[0] for name in names if re.fullmatch(r"[ab]\d+", name)} for names, *_ in recording.stacks())
