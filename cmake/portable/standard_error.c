/* Archives that Debian builds for programs address `stderr` as a variable of the program itself. A shared library that
 * holds them is linked with --wrap=stderr and has this one. */
#include <stdio.h>

extern FILE* real_stderr __asm__("__real_stderr");
__attribute__((visibility("hidden"))) FILE* wrapped_stderr __asm__("__wrap_stderr");

__attribute__((constructor(101))) static void find_stderr(void) { wrapped_stderr = real_stderr; }
