// In which language a function is written: by its frame's kind and its file's name. No DOM.
import { isInterpreter, Kind, Label } from "./tree";

export const languages = ["Python", "Cython", "C", "C++", "Rust", "Fortran", "native", "kernel", "other"] as const;
export type Language = typeof languages[number];

const byExtension: Record<string, Language> = {
  pyx: "Cython", pxd: "Cython", pxi: "Cython",
  c: "C", h: "C",
  cc: "C++", cpp: "C++", cxx: "C++", hpp: "C++", hh: "C++", hxx: "C++", tcc: "C++", inl: "C++", cu: "C++",
  rs: "Rust",
  f: "Fortran", f90: "Fortran", f77: "Fortran",
};

// Cython's functions are named as in Python, "fast.inner.compute"; what a compiler split off a function of C ends in one of these.
const dotted = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$/;
const splitOff = /\.(?:part|cold|isra|constprop|lto_priv|llvm|clone)$/;

// "native": compiled, and neither file nor name say from what. "other": markers in place of frames.
export function languageOf(label: Label): Language {
  if (label.kind === Kind.python) return "Python";
  if (label.kind === Kind.kernel) return "kernel";
  if (label.kind === Kind.marker) return "other";
  if (dotted.test(label.full) && !splitOff.test(label.full)) return "Cython";
  if (isInterpreter(label.module)) return "C";
  const dot = label.file.lastIndexOf(".");
  const known = dot < 0 ? undefined : byExtension[label.file.slice(dot + 1).toLowerCase()];
  // A header is C until a name of C++ stands in it.
  if (known && !(known === "C" && label.full.includes("::"))) return known;
  return label.full.includes("::") ? "C++" : "native";
}
