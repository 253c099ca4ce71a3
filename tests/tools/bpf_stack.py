"""How much stack the functions of a BPF object use together, as the kernel's verifier counts it (kernel/bpf/verifier.c: check_max_stack_depth)."""
import struct

FUNCTION, CODE = 2, 4  # STT_FUNC, SHF_EXECINSTR
FRAME_POINTER = 10
CALL, LOAD_IMMEDIATE, ADD_IMMEDIATE = 0x85, 0x18, 0x07
MEMORY = (1, 2, 3)  # classes of instructions: LDX, ST, STX


def _sections(data):
    at, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    return [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(count)]


class _Object:
    def __init__(self, data):
        self.sections = _sections(data)
        self.body = [data[s[4]:s[4] + s[5]] for s in self.sections]
        table = next(i for i, s in enumerate(self.sections) if s[1] == 2)  # SHT_SYMTAB
        names = self.body[self.sections[table][6]]
        self.symbols = []
        for at in range(0, len(self.body[table]), 24):
            name, kind, _, section, value, size = struct.unpack_from("<IBBHQQ", self.body[table], at)
            self.symbols.append((names[name:names.index(0, name)].decode(), kind & 15, section, value, size))
        self.functions = {(section, value): (name, size) for name, kind, section, value, size in self.symbols if kind == FUNCTION}
        self.relocations = {}
        for s, body in zip(self.sections, self.body):
            if s[1] == 9:  # SHT_REL
                for at in range(0, len(body), 16):
                    offset, what = struct.unpack_from("<QQ", body, at)
                    self.relocations[s[7], offset] = self.symbols[what >> 32]

    def target(self, section, at, immediate):
        """The function that the instruction calls, or whose address it loads; None: no function."""
        _, kind, to, value, _ = self.relocations.get((section, at), (None, None, section, at, 0))
        step = immediate if self.body[section][at] == LOAD_IMMEDIATE and kind is not None else (immediate + 1) * 8
        place = (to, value + (step if kind != FUNCTION else 0))
        return place if place in self.functions else None

    def frame(self, section, start, size):
        """-> (bytes of its own, the functions that it calls)"""
        depth, calls, copies = 0, set(), set()
        code = self.body[section]
        for at in range(start, start + size, 8):
            op, registers, offset, immediate = struct.unpack_from("<BBhi", code, at)
            to, by = registers & 15, registers >> 4
            used = by if op & 7 == 1 else to
            if op & 7 in MEMORY and used == FRAME_POINTER:
                depth = max(depth, -offset)
            if op == 0xbf and by == FRAME_POINTER:  # to = r10
                copies.add(to)
            elif op == ADD_IMMEDIATE and to in copies and immediate < 0:
                depth = max(depth, -immediate)
                copies.discard(to)
            if op == CALL and by == 1 or op == LOAD_IMMEDIATE:
                calls.add(self.target(section, at, immediate))
        return depth, calls - {None}


def deepest(path):
    """-> {program: bytes}"""
    elf = _Object(path.read_bytes())
    frames = {place: elf.frame(*place, size) for place, (_, size) in elf.functions.items()}
    sums = {}

    def together(place):
        if place not in sums:
            depth, calls = frames[place]
            sums[place] = (max(depth, 1) + 31) // 32 * 32 + max(map(together, calls), default=0)
        return sums[place]
    called = set().union(*(calls for _, calls in frames.values()))
    return {name: together(place) for place, (name, _) in elf.functions.items() if place not in called}
