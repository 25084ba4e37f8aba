/* A plug-in for Relay: three operators, one of them a tensor function, a pass and a rewrite.
 *
 *   cc -shared -fPIC -I $(python -c "import relay; print(relay.__path__[0])")/include mylib.c -o mylib.so
 *   relay run --plugin ./mylib.so model.relay
 */
#include <relay/plugin.h>
#include <stdio.h>
#include <string.h>

static const relay_plugin_api* relay;

/* mylib.scaled(x, factor=..): the definition depends on an attribute, so a callback gives it. */
static relay_plugin_status define_scaled(void* state, const relay_call* call, relay_reply* reply) {
  (void)state;
  char text[200];
  if (strncmp(relay->arg_type(call, 0), "Tensor", 6) != 0 &&
      strncmp(relay->arg_type(call, 0), "float", 5) != 0)
    return relay->fail(reply, "mylib.scaled takes tensors");
  snprintf(text, sizeof text, "fn (%%x) { multiply(%%x, %s) }", relay->attr(call, "factor"));
  return relay->answer(reply, text);
}

/* Counts the programs that it sees, and changes none. */
static relay_plugin_status count_programs(void* state, const char* program, relay_reply* reply) {
  (void)program;
  (void)reply;
  ++*(int*)state;
  return RELAY_PLUGIN_DECLINED;
}

static relay_plugin_status add_all(const relay_plugin_api* api) {
  static int programs;
  relay = api;

  static const char* const x[] = {"x"};
  relay_operator_spec swish = {sizeof swish};
  swish.name = "mylib.swish";
  swish.doc = "x * sigmoid(x).";
  swish.args = x;
  swish.num_args = 1;
  swish.definition = "fn (%x) { multiply(%x, sigmoid(%x)) }";
  swish.layout = "follow";
  if (api->add_operator(api->plugin, &swish) != RELAY_PLUGIN_OK) return RELAY_PLUGIN_FAILED;

  static const relay_attribute_spec factor[] = {
      {"factor", "float", "2f", "What x is multiplied with."}};
  relay_operator_spec scaled = {sizeof scaled};
  scaled.name = "mylib.scaled";
  scaled.doc = "x by a factor; its gradient goes through unscaled.";
  scaled.args = x;
  scaled.num_args = 1;
  scaled.attrs = factor;
  scaled.num_attrs = 1;
  scaled.define = define_scaled;
  scaled.gradient = "fn (%x, %adjoint, %result) { (%adjoint,) }";
  if (api->add_operator(api->plugin, &scaled) != RELAY_PLUGIN_OK) return RELAY_PLUGIN_FAILED;

  static const char* const table_and_rows[] = {"table", "rows"};
  relay_operator_spec row_sums = {sizeof row_sums};
  row_sums.name = "mylib.row_sums";
  row_sums.doc = "Sums of the rows of a table that a list selects.";
  row_sums.args = table_and_rows;
  row_sums.num_args = 2;
  row_sums.compute =
      "def row_sums(table: float32[n, m], rows: int64[k]) -> (sums: float32[k]):\n"
      "  for i in parallel(k):\n"
      "    sums[i] = 0f\n"
      "    for j in range(m):\n"
      "      sums[i] = sums[i] + table[rows[i], j]\n";
  if (api->add_operator(api->plugin, &row_sums) != RELAY_PLUGIN_OK) return RELAY_PLUGIN_FAILED;

  relay_pass_spec count = {sizeof count};
  count.name = "mylib.CountPrograms";
  count.doc = "Counts programs.";
  count.place = "after:import";
  count.run = count_programs;
  count.state = &programs;
  if (api->add_pass(api->plugin, &count) != RELAY_PLUGIN_OK) return RELAY_PLUGIN_FAILED;

  relay_rewrite_spec fuse = {sizeof fuse};
  fuse.name = "mylib.FindSwish";
  fuse.doc = "Makes mylib.swish of what computes it.";
  fuse.place = "after:import";
  fuse.pattern = "fn (%x) { multiply(%x, sigmoid(%x)) }";
  fuse.replacement = "fn (%x) { mylib.swish(%x) }";
  return api->add_rewrite(api->plugin, &fuse);
}

RELAY_PLUGIN(add_all)
