/* Runs a compiled model on zeros and prints its outputs. A size that the model leaves open, such as its
 * batch, is SIZE, or 1.
 *
 *   export PKG_CONFIG_PATH=$(python -c "import relay; print(relay.__path__[0])")/lib/pkgconfig
 *   cc run_model.c $(pkg-config --cflags --libs relay) -o run_model && ./run_model model.so [SIZE]
 */
#include <relay/c_api.h>
#include <stdio.h>
#include <stdlib.h>

static void check(relay_status status) {
  if (status == RELAY_OK) return;
  fprintf(stderr, "%s\n", relay_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  char* end = "";
  const int64_t open_size = argc > 2 ? strtoll(argv[2], &end, 10) : 1;
  if (argc < 2 || argc > 3 || *end != '\0' || open_size < 0) {
    return fprintf(stderr, "usage: %s MODEL.so [SIZE]\n", argv[0]), 2;
  }
  relay_module* module;
  relay_session* session;
  check(relay_module_load(argv[1], 0, &module));
  check(relay_session_create(module, "main", &session));

  size_t num_inputs, num_outputs;
  const char* name;
  relay_tensor_type type;
  check(relay_session_num_inputs(session, &num_inputs));
  void** inputs = calloc(num_inputs + 1, sizeof(void*));
  for (size_t i = 0; i < num_inputs; ++i) {
    check(relay_session_input_info(session, i, &name, &type));
    int64_t* shape = calloc((size_t)type.rank + 1, sizeof(int64_t));
    int64_t bytes = type.dtype_bits / 8;
    for (int d = 0; d < type.rank; ++d) {
      shape[d] = type.shape[d] < 0 ? open_size : type.shape[d]; /* -1: known when it runs */
      bytes *= shape[d];
    }
    type.shape = shape;
    type.device_type = RELAY_CPU; /* of the memory below, wherever the parameter is */
    type.device_id = 0;
    inputs[i] = calloc(1, bytes > 0 ? (size_t)bytes : 1);
    check(relay_session_set_input(session, i, inputs[i], &type));
    free(shape);
  }
  check(relay_session_run(session));

  check(relay_session_num_outputs(session, &num_outputs));
  for (size_t i = 0; i < num_outputs; ++i) {
    relay_tensor output;
    check(relay_session_output_info(session, i, &name, &type));
    check(relay_session_output(session, i, &output));
    printf("%s: rank %d, %zu bytes", name, output.type.rank, output.bytes);
    if (output.type.dtype_code == RELAY_FLOAT && output.type.dtype_bits == 32 && output.bytes > 0)
      printf(", first %g", ((const float*)output.data)[0]);
    printf("\n");
  }
  relay_session_free(session);
  relay_module_free(module);
  for (size_t i = 0; i < num_inputs; ++i) free(inputs[i]);
  free(inputs);
  return 0;
}
