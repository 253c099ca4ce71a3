#!/usr/bin/env python3
"""Derives a row of the layout table from a CPython's own headers, and checks rows against them.

    layouts.py row INCLUDE_DIR [--name NAME]     print the C++ row (src/phlox/python/rows/*.inc)
    layouts.py check NAME=INCLUDE_DIR ...        compare rows in the tree with these headers; exit 1 on a difference

INCLUDE_DIR is .../include/pythonX.Y. One C file asks the compiler for the offset of every field of
PHLOX_LAYOUT_FIELDS (src/phlox/python/layout.h); a field that a version does not have stays absent. Nothing is run but
the little program this writes.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# struct -> C types to try; "field" -> members to try where the name differs. First that compiles wins.
TYPES = {
    "runtime": ["_PyRuntimeState", "struct pyruntimestate"],
    "interpreter": ["PyInterpreterState", "struct _is"],
    "gil_state": ["struct _gil_runtime_state"],
    "thread": ["PyThreadState", "struct _ts"],
    "cframe": ["_PyCFrame", "CFrame"],
    "chunk": ["_PyStackChunk"],
    "frame": ["_PyInterpreterFrame", "PyFrameObject", "struct _frame"],
    "code": ["PyCodeObject"],
    "object": ["PyObject"],
    "type": ["PyHeapTypeObject", "PyTypeObject"],
    "unicode": ["PyASCIIObject"],
    "bytes": ["PyBytesObject", "PyStringObject"],
    "tuple": ["PyTupleObject"],
    "list": ["PyListObject"],
    "integer": ["PyLongObject"],
    "real": ["PyFloatObject"],
    "dict": ["PyDictObject"],
    "dictkeys": ["struct _dictkeysobject", "PyDictKeysObject"],
    "dictvalues": ["struct _dictvalues"],
    "module": ["PyModuleObject"],
    "tlbc_array": ["_PyCodeArray"],
}
MEMBERS = {
    "runtime.interpreters_head": ["interpreters.head"],
    "runtime.interpreters_main": ["interpreters.main"],
    "runtime.gil": ["ceval.gil"],
    "runtime.tstate_current": ["gilstate.tstate_current"],
    "runtime.finalizing": ["_finalizing", "finalizing"],
    "runtime.debug_offsets": ["debug_offsets"],
    "runtime.autoTSSkey": ["autoTSSkey", "gilstate.autoTSSkey"],
    "interpreter.threads_head": ["threads.head", "tstate_head"],
    "interpreter.threads_main": ["threads.main"],
    "interpreter.ceval_gil": ["ceval.gil"],
    "interpreter.gil": ["_gil"],
    "interpreter.gc_collecting": ["gc.collecting"],
    "interpreter.modules": ["imports.modules", "modules"],
    "interpreter.code_object_generation": ["_code_object_generation"],
    "interpreter.tlbc_generation": ["tlbc_indices.tlbc_generation"],
    "thread.status": ["_status"],
    "frame.executable": ["f_executable", "f_code"],
    "frame.previous": ["previous", "f_back"],
    "frame.instr": ["instr_ptr", "prev_instr", "f_lasti"],
    "frame.funcobj": ["f_funcobj", "f_func"],
    "frame.localsplus": ["localsplus", "f_localsplus"],
    "code.name": ["co_name"],
    "code.linetable": ["co_linetable", "co_lnotab"],
    "code.localsplusnames": ["co_localsplusnames"],
    "code.localspluskinds": ["co_localspluskinds"],
    "code.tlbc": ["co_tlbc"],
    "type.tp_name": ["ht_type.tp_name", "tp_name"],
    "type.tp_basicsize": ["ht_type.tp_basicsize"],
    "type.tp_flags": ["ht_type.tp_flags"],
    "type.tp_dictoffset": ["ht_type.tp_dictoffset"],
    "integer.lv_tag": ["long_value.lv_tag"],
    "integer.ob_digit": ["long_value.ob_digit", "ob_digit"],
    "integer.ob_size": ["ob_base.ob_size", "ob_size"],
    "bytes.ob_size": ["ob_base.ob_size", "ob_size"],
    "tuple.ob_size": ["ob_base.ob_size", "ob_size"],
    "list.ob_size": ["ob_base.ob_size", "ob_size"],
}
# Whole expressions instead of offsetof.
EXPRESSIONS = {
    "unicode.asciiobject_size": ["sizeof(PyASCIIObject)"],
    "unicode.compactobject_size": ["sizeof(PyCompactUnicodeObject)"],
    "unicode.data": ["offsetof(PyUnicodeObject, data)"],
    "integer.ob_ival": ["offsetof(PyIntObject, ob_ival)"],
    "dictvalues.values": ["offsetof(struct _dictvalues, values)", "0 * sizeof(struct _dictvalues *)"],
}
HEADERS = """
#define Py_BUILD_CORE 1
#include <stddef.h>
#include <stdio.h>
#include <Python.h>
#include <frameobject.h>
"""
INTERNAL = ["pycore_runtime.h", "pycore_interp.h", "pycore_gil.h", "pycore_frame.h", "pycore_interpframe.h",
            "pycore_interpframe_structs.h", "pycore_code.h", "pycore_dict.h", "pycore_pystate.h", "pycore_moduleobject.h",
            "pycore_tstate.h", "pycore_object.h", "pycore_ceval_state.h"]


def fields():
    """[(struct, field)] of PHLOX_LAYOUT_FIELDS."""
    text = (ROOT / "src/phlox/python/layout.h").read_text()
    body = text[text.index("#define PHLOX_LAYOUT_FIELDS"):text.index("// clang-format on")]
    body = re.sub(r"/\*.*?\*/", "", body.split("\n", 1)[1], flags=re.S)
    struct, out = None, []
    for kind, name in re.findall(r"\b([SF])\((\w+)\)", body):
        if kind == "S":
            struct = name
        else:
            out.append((struct, name))
    return out


def candidates(struct, field, types):
    key = f"{struct}.{field}"
    if key in EXPRESSIONS:
        return EXPRESSIONS[key]
    out = []
    for ctype in types:
        if field == "size" and struct != "chunk":
            out.append(f"sizeof({ctype})")
            continue
        members = MEMBERS.get(key) or [field, f"co_{field}" if struct == "code" else field]
        if key == "code.code":
            members = ["co_code"]
        out += [f"offsetof({ctype}, {m})" for m in dict.fromkeys(members)]
    return out


def compile_only(include, source, output=None):
    # -idirafter: distributions keep pyconfig.h in an architecture's folder beside.
    command = ["gcc", "-w", "-std=gnu11", "-fmax-errors=0", f"-I{include}", f"-I{include}/internal"]
    multiarch = include.parent / "x86_64-linux-gnu" / include.name
    if multiarch.is_dir():
        command += [f"-I{include.parent}", f"-I{include.parent / 'x86_64-linux-gnu'}", f"-I{multiarch}"]
    command += [str(source)] + (["-o", str(output)] if output else ["-fsyntax-only"])
    return subprocess.run(command, capture_output=True, text=True)


def derive(include):
    """{struct.field: value} as this version's headers state it."""
    include = pathlib.Path(include)
    internal = [h for h in INTERNAL if (include / "internal" / h).exists()]
    with tempfile.TemporaryDirectory() as tmp:
        source = pathlib.Path(tmp) / "layout.c"
        head = HEADERS + "".join(f"#include <internal/{h}>\n" for h in internal)
        # <= 3.9 keep these two to themselves: Objects/dict-common.h, and moduleobject.c.
        head += "typedef struct { PyObject_HEAD PyObject *md_dict; } phlox_module;\n"
        def keep_compiling(lines):
            """The (tag, expression) pairs among `lines` that this version's headers know."""
            while True:
                first = head.count("\n") + 1
                source.write_text(head + "".join(f"size_t v{i} = {e};\n" for i, (_, e) in enumerate(lines)))
                result = compile_only(include, source)
                bad = {int(m) - first for m in re.findall(r"layout\.c:(\d+):\d+: error", result.stderr)}
                if any(b < 0 for b in bad) or "fatal error" in result.stderr or (result.returncode and not bad):
                    sys.exit(f"{include}: headers do not compile:\n{result.stderr[:2000]}")
                if not bad:
                    return lines
                lines = [line for i, line in enumerate(lines) if i not in bad]

        # One type a struct, the first that this version has: fields of two types must not be mixed.
        known = keep_compiling([((s, t), f"sizeof({t})") for s, types in TYPES.items() for t in types])
        types = {}
        for (struct, ctype), _ in known:
            types.setdefault(struct, [ctype])
        wanted = []
        for struct, field in fields():
            exprs = candidates(struct, field, types.get(struct, []))
            if (struct, field) == ("module", "md_dict"):
                exprs = exprs + ["offsetof(phlox_module, md_dict)"]
            wanted += [(f"{struct}.{field}", e) for e in exprs]
        wanted = keep_compiling(wanted)
        body = "".join(f'  printf("{key} %zu\\n", (size_t)({e}));\n' for key, e in wanted)
        source.write_text(head + "int main(void) {\n" + body + "  return 0;\n}\n")
        program = pathlib.Path(tmp) / "layout"
        result = compile_only(include, source, program)
        if result.returncode != 0:
            sys.exit(f"{include}: {result.stderr[:2000]}")
        values = {}
        for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
            key, value = line.split()
            values.setdefault(key, int(value))
    return values


