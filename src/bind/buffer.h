// The buffer protocol for one binary of all versions of Python.
//
// The stable ABI has it from 3.11 on; the functions and the structure of 3.10 are the same, its headers only do not show
// them to programs of the stable ABI. See PEP 688 and "Buffer Protocol" in the reference of Python's C API.
#pragma once

#include <Python.h>

#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030B0000
extern "C" {
struct Py_buffer {
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
};
int PyObject_CheckBuffer(PyObject*);
int PyObject_GetBuffer(PyObject*, Py_buffer*, int flags);
int PyBuffer_IsContiguous(const Py_buffer*, char order);
int PyBuffer_ToContiguous(void*, const Py_buffer*, Py_ssize_t, char order);
void PyBuffer_Release(Py_buffer*);
int PyBuffer_FillInfo(Py_buffer*, PyObject*, void*, Py_ssize_t, int read_only, int flags);
}
// Strides and format, and memory that may be read-only.
#define PyBUF_RECORDS_RO (0x0010 | 0x0008 | 0x0004)
// The slot of a type that shows memory of its objects.
#define Py_bf_getbuffer 1
#endif
