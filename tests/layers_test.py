"""Rules of the source that a compiler does not check: which directory may include which, which may print, which hosts are named.

Runs under pytest, and alone (`python3 tests/layers_test.py`, which `make lint` does).
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PHLOX = ROOT / "src" / "phlox"

# Hosts that a comment, a document or a namespace may name. Where packages come from is the machine's business.
HOSTS = {
    "docs.python.org", "peps.python.org", "www.python.org", "github.com", "gcc.gnu.org", "www.w3.org", "docs.kernel.org",
    "git.kernel.org", "man7.org", "sqlite.org", "www.sqlite.org", "sourceware.org", "refspecs.linuxfoundation.org",
    "lore.kernel.org", "bugs.python.org", "discuss.python.org", "www.apache.org", "profiler.firefox.com",
    "www.speedscope.app", "ui.perfetto.dev", "perfetto.dev", "keepachangelog.com", "example.org", "example.com",
    "json-schema.org", "localhost", "127.0.0.1", "llvm.org", "git.musl-libc.org", "musl.libc.org", "dwarfstd.org", "itanium-cxx-abi.github.io",
}


def layers(text):
    """{room or folder: what it may use} of layers.txt."""
    allowed = {}
    for line in text.splitlines():
        if match := re.match(r"([a-z/]+) *: *([a-z/ ]*)$", line):
            allowed[match[1]] = set(match[2].split())
    return allowed


def rooms(allowed):
    return {name: uses for name, uses in allowed.items() if "/" not in name}


def included(text, name):
    """The rooms that a file of `name` includes; for one of a folder, also the other folders of its room."""
    used = set()
    for room, rest in re.findall(r'^\s*#\s*include\s*[<"]phlox/([a-z]+)/([^">]*)', text, re.MULTILINE):
        used.add(f"{room}/{rest.split('/')[0]}" if name.startswith(room + "/") else room)
    return used - {name}


def own_names(text):
    """What a C++ file defines for itself, at the first column of its unnamed namespaces: types and constants by name, functions with their
    parameters."""
    names = set()
    for part in re.findall(r"^namespace \{$(.*?)^\}  // namespace$", text, re.MULTILINE | re.DOTALL):
        part = re.sub(r"//[^\n]*", "", part)
        names |= {name for name, _ in re.findall(r"^(?:struct|class|enum class|enum|using) (\w+)\b(?= *(\{|=|final|: ))", part, re.MULTILINE)}
        names |= set(re.findall(r"^(?:inline |static |thread_local )*(?:constexpr|const|constinit)\b[^(;={]*?(\w+)(?:\[[^]]*\])*(?= =|\{|;)", part, re.MULTILINE))
        for name, parameters in re.findall(r"^[\w:<][^;={}()#]*?\b(\w+)\(([^{};]*?)\) (?:const )?\{$", part, re.MULTILINE):
            names.add("%s(%s)" % (name, ", ".join(re.sub(r"\W*\w+$", "", one.split(" = ")[0].strip()) for one in parameters.split(","))))
    return names


def cycle(allowed):
    """A room that reaches itself, or None."""
    for start in allowed:
        seen, todo = set(), list(allowed[start])
        while todo:
            room = todo.pop()
            if room == start:
                return start
            if room not in seen:
                seen.add(room)
                todo += allowed.get(room, ())
    return None


# `_exit` and `abort` stay free: a forked child that cannot exec must end, and an assertion may.
PRINTS = re.compile(
    r"std::(?:cout|cerr|clog)\b"
    r"|(?<![\w.>])(?:std::|::)?(?:printf|vprintf|puts|putchar|perror|exit|quick_exit)\s*\("
    r"|\bf(?:printf|puts|write|mt::print)\s*\([^;]*\b(?:stdout|stderr)\b"
    r"|\b(?:STDOUT|STDERR)_FILENO\b"
)


def code_of(text):
    """Without comments and the contents of strings."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', lambda m: "" if m[0][0] == "/" else '""', text, flags=re.DOTALL)


def prints(text):
    return [match[0] for match in PRINTS.finditer(code_of(text))]


def tracked(*patterns):
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", *patterns], check=True, capture_output=True, text=True)
    return [ROOT / name for name in names.stdout.split("\0") if name and (ROOT / name).is_file()]


def sources():
    found = [path for path in PHLOX.rglob("*") if path.suffix in (".cpp", ".h", ".inc", ".c") and path.is_file()]
    assert len(found) > 20, "the sources have moved: this test looks at nothing"
    return found