def row(values):
    lines, struct = [], None
    for s, f in fields():
        value = values.get(f"{s}.{f}")
        if value is None:
            continue
        if s != struct:
            lines.append("")
            struct = s
        lines[-1] += f"l.{s}.{f} = {value}; "
    return "\n".join(line.rstrip() for line in lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("row")
    one.add_argument("include")
    check = commands.add_parser("check")
    check.add_argument("pairs", nargs="+", metavar="NAME=INCLUDE_DIR")
    options = parser.parse_args()
    if options.command == "row":
        print(f"// Derived from {pathlib.Path(options.include).name}'s headers by tools/layouts/layouts.py: edit that, not this.")
        sys.stdout.write(row(derive(options.include)))
        return
    failed = False
    for pair in options.pairs:
        name, include = pair.split("=", 1)
        here = (ROOT / "src/phlox/python/rows" / f"{name}.inc").read_text().split("\n", 1)[1]
        there = row(derive(include))
        if here.split() != there.split():
            failed = True
            print(f"{name}: differs from {include}")
            a, b = set(here.split(";")), set(there.split(";"))
            print("  row only:", *sorted(x.strip() for x in a - b), "\n  headers only:", *sorted(x.strip() for x in b - a))
        else:
            print(f"{name}: as {include} says")
    sys.exit(failed)


if __name__ == "__main__":
    main()
