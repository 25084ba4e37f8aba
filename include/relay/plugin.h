/* Plug-ins: shared libraries that add operators, passes and rewrites to Relay's compiler.
 *
 *   #include <relay/plugin.h>
 *
 *   static relay_plugin_status add_all(const relay_plugin_api* relay) {
 *     static const char* const args[] = {"x"};
 *     relay_operator_spec swish = {sizeof(swish)};
 *     swish.name = "mylib.swish";
 *     swish.doc = "x * sigmoid(x).";
 *     swish.args = args;
 *     swish.num_args = 1;
 *     swish.definition = "fn (%x) { multiply(%x, sigmoid(%x)) }";
 *     return relay->add_operator(relay->plugin, &swish);
 *   }
 *   RELAY_PLUGIN(add_all)
 *
 * The library is loaded by `relay COMMAND --plugin ./mylib.so`, or in Python by relay.plugins.load("./mylib.so"). It
 * links nothing of Relay's: all that it may call is in the table that it is given. Programs go both ways as text of
 * Relay's language. What a plug-in adds works in every program, thread and tool as Relay's own does.
 *
 * Callbacks are called from any thread, several at once. A pointer that a callback is given is good until it returns.
 * Nothing may be thrown out of one; what fails says so with `fail`, and becomes an error that names the call.
 */
#ifndef RELAY_PLUGIN_H_
#define RELAY_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the table and all structures here. A plug-in is only loaded by a compiler of the same number. */
#define RELAY_PLUGIN_API_VERSION 1

typedef enum relay_plugin_status {
  RELAY_PLUGIN_OK = 0,
  RELAY_PLUGIN_DECLINED = 1, /* of callbacks: nothing is to be done here */
  RELAY_PLUGIN_FAILED = 2
} relay_plugin_status;

typedef struct relay_plugin relay_plugin; /* the plug-in that is loaded */
typedef struct relay_call relay_call;   /* the call, or the piece of program, that is asked about */
typedef struct relay_reply relay_reply; /* where the answer goes */

/* `state` is that of the structure which the callback came with. */
typedef relay_plugin_status (*relay_plugin_callback)(void* state, const relay_call* call,
                                                     relay_reply* reply);

/* A kernel: buffers of the arguments, then of the results; the dimensions of all of them in the same order; and the context for
 * relay_kernel_fail. Called from several threads at once. */
struct relay_kernel_context;
typedef void (*relay_plugin_kernel)(void* const* buffers, const int64_t* sizes,
                                    const struct relay_kernel_context* context);

/* An attribute of an operator: its name, its type ("bool", "int", "float", "string", "dtype", "list of int", "list of
 * float", "list of string", "value"), its default as text ("1", "0.5f", "\"NCHW\"") and a sentence. */
typedef struct relay_attribute_spec {
  const char* name;
  const char* type;
  const char* value;
  const char* doc;
} relay_attribute_spec;

/* An operator. What is not needed is null. One of `definition`, `define`, `compute` and `make_compute` is. */
typedef struct relay_operator_spec {
  size_t size;      /* sizeof(relay_operator_spec) */
  const char* name; /* with a namespace: "mylib.op" */
  const char* doc;
  const char* const* args;
  size_t num_args;
  const relay_attribute_spec* attrs;
  size_t num_attrs;
  /* The operator in others: "fn (%x, %y) { ... }". */
  const char* definition;
  /* The same for a call, which says types of arguments and values of attributes: answers such a text. */
  relay_plugin_callback define;
  /* Answers the type of the result: "Tensor[(2, 3), float32]"; without, the definition's. */
  relay_plugin_callback relation;
  /* "fn (%x, %y, %adjoint, %result) { (..., ...) }": the adjoints of the arguments, () where there is none; of several
   * results both are tuples. Without, the definition's. */
  const char* gradient;
  /* "follow": computes the same in any order of the axes, and goes through a change of layout. */
  const char* layout;
  void* state;
  /* The operator as a tensor function, which becomes a kernel:
   *   "def f(x: float32[n, m]) -> (sums: float32[n]):\n"
   *   "  for i in range(n):\n"
   *   "    sums[i] = 0f\n"
   *   "    for j in range(m):\n"
   *   "      sums[i] = sums[i] + x[i, j]\n"
   * Its parameters are those of the operator; docs/plugins.md has the language. */
  const char* compute;
  /* The same for a call, which says types of arguments and values of attributes: answers such a text. */
  relay_plugin_callback make_compute;
  /* Of an operator that is a tensor function: the name of a kernel of the process (relay_register_host_kernel of
   * relay/c_api.h) that compiled programs call in place of code for that function, which says what it computes. The operator is
   * not fused with others. */
  const char* host_kernel;
  /* The kernel of that name for this process; null: it is registered elsewhere. */
  relay_plugin_kernel host_function;
} relay_operator_spec;