def test_rooms_and_folders_include_what_layers_txt_allows_and_all_of_it():
    allowed = layers((PHLOX / "layers.txt").read_text())
    unused = {(name, other) for name, others in allowed.items() for other in others}
    wrong = []
    for path in sources():
        parts = path.relative_to(PHLOX).parts
        names = [parts[0]] + ([f"{parts[0]}/{parts[1]}"] if parts[0] == "sampler" else [])
        for name in names:
            used = included(path.read_text(), name)
            wrong += [f"{path.relative_to(ROOT)} includes {other}" for other in sorted(used - allowed.get(name, set()))]
            unused -= {(name, other) for other in used}
    assert wrong == []
    assert unused == set()


def test_no_source_has_more_than_500_lines():
    long = [f"{path.relative_to(PHLOX)}: {lines} lines" for path in tracked("src/phlox/*.cpp", "src/phlox/*.h", "src/phlox/*.c")
            if (lines := path.read_text().count("\n")) > 500]
    assert long == [], long


def functions(lines, above=0):
    """(first line, number of lines) of each function, in the lines of a file as clang-format indents them."""
    header, start = "", 0
    opened = False
    for i, line in enumerate(lines):
        code = re.sub(r"(^|\s)//.*", "", line).rstrip()
        if not opened:
            if not header and (not code or code[0] in " #}" or code.startswith(("namespace", "extern"))):
                continue
            if not header:
                start = i
            header += code + " "
            opened = code.endswith("{")
            if code.endswith((";", "}", ":")):
                header = ""
        elif line.startswith("}"):
            if re.match(r"(template <.*> )?(class|struct|union)\b[^(]*\{", header):
                yield from functions([inner[2:] for inner in lines[start + 1:i]], above + start + 1)
            elif "(" in header and line == "}":
                yield above + start + 1, i - start + 1
            header, opened = "", False


def test_no_function_has_more_than_60_lines():
    long = [f"{path.relative_to(PHLOX)}:{line}: {count} lines" for path in tracked("src/phlox/*.cpp", "src/phlox/*.h", "src/phlox/*.c")
            for line, count in functions(path.read_text().splitlines()) if count > 60]
    assert long == [], long


def script_functions(lines):
    """(first line, number of lines) of each function in a TypeScript file that dprint formatted, also of those inside another:
    from a line that begins one to the bracket that closes at its indentation."""
    begins = re.compile(r".*(=>|\bfunction\b)|\s+(?!(if|for|while|switch|catch|return|super)\b)[\w ]*\w(<.*>)?\(")
    indents = [len(line) - len(line.lstrip()) if line.strip() else 1000 for line in lines] + [-1]
    for i, line in enumerate(lines):
        if not begins.match(re.sub(r"(^|\s)//.*", "", line)):
            continue
        end = i
        while True:
            end += 1
            while indents[end] > indents[i]:
                end += 1
            if indents[end] < indents[i] or lines[end].lstrip()[0] not in "{)]}":
                break
            if lines[end].rstrip()[-1] not in "{([":
                end += 1
                break
        yield i + 1, end - i


def test_no_function_of_web_has_more_than_60_lines():
    """Each of a class's methods is one, so a view that grows becomes several small ones."""
    long = [f"{path.relative_to(ROOT)}:{line}: {count} lines" for path in tracked("web/src/*.ts")
            for line, count in script_functions(path.read_text().splitlines()) if count > 60]
    assert long == [], long


def test_layers_txt_has_no_cycle_and_names_only_rooms_it_describes():
    allowed = layers((PHLOX / "layers.txt").read_text())
    assert len(rooms(allowed)) >= 13 and len(allowed) - len(rooms(allowed)) >= 5
    assert cycle(allowed) is None
    assert set().union(*allowed.values()) <= set(allowed)


def test_every_room_is_in_layers_txt_and_has_a_readme_at_its_door():
    there = {path.relative_to(PHLOX).parts[0] for path in sources()}
    assert there <= set(layers((PHLOX / "layers.txt").read_text()))
    assert [room for room in sorted(there) if not (PHLOX / room / "README.md").is_file()] == []


def test_only_cli_prints_or_ends_the_program():
    wrong = [f"{path.relative_to(ROOT)}: {found}" for path in sources() if path.relative_to(PHLOX).parts[0] != "cli"
             for found in prints(path.read_text())]
    assert wrong == []


