// The Python version of a file or a piece of memory: from names, constants and the text of sys.version. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace phlox::python {

struct Version {
  uint8_t major = 0, minor = 0, micro = 0;
  std::string text;          // "3.12.1", "3.15.0a2"; "3.9" if the micro version is not known
  bool pre_release = false;  // alpha, beta or candidate
  bool has_micro = false;
};

// PY_VERSION_HEX (Include/patchlevel.h): 0xMMmmuuLS, L the release level (a, b, c, f), S its serial.
Version version_of_hex(uint32_t hex);

// PY_VERSION at the start of a text: "3.9.18", "2.7.18+", "3.15.0a2".
std::optional<Version> parse_version(std::string_view text);

// "libpython3.9.so.1.0", "python2.7", "python3.13t", "libpython3.7dm.so": the last part of a path.
std::optional<Version> version_of_file_name(std::string_view name);

// The buffer of Py_GetVersion() (Python/getversion.c): "3.9.18 (main, Aug 24 2023, 08:00:00) [GCC 12.2.0]".
std::optional<Version> find_version_text(std::string_view memory);

// PY_VERSION of a known minor version as a constant of its own: NUL, "3.9.18", NUL.
std::optional<Version> find_version_constant(std::string_view constants, uint8_t major, uint8_t minor);

}  // namespace phlox::python
