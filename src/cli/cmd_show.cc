#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/codes/passes.h"
#include "cli/artifact_versions.h"
#include "cli/commands.h"
#include "cli/html/graph.h"
#include "cli/html/page.h"
#include "cli/inputs.h"
#include "cli/terminal.h"
#include "ir/text/text.h"
#include "passes/pipelines.h"

namespace relay::cli {
namespace {

struct ShowArgs {
  std::string file;
  std::string format = "text";
  std::string after;
  std::string output = "-";
  bool tir = false;
  bool llvm = false;
  bool assembly = false;
  bool plan = false;
  bool bytecode = false;
  bool hostcode = false;
  bool types = false;
  bool force = false;
  CompileFlags flags;
};

// Stops the pipeline after one pass.
class StopAfter : public PassInstrument {
 public:
  explicit StopAfter(std::string name) : name_(std::move(name)) {}
  bool should_run(const Pass&, const Module&) override { return !done_; }
  void after(const Pass& pass, const Module&, const Module&, std::chrono::nanoseconds) override {
    done_ |= pass.name == name_;
  }

 private:
  std::string name_;
  bool done_ = false;
};

std::string json_of(const Module& mod) {
  nlohmann::ordered_json root;
  PrintOptions print;
  print.show_metadata = false;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    const Function& f = mod->functions[i];
    nlohmann::ordered_json item;
    item["name"] = mod->global_vars[i]->name_hint;
    if (f->type) item["type"] = to_string(f->type);
    for (const Var& p : f->params) {
      item["params"].push_back(
          {{"name", p->name_hint}, {"type", p->type ? to_string(p->type) : ""}});
    }
    item["text"] = print_expr(f, print);
    root["functions"].push_back(std::move(item));
  }
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string title_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string show_artifact(const ShowArgs& o) {
  runtime::LoadOptions load;
  load.version = o.flags.version_of_artifact();
  const runtime::Module module = runtime::Module::load(o.file, load);
  if (o.format == "html") return page_html({.title = title_of(o.file), .stored = &module});
  if (o.format == "json") return module.metadata() + "\n";
  std::string out;
  nlohmann::json meta = nlohmann::json::parse(module.metadata(), nullptr, false);
  for (const char* key : {"compiler", "target", "source", "source_hash"}) {
    if (meta.is_object() && meta.contains(key) && meta[key].is_string()) {
      out += std::string(key) + ": " + escape_for_terminal(meta[key].get<std::string>()) + "\n";
    }
  }
  if (meta.is_object() && meta.contains("opt_level"))
    out += "opt_level: " + meta["opt_level"].dump() + "\n";
  if (const auto versions = version_reports(o.file); versions.size() > 1) {
    out += "version: " + escape_for_terminal(module.info().version, 200) + " of " +
           version_names(versions) + "\n";
  }
  std::string features;
  for (const std::string& f : module.info().features) features += " " + f;
  for (const std::string& l : module.info().libraries) features += " " + escape_for_terminal(l);
  out += "needs: " + module.info().arch + features + "\n";
  if (module.info().denormals == runtime::Denormals::keep) out += "denormals: kept\n";
  out += "\n";
  for (const std::string& name : module.function_names()) {
    const runtime::Function& f = module.function(name);
    out += "@" + escape_for_terminal(name) + "\n";
    for (const auto& p : f.params)
      out += "  in   " + escape_for_terminal(p.name) + ": " + p.type_string() + "\n";
    for (const auto& r : f.results)
      out += "  out  " + escape_for_terminal(r.name) + ": " + r.type_string() + "\n";
  }
  if (o.bytecode) out += "\n" + runtime::to_string(module.program());
  return out;
}

int run_show(const ShowArgs& o, const Given& given) {
  refuse_existing(o.output, o.force);
  if (is_artifact(o.file)) {
    CompileFlags::refuse_for_artifact(given, o.file);
    given.refuse(
        {"--after", "--tir", "--llvm", "--asm", "--plan", "--hostcode", "--types", "--input"},
        "a compiled file", "give the model that it was compiled from");
    write_text(o.output, show_artifact(o), o.force);
    return 0;
  }
  ModelOptions model_options;
  for (const std::string& text : o.flags.inputs) parse_input_option(text, model_options);
  read_dim_options(o.flags.dims, model_options);
  read_freeze_options(o.flags.frozen, model_options);
  model_options.weights = read_params(o.flags.params);
  read_one_specialisation(o.flags.special, model_options);
  LoadedModel model = load_model(o.file, model_options);
  model.module = o.flags.with_inputs(model.module);
  CompileOptions options = o.flags.options();
  options.source_name = model.source_name;
  options.source_hash = model.source_hash;
  std::string out;
  const bool page = o.format == "html";
  if (page)
    given.refuse({"--tir", "--llvm", "--plan", "--bytecode", "--hostcode"}, "--format html",
                 "the page has the scheduled loops of each kernel; --asm adds its assembly");
  if (o.tir || o.llvm || (o.assembly && !page) || o.plan || o.bytecode || o.hostcode) {
    PlanText plan;
    if (o.plan) options.observers.push_back(&plan);
    CompiledModule compiled;
    std::string hostcode;
    if (o.llvm || o.assembly) {
      compiled = compile(model.module, options);
    } else {
      // Machine code is not requested.
      Bytecode bytecode = make_bytecode(optimize(model.module, options), options);
      if (o.tir) compiled.kernels = lower_kernels(bytecode);
      hostcode = hostcode::to_string(bytecode.host.program);
      compiled.program = std::move(bytecode.program);
    }
    if (o.tir) {
      for (const CompiledKernel& k : compiled.kernels) out += scheduled_text(k);
    }
    if (o.llvm) out += llvm_ir_text(compiled, options);
    if (o.assembly) out += assembly_text(compiled, options);
    if (o.plan) out += plan.text;
    if (o.hostcode) out += hostcode;
    if (o.bytecode) out += runtime::to_string(compiled.program);
    write_text(o.output, out, o.force);
    return 0;
  }
  Module mod = model.module;
  if (!o.after.empty()) {
    const Pass& last = find_pass(o.after);
    std::vector<const Pass*> pipeline = optimize_pipeline().passes();
    if (std::find(pipeline.begin(), pipeline.end(), &last) == pipeline.end()) {
      throw UserError(
          Diagnostic(codes::pass_unknown, {}, o.after + " is not a pass of the pipeline")
              .help("relay opt --passes " + o.after + " runs it by itself"));
    }
    StopAfter stop(o.after);
    CompileOptions stopping = options;
    stopping.instruments.push_back(&stop);
    mod = optimize(mod, stopping);
  }
  if (o.format == "json") {
    out = json_of(mod);
  } else if (o.format == "dot") {
    out = graph_dot(mod);
  } else if (page) {
    PageContent content{.title = title_of(o.file), .model = mod};
    // Kernels are those of the whole pipeline.
    std::optional<CompiledModule> compiled;
    PassHistory passes;
    if (o.after.empty()) {
      options.instruments.push_back(&passes);
      content.compiled = &compiled.emplace(compile(model.module, options));
      content.passes = &passes;
      if (o.assembly) content.assembly = kernel_assembly(*compiled, options);
    }
    out = page_html(content);
  } else {
    PrintOptions print;
    print.show_types = o.types;
    // The text of a large model is for people; its weights are left out unless it is written to a
    // file.
    print.show_metadata = o.output != "-";
    out = print_module(mod, print);
  }
  write_text(o.output, out, o.force);
  return 0;
}

}  // namespace

Command show_command() {
  auto o = std::make_shared<ShowArgs>();
  Command out{
      "show",
      "Show a program at any stage, or what an artifact holds",
      {argument("FILE", o->file, model_kinds("compiled .so")).or_input().required(),
       option("--format FORMAT", o->format, "text, json, dot or html")
           .choices({"text", "json", "dot", "html"}),
       option("--after PASS", o->after, "After this pass of the pipeline; without, as imported")
           .offers(pass_names()),
       option("--input NAME=SHAPE[:DTYPE]", o->flags.inputs, "Shape of an input; may be repeated"),
       option("-o,--output FILE", o->output, "Where to write; -: standard output"),
       flag("--tir", o->tir, "The scheduled tensor IR of every kernel"),
       flag("--llvm", o->llvm, "LLVM IR"),
       flag("--asm", o->assembly, "Assembly; with --format html, that of the chosen kernel"),
       flag("--plan", o->plan, "Steps between kernels, and where and how long every value is"),
       flag("--hostcode", o->hostcode,
            "The functions between kernels, before they are machine code"),
       flag("--bytecode", o->bytecode, "The instructions of the virtual machine"),
       flag("--types", o->types, "Show types in comments")},
      [o](const Given& given) { return run_show(*o, given); }};
  return std::move(out.add(o->flags.size_table(/*with_dims=*/true))
                       .add(o->flags.table())
                       .add(o->flags.guest_table())
                       .add({flag("--force", o->force, "Overwrite the output file")}));
}

}  // namespace relay::cli