def test_what_files_define_for_themselves_has_different_names_in_a_room():
    """They meet in a batch (cmake/rooms.cmake), which only a release and a fresh clone compile."""
    twice = []
    for room in rooms(layers((PHLOX / "layers.txt").read_text())):
        first = {}
        for path in sorted((PHLOX / room).rglob("*.cpp")):
            for name in own_names(path.read_text()):
                if first.setdefault(name, path) != path:
                    twice.append(f"{name}: {first[name].relative_to(PHLOX)}, {path.relative_to(PHLOX)}")
    assert twice == [], twice


def test_only_known_hosts_are_named():
    wrong = []
    for path in tracked():
        if path.suffix in (".png", ".phlox", ".bin") or path == pathlib.Path(__file__).resolve():
            continue
        text = path.read_text(errors="replace")
        wrong += [f"{path.relative_to(ROOT)}: {host}" for host in re.findall(r"https?://([\w.-]*\w)", text) if host not in HOSTS]
    assert wrong == []


def test_links_between_documents_lead_somewhere():
    dead = []
    for path in tracked("*.md"):
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
            if "://" not in link and not (path.parent / link).exists():
                dead.append(f"{path.relative_to(ROOT)}: {link}")
    assert dead == []


def test_every_document_is_in_the_index():
    linked = set(re.findall(r"\]\(([^)]*)\)", (ROOT / "docs" / "README.md").read_text()))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= linked, sorted(pages - linked)


def test_every_decision_is_in_the_index():
    pages = {path.name for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md")}
    assert pages == set(re.findall(r"\]\((\d[^)]*)\)", (ROOT / "docs" / "decisions" / "README.md").read_text()))


def test_the_kept_bpf_object_comes_from_its_sources():
    """A build without clang takes the kept one (cmake/bpf_object.cmake)."""
    done = subprocess.run(["cmake", "-D", "DO=check", "-P", ROOT / "cmake" / "bpf_object.cmake"], capture_output=True, text=True)
    assert done.returncode == 0, " ".join(done.stderr.split())


def test_the_checks_see_what_they_are_for():
    allowed = layers("# words\nbase :\nelf : base\nsymbols : base elf\nelf/a : elf/b base\n")
    assert allowed == {"base": set(), "elf": {"base"}, "symbols": {"base", "elf"}, "elf/a": {"elf/b", "base"}}
    assert rooms(allowed).keys() == {"base", "elf", "symbols"}
    text = '#include "phlox/symbols/x.h"\n#include "phlox/elf/b/y.h"\n#include "phlox/elf/a/z.h"\n'
    assert included(text, "elf") == {"symbols"} and included(text, "elf/a") == {"symbols", "elf/b"}
    assert cycle(allowed) is None
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == "a"
    assert prints('std::cout << 1; // exit(1)\n  exit(2); s.exit(3); snprintf(b, 1, "printf(x)"); std::fprintf(stderr, "x");')[:2] == [
        "std::cout", "exit("]
    assert own_names("namespace {\nconstexpr int kOne = 1;\nconstexpr char kKeys[] = {};\nstruct Hold {\n  int a;\n};\nusing Group = int;\n"
                     "int f(const A& a, int b) {\n  const int c = 1;\n}\n}  // namespace\nconstexpr int kSeen = 2;\n") == {
        "kOne", "kKeys", "Hold", "Group", "f(const A, int)"}
    assert list(functions("struct A {\n public:\n  int f(int a,\n        int b) {\n    if (a) {\n    }\n  }\n};\nconst int k = 1;  // c\nint g() {\n}".split("\n"))) == [
        (3, 5), (10, 2)]
    assert list(script_functions("class A {\n  f(a: B,\n    b: C): void\n  {\n    if (a) {\n    }\n    on((x) => {\n      b;\n    });\n  }\n}\n"
                                 "// () => {\nconst g = () =>\n  1;\nconst h = function() {\n};".split("\n"))) == [(2, 9), (7, 3), (13, 2), (15, 2)]
    assert prints('std::fputs("no", stderr);') != [] and prints("::_exit(127);") == []


if __name__ == "__main__":
    failures = 0
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            try:
                test()
            except AssertionError as error:
                failures += 1
                print(f"{name}: {error}")
                if not error.args:
                    print("  run it with pytest to see the values")
    sys.exit(1 if failures else 0)
