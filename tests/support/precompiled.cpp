// Only for its flags: with them precompiled.h is compiled (tests/CMakeLists.txt).
