#include <cstdio>

#include "base/codes/driver.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "ir/text/text.h"
#include "passes/pipelines.h"

namespace relay::cli {
namespace {

struct OptArgs {
  std::string file;
  std::string passes;
  std::string output = "-";
  bool time_passes = false;
  bool print_after_all = false;
  bool types = false;
  bool list = false;
  bool force = false;
  CompileFlags flags;
};

class PrintAfter : public PassInstrument {
 public:
  explicit PrintAfter(PrintOptions options) : options_(options) {}
  void after(const Pass& pass, const Module& before, const Module& after,
             std::chrono::nanoseconds) override {
    std::printf("// after %s%s\n", pass.name.c_str(), before == after ? ": unchanged" : "");
    if (!(before == after)) std::printf("%s\n", print_module(after, options_).c_str());
  }

 private:
  PrintOptions options_;
};

int run_opt(const OptArgs& o, const Given& given) {
  if (o.list) {
    Table table({"pass", "level", "takes", "gives", "what it does"});
    Table options({"option", "type", "default", "what it sets"});
    for (const Pass* p : all_passes()) {
      table.row(
          {p->name, std::to_string(p->opt_level), to_string(p->in), to_string(p->out), p->doc});
      for (const PassOption& option : p->all_options()) {
        options.row({"relay." + p->name + "." + option.name, std::string(to_string(option.type)),
                     option.standard == AttrValue() ? "" : to_string(option.standard), option.doc});
      }
    }
    std::printf("%s\n%s", table.text().c_str(), options.text().c_str());
    return 0;
  }
  if (!given.has("FILE")) {
    throw UsageError(Diagnostic(codes::driver_usage, {}, "FILE is missing")
                         .help("relay opt [OPTIONS] FILE, or relay opt --list for the passes"));
  }
  std::vector<const Pass*> passes;
  if (!o.passes.empty()) {
    for (const std::string& name : comma_separated(o.passes)) passes.push_back(&find_pass(name));
  }
  ModelOptions model_options;
  for (const std::string& text : o.flags.inputs) parse_input_option(text, model_options);
  LoadedModel model = load_model(o.file, model_options);
  PassContext ctx = pass_context(o.flags.options());
  // A pass that is requested by name runs at any level.
  for (const Pass* p : passes) ctx.required_pass.insert(p->name);
  PrintOptions print;
  print.show_types = o.types;
  PassTiming timing;
  PrintAfter print_after(print);
  if (o.time_passes) ctx.instruments.push_back(&timing);
  if (o.print_after_all) ctx.instruments.push_back(&print_after);
  Module out = o.passes.empty() ? run_passes(model.module, optimize_pipeline(), ctx)
                                : run_passes(model.module, passes, ctx);
  if (!o.print_after_all) write_text(o.output, print_module(out, print), o.force);
  if (o.time_passes) {
    Table table({"pass", "time", "changed"});
    for (const auto& row : timing.rows()) {
      table.row({row.name, format_seconds(row.seconds), row.changed ? "yes" : ""});
    }
    std::fprintf(stderr, "%s", table.text().c_str());
  }
  return 0;
}

}  // namespace

Command opt_command() {
  auto o = std::make_shared<OptArgs>();
  Command out{
      "opt",
      "Run passes: text in, text out",
      {argument("FILE", o->file, model_kinds()).or_input(),
       option("--passes PASS,...", o->passes,
              "Names of passes, separated by commas; without, the whole pipeline")
           .offers(pass_names()),
       option("--input NAME=SHAPE[:DTYPE]", o->flags.inputs, "Shape of an input; may be repeated"),
       option("-o,--output FILE", o->output, "Where to write the text; -: standard output"),
       flag("--time-passes", o->time_passes, "Show how long each pass took"),
       flag("--print-after-all", o->print_after_all,
            "Show the program after every pass that changed it"),
       flag("--types", o->types, "Show types in comments"),
       flag("--list", o->list, "List the passes")},
      [o](const Given& given) { return run_opt(*o, given); }};
  return std::move(
      out.add(o->flags.table()).add({flag("--force", o->force, "Overwrite the output file")}));
}

}  // namespace relay::cli
