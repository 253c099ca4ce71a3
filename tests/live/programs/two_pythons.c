// Two libpythons in one process: two LIBRARY-A LIBRARY-B WHICH PROGRAM. WHICH says in which of them Python is up: a, b or ab. Where
// A and B are one file, B goes into a namespace of its own (dlmopen), and the file is mapped twice.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct python {
  void (*initialize)(int);
  int (*run)(const char*);
};

static struct python open_one(const char* path, Lmid_t space) {
  void* handle = dlmopen(space, path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(3);
  }
  struct python one;
  *(void**)&one.initialize = dlsym(handle, "Py_InitializeEx");
  *(void**)&one.run = dlsym(handle, "PyRun_SimpleString");
  return one;
}

static const char* program;

static void* run(void* from) {
  struct python* one = from;
  one->initialize(0);
  one->run(program);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  struct python a = open_one(argv[1], LM_ID_BASE);
  struct python b = open_one(argv[2], strcmp(argv[1], argv[2]) == 0 ? LM_ID_NEWLM : LM_ID_BASE);
  program = argv[4];
  if (strcmp(argv[3], "ab") == 0) {
    pthread_t other;
    pthread_create(&other, NULL, run, &b);
    run(&a);
  }
  run(argv[3][0] == 'a' ? &a : &b);
  return 0;
}
