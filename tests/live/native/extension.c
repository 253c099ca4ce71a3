/* A C extension of a program's own: each function is a frame that must stand where it was called. */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

static volatile uint64_t sink;

__attribute__((noinline)) static void ext_spin(long turns) {
  uint64_t x = 88172645463325252ull;
  for (long i = 0; i < turns; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    sink = x;
  }
}

__attribute__((noinline)) static long ext_middle(long turns) {
  ext_spin(turns);
  return (long)sink | 1; /* no tail call */
}

static PyObject* spin(PyObject* self, PyObject* args) {
  long turns;
  if (!PyArg_ParseTuple(args, "l", &turns)) return NULL;
  return PyLong_FromLong(ext_middle(turns));
}

static PyObject* spin_without_gil(PyObject* self, PyObject* args) {
  long turns;
  if (!PyArg_ParseTuple(args, "l", &turns)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  ext_middle(turns);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

/* Calls a Python function from C. */
__attribute__((noinline)) static PyObject* ext_call(PyObject* function) {
  PyObject* result = PyObject_CallObject(function, NULL);
  sink = sink + 1;
  return result;
}

static PyObject* call(PyObject* self, PyObject* args) {
  PyObject* function;
  if (!PyArg_ParseTuple(args, "O", &function)) return NULL;
  return ext_call(function);
}

__attribute__((noinline)) static void* ext_pool(void* unused) {
  for (;;) ext_middle(100000);
  return unused;
}

static PyObject* start(void* (*run)(void*), const char* name) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, NULL) != 0) return PyErr_NoMemory();
  pthread_setname_np(thread, name);
  Py_RETURN_NONE;
}

/* A thread that never meets Python. */
static PyObject* start_pool(PyObject* self, PyObject* args) { return start(ext_pool, "ext-pool"); }

static PyObject* visited;

/* Goes into Python and out again, as Rust's and C++'s threads do: each time with a thread state of its own. */
__attribute__((noinline)) static void* ext_visit(void* unused) {
  for (;;) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF(PyObject_CallObject(visited, NULL));
    PyGILState_Release(state);
    ext_middle(200000);
  }
  return unused;
}

static PyObject* start_visitor(PyObject* self, PyObject* args) {
  if (!PyArg_ParseTuple(args, "O", &visited)) return NULL;
  Py_INCREF(visited);
  return start(ext_visit, "ext-visitor");
}

#if defined(__x86_64__)
/* As glibc's functions are on Ubuntu since 24.04: asleep with a frame that counts from rbp, called by way of a table. */
__attribute__((noinline, optimize("no-omit-frame-pointer"))) static long ext_nap(const struct timespec* how_long) {
  char room[72];
  long result = SYS_nanosleep;
  __asm__ volatile("syscall" : "+a"(result) : "D"(how_long), "S"(0), "m"(room) : "rcx", "r11", "rbx", "r12", "r13", "memory");
  sink = sink + 1;
  return result;
}
static long (*volatile nap)(const struct timespec*) = ext_nap;

static PyObject* sleep_by_frame_pointer(PyObject* self, PyObject* args) {
  const struct timespec how_long = {0, 20000000};
  Py_BEGIN_ALLOW_THREADS
  for (;;) nap(&how_long);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}
#endif

static PyMethodDef methods[] = {{"spin", spin, METH_VARARGS, ""},
                                {"spin_without_gil", spin_without_gil, METH_VARARGS, ""},
                                {"call", call, METH_VARARGS, ""},
                                {"start_pool", start_pool, METH_VARARGS, ""},
                                {"start_visitor", start_visitor, METH_VARARGS, ""},
#if defined(__x86_64__)
                                {"sleep_by_frame_pointer", sleep_by_frame_pointer, METH_VARARGS, ""},
#endif
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "extension", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_extension(void) { return PyModule_Create(&module); }
