// What programs print goes to Python's sys.stdout, which notebooks and tests replace.
#include "bind/unlocked.h"
#include "runtime/core/print.h"

namespace relay::bind {
namespace {

void print_to_python(const char* text, size_t size) {
  PythonLock lock;
  nb::object out = nb::borrow(PySys_GetObject("stdout"));
  if (!out.is_valid() || out.is_none()) return;
  nb::object decoded =
      nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(size), "backslashreplace"));
  nb::object done = decoded.is_valid()
                        ? nb::steal(PyObject_CallMethod(out.ptr(), "write", "O", decoded.ptr()))
                        : nb::object();
  // The program goes on, as a C program does when its output is closed.
  if (!done.is_valid()) PyErr_WriteUnraisable(out.ptr());
}

}  // namespace

void bind_printing() { runtime::set_print_function(&print_to_python); }

}  // namespace relay::bind