/* A pass over whole programs. */
typedef struct relay_pass_spec {
  size_t size;
  const char* name; /* "mylib.MyPass" */
  const char* doc;
  int opt_level; /* runs when the compiler's level is at least this, 0 to 3 */
  const char*
      place; /* in the pipeline: "after:import", "before:FuseOps"; null: where it is asked for */
  /* `program` is the text of a module; answers another, or declines. */
  relay_plugin_status (*run)(void* state, const char* program, relay_reply* reply);
  void* state;
} relay_pass_spec;

/* A rewrite: whatever looks like `pattern` becomes `replacement`, until nothing does. It is a pass of that name. */
typedef struct relay_rewrite_spec {
  size_t size;
  const char* name;
  const char* doc;
  int opt_level;
  const char* place;
  /* "fn (%x, %w) { nn.relu(nn.dense(%x, %w)) }": a parameter stands for anything, for the same each time. Attributes
   * that are written must be as they are written. */
  const char* pattern;
  /* Names of parameters that stand for constants only: "w". */
  const char* const* constants;
  size_t num_constants;
  /* "fn (%x, %w) { ... }", with the parameters of the pattern in their order. */
  const char* replacement;
  /* The same for a match, whose parameters are the arguments of the call; or declines. With `replacement`, only says
   * whether the match is one. */
  relay_plugin_callback replace;
  void* state;
} relay_rewrite_spec;

/* What a plug-in may call. */
typedef struct relay_plugin_api {
  uint32_t version;
  relay_plugin* plugin;
  /* The message, good until the next call, of what failed last; empty where nothing did. */
  const char* (*last_error)(const relay_plugin* plugin);

  /* While the plug-in is loaded only. RELAY_PLUGIN_FAILED, with last_error, for a name that is taken or has no
   * namespace, a text that cannot be read, a place that does not exist. */
  relay_plugin_status (*add_operator)(relay_plugin* plugin, const relay_operator_spec* spec);
  relay_plugin_status (*add_pass)(relay_plugin* plugin, const relay_pass_spec* spec);
  relay_plugin_status (*add_rewrite)(relay_plugin* plugin, const relay_rewrite_spec* spec);

  /* In callbacks: the number of arguments, the type of one, and the value of an attribute as text; null for what is
   * not there. */
  size_t (*num_args)(const relay_call* call);
  const char* (*arg_type)(const relay_call* call, size_t index);
  const char* (*attr)(const relay_call* call, const char* name);
  /* The answer, and the reason for none; both are copied. They return what the callback then returns. */
  relay_plugin_status (*answer)(relay_reply* reply, const char* text);
  relay_plugin_status (*fail)(relay_reply* reply, const char* message);
} relay_plugin_api;

#if defined(__GNUC__)
#define RELAY_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define RELAY_PLUGIN_EXPORT
#endif

#ifdef __cplusplus
#define RELAY_PLUGIN_EXTERN extern "C" RELAY_PLUGIN_EXPORT
#else
#define RELAY_PLUGIN_EXTERN RELAY_PLUGIN_EXPORT
#endif

/* Makes a library a plug-in: `add_all` is called once, with the table, when it is loaded. What it added is taken back
 * when it returns another status than RELAY_PLUGIN_OK. */
#define RELAY_PLUGIN(add_all)                                                                  \
  RELAY_PLUGIN_EXTERN uint32_t relay_plugin_version(void);                                     \
  RELAY_PLUGIN_EXTERN uint32_t relay_plugin_version(void) { return RELAY_PLUGIN_API_VERSION; } \
  RELAY_PLUGIN_EXTERN relay_plugin_status relay_plugin_init(const relay_plugin_api*);          \
  RELAY_PLUGIN_EXTERN relay_plugin_status relay_plugin_init(const relay_plugin_api* api) {     \
    return add_all(api);                                                                       \
  }

#ifdef __cplusplus
}
#endif

#endif
