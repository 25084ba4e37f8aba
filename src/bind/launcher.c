// The program `relay` of an installed package. The command itself is in the package's extension module, which is the
// compiler; this finds the module beside the folder of programs, and calls it. No Python runs: the names that the module
// expects of Python are in python_names.c, which the build makes, and nothing of the command uses them.
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Where a package lies as seen from the folder of its programs: an environment or a user's folder, Debian's folder, and
// `pip install --target`.
static const char* const kPlaces[] = {
    "../lib/python3*/site-packages/relay/_core.*so",
    "../lib64/python3*/site-packages/relay/_core.*so",
    "../local/lib/python3*/dist-packages/relay/_core.*so",
    "../lib/python3*/dist-packages/relay/_core.*so",
    "../relay/_core.*so",
};

// Whether there is address space for the module and for what its initialisation allocates: LLVM's constructors abort
// where an allocation fails, before any code of ours runs.
static int has_room_for(const char* module) {
  const size_t kInitialisation = (size_t)8 << 20;
  struct stat file;
  if (stat(module, &file) != 0) return 1;  // dlopen says why
  const size_t size = (size_t)file.st_size + kInitialisation;
  void* room = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return 0;
  munmap(room, size);
  return 1;
}

int main(int argc, char** argv) {
  char folder[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (length < 0) length = 0;
  folder[length] = '\0';
  char* slash = strrchr(folder, '/');
  if (slash != NULL) *slash = '\0';
  // One binary serves every version of Python, so any of several is as good.
  for (size_t i = 0; i < sizeof kPlaces / sizeof kPlaces[0]; ++i) {
    char pattern[2 * PATH_MAX];
    snprintf(pattern, sizeof pattern, "%s/%s", folder, kPlaces[i]);
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) continue;
    const char* path = found.gl_pathv[found.gl_pathc - 1];
    if (!has_room_for(path)) {
      fprintf(stderr,
              "relay: error E0604: the compiler cannot be loaded: there is no memory for it; raise "
              "the limit of "
              "address space (ulimit -v)\n");
      return 1;
    }
    void* module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
      fprintf(stderr, "relay: the compiler cannot be loaded: %s\n", dlerror());
      return 1;
    }
    globfree(&found);
    // Without memory for the variables of its threads the C library would end the process, saying nothing of use.
    void* volatile room = malloc((size_t)1 << 20);
    if (room == NULL) {
      fprintf(stderr,
              "relay: error E0604: there is no memory to begin with; raise the limit of address "
              "space (ulimit -v)\n");
      return 1;
    }
    free(room);
    int (*command)(int, char**);
    *(void**)&command = dlsym(module, "relay_main");
    if (command == NULL) {
      fprintf(stderr, "relay: this command belongs to another version of the package: %s\n",
              dlerror());
      return 1;
    }
    return command(argc, argv);
  }
  fprintf(stderr,
          "relay: the Python package relay is not beside this command (%s); install both by 'pip "
          "install'\n",
          folder);
  return 1;
}
