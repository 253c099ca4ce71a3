// The language of a function, from its frame's kind and its file's name. No DOM.
import { isInterpreter, Kind, Label } from "./tree";

export const languages = ["Python", "Cython", "C", "C++", "Rust", "Fortran", "native", "kernel", "other"] as const;
export type Language = typeof languages[number];

const byExtension: Record<string, Language> = {
  pyx: "Cython",
  pxd: "Cython",
  pxi: "Cython",
  c: "C",
  h: "C",
  cc: "C++",
  cpp: "C++",
  cxx: "C++",
  hpp: "C++",
  hh: "C++",
  hxx: "C++",
  tcc: "C++",
  inl: "C++",
  cu: "C++",
  rs: "Rust",
  f: "Fortran",
  f90: "Fortran",
  f77: "Fortran",
};

// Cython names functions as Python does, "fast.inner.compute"; parts that a compiler split off a C function have one of
// these suffixes.
const dotted = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$/;
const splitOff = /\.(?:part|cold|isra|constprop|lto_priv|llvm|clone)$/;

// "native": compiled, language unknown from file and name. "other": markers in place of frames.
export function languageOf(label: Label): Language {
  if (label.kind === Kind.python) return "Python";
  if (label.kind === Kind.kernel) return "kernel";
  if (label.kind === Kind.marker) return "other";
  if (dotted.test(label.full) && !splitOff.test(label.full)) return "Cython";
  if (isInterpreter(label.module)) return "C";
  const dot = label.file.lastIndexOf(".");
  const known = dot < 0 ? undefined : byExtension[label.file.slice(dot + 1).toLowerCase()];
  // A header counts as C unless the name is a C++ name.
  if (known && !(known === "C" && label.full.includes("::"))) return known;
  return label.full.includes("::") ? "C++" : "native";
}
