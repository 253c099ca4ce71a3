// Python inside another program:
//   embedded PROGRAM ARG...      Py_RunMain
//   embedded -i PROGRAM ARG...   Py_Initialize and a file that is run
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

int main(int argc, char** argv) {
  const int by_hand = argc > 2 && strcmp(argv[1], "-i") == 0;
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.parse_argv = !by_hand;
  PyConfig_SetBytesArgv(&config, argc - 2 * by_hand, argv + 2 * by_hand);
  if (PyStatus_Exception(Py_InitializeFromConfig(&config))) return 3;
  if (!by_hand) return Py_RunMain();
  FILE* file = fopen(argv[2], "r");
  if (file == NULL) return 4;
  PyRun_SimpleFile(file, argv[2]);
  return Py_FinalizeEx();
}
