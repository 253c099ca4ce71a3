// Which package or module a Python file belongs to, by its path alone.
#pragma once

#include <string>
#include <string_view>

namespace phlox::view {

// Top package or module of a Python file: ".../site-packages/numpy/core/x.py" is numpy,
// ".../lib/python3.12/json/decoder.py" json,
// "/srv/app/main.py" main, "/srv/app/__init__.py" app.
std::string module_of_file(std::string_view file);

// "libc" for "libc.so.6"; a leading dot is part of the name.
std::string_view without_extension(std::string_view name);

}  // namespace phlox::view
