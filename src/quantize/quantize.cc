#include "quantize/quantize.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "analysis/calls.h"
#include "base/codes/driver.h"
#include "driver/options.h"
#include "ir/op.h"
#include "node/walk.h"
#include "passes/pass_list.h"
#include "quantize/layers.h"
#include "runtime/profiler.h"

namespace relay::quantize {
namespace {

using Ints = std::vector<int64_t>;
using Results = std::vector<Tensor>;

// Scales and shifts before and after a layer are in its weights, paddings in its attributes.
Module prepare(const Module& mod, const CompileOptions& options) {
  static constexpr const char* kPasses[] = {
      "RemoveUnusedFunctions",  "Inline",
      "PartialEvaluate",        "RemoveUnusedFunctions",
      "SimplifyInference",      "FoldConstant",
      "DeadCodeElimination",    "ToGraphNormalForm",
      "FoldConstant",           "DynamicToStatic",
      "SimplifyExpr",           "DivToMul",
      "EliminateCommonSubexpr", "FoldExplicitPadding",
      "FoldScaleAxis",          "FoldConstant",
  };
  PassContext ctx = pass_context(options);
  // Layers in functions of @main's own, such as the methods of a model: their calls are inlined.
  ctx.config["relay.PartialEvaluate.calls"] = AttrValue(true);
  std::vector<const Pass*> passes;
  for (const char* name : kPasses) passes.push_back(&find_pass(name));
  return run_passes(mod, passes, ctx);
}

UserError bad_data(const std::string& message, const std::string& help) {
  return UserError(Diagnostic(codes::driver_calibration, {}, message).help(help));
}

class Quantizer {
 public:
  Quantizer(const Module& mod, const Samples& samples, const Options& options)
      : samples_(samples), options_(options) {
    check_options();
    layers_ = find_layers(prepare(mod, options.compile), options.form);
    choose_layers();
  }

  Quantized run() {
    find_ranges();
    find_errors();
    reference_ = compile_and_run(layers_.module, "float program",
                                 [&](size_t, const Results& r) { expected_.push_back(r); });
    if (options_.score) report_.score = options_.score(reference_->module);
    Candidate best = search();
    report_.output_error = best.error;
    report_.agreement = best.agreement;
    report_.quantized_score = best.score;
    report_.calibration = options_.calibration;
    report_.samples = samples_.size();
    describe_layers(best);
    measure(best);
    return {best.source, std::move(report_)};
  }

 private:
  // A compiled program, and the source locations of each of its kernels.
  struct Ready {
    runtime::Module module;
    std::vector<std::vector<std::string>> places;
  };
  // A program with some layers quantised, and how it does.
  struct Candidate {
    std::vector<bool> chosen;
    Module source;
    std::optional<Ready> ready;
    double error = 0;
    std::optional<double> agreement, score;
    bool reaches_aims = false;
  };

  void check_options() const {
    auto refuse = [](const std::string& what) {
      throw UserError(Diagnostic(codes::driver_option, {}, what));
    };
    if (samples_.empty()) {
      throw bad_data(
          "there are no samples to calibrate with",
          "give inputs like those that the model will meet, a hundred of them are enough");
    }
    const Options& o = options_;
    if (!(o.percentile > 50 && o.percentile <= 100))
      refuse("a percentile is above 50 and at most 100");
    if (!(o.global_scale > 0 && std::isfinite(o.global_scale)))
      refuse("a global scale is above 0 and finite");
    if (o.max_error && !(*o.max_error >= 0)) refuse("the largest error is not below 0");
    if (o.min_agreement && !(*o.min_agreement >= 0 && *o.min_agreement <= 1))
      refuse("an agreement is from 0 to 1");
    if (o.max_loss && !(*o.max_loss >= 0)) refuse("the largest loss is not below 0");
    if (o.max_loss.has_value() && !o.score) refuse("a loss is one of a score, and none is given");
  }

  void choose_layers() {
    constexpr size_t kNamed = 12;
    std::string names;
    for (size_t i = 0; i < layers_.layers.size(); ++i) {
      if (i < kNamed) names += (i == 0 ? "" : ", ") + layers_.layers[i].name;
      if (i == kNamed)
        names += ", ... (the report lists all " + std::to_string(layers_.layers.size()) + ")";
    }
    for (const std::string& name : options_.keep_float) {
      auto is_named = [&](const Layer& layer) { return layer.name == name; };
      auto found = std::ranges::find_if(layers_.layers, is_named);
      if (found == layers_.layers.end()) {
        throw UserError(Diagnostic(codes::driver_option, {},
                                   "there is no layer '" + name + "' to keep in floats")
                            .expected("one of " + names));
      }
      if (found->quantizable()) found->obstacle = "kept in floats as asked for";
    }
    keep_by_kind();
    for (const Layer& layer : layers_.layers) quantizable_.push_back(layer.quantizable());
    if (std::ranges::find(quantizable_, true) != quantizable_.end()) return;
    std::string why;
    for (const Layer& layer : layers_.layers) why += "; " + layer.name + ": " + layer.obstacle;
    throw bad_data("no layer of the program can be quantised",
                   layers_.layers.empty()
                       ? "@main has no convolution and no product with a matrix of weights"
                       : "what each would need: " + why.substr(2));
  }

  // The obstacles of layers that stay in floats as convolutions of a number, or as no convolutions.
  void keep_by_kind() {
    std::vector<Layer*> convolutions;
    for (Layer& layer : layers_.layers) {
      auto* op = as<OpNode>(layer.call->op);
      if (op != nullptr && op->row->window) {
        convolutions.push_back(&layer);
      } else if (options_.skip_dense_layer && layer.quantizable()) {
        layer.obstacle = "kept in floats as asked for";
      }
    }
    for (int64_t i : options_.skip_conv_layers) {
      if (i < 0 || static_cast<size_t>(i) >= convolutions.size()) {
        throw UserError(
            Diagnostic(codes::driver_option, {},
                       "there is no convolution " + std::to_string(i) + " to keep in floats")
                .expected("0 or more, and below their number, " +
                          std::to_string(convolutions.size())));
      }
      Layer& layer = *convolutions[static_cast<size_t>(i)];
      if (layer.quantizable()) layer.obstacle = "kept in floats as asked for";
    }
  }

  void progress(const std::string& phase, size_t done) const {
    if (!options_.compile.progress) return;
    options_.compile.progress(phase, static_cast<int64_t>(done),
                              static_cast<int64_t>(samples_.size()));
  }

  Ready compiled(const Module& mod) const {
    CompileOptions options = options_.compile;
    options.progress = nullptr;
    options.source_name.clear();  // locations are those of spans
    runtime::LoadOptions load;
    load.num_threads = options.num_threads;
    CompiledModule made = compile(mod, options);
    Ready out{made.load(load), {}};
    for (const CompiledKernel& k : made.kernels) {
      std::vector<std::string>& places = out.places.emplace_back();
      for (const KernelSite& site : k.sites) split_places(site.origin, places);
    }
    return out;
  }

  // The parts of a joined span's description.
  static void split_places(std::string_view joined, std::vector<std::string>& out) {
    constexpr std::string_view kBetween = " + ";
    for (;;) {
      size_t end = joined.find(kBetween);
      out.emplace_back(joined.substr(0, end));
      if (end == joined.npos) return;
      joined.remove_prefix(end + kBetween.size());
    }
  }

  // Runs a program on every sample.
  Ready compile_and_run(const Module& mod, const std::string& phase,
                        const std::function<void(size_t, const Results&)>& see) const {
    progress(phase, 0);
    Ready out = compiled(mod);
    for (size_t i = 0; i < samples_.size(); ++i) {
      see(i, out.module.run("main", samples_[i]));
      progress(phase, i + 1);
    }
    return out;
  }

  void find_ranges() {
    std::vector<Histogram> histograms(layers_.sources.size());
    Module observed = layers_.with_results(layers_.sources);
    Ready ready = compile_and_run(observed, "ranges", [&](size_t sample, const Results& tensors) {
      for (size_t i = 0; i < tensors.size(); ++i) {
        if (!histograms[i].extend(tensors[i])) refuse_sample(sample, i);
      }
    });
    const double most = options_.global_scale;
    if (options_.calibration == Calibration::global_scale) {
      parameters_.ranges.assign(histograms.size(), Range{-most, most});
      return;
    }
    if (options_.calibration != Calibration::min_max) {
      for (size_t s = 0; s < samples_.size(); ++s) {
        Results tensors = ready.module.run("main", samples_[s]);
        for (size_t i = 0; i < tensors.size(); ++i) histograms[i].count(tensors[i]);
        progress("histograms", s + 1);
      }
    }
    for (const Histogram& h : histograms)
      parameters_.ranges.push_back(h.choose(options_.calibration, options_.percentile));
  }

  [[noreturn]] void refuse_sample(size_t sample, size_t source) const {
    auto reads_it = [&](const Layer& l) { return l.quantizable() && l.source == source; };
    const Layer& layer = *std::ranges::find_if(layers_.layers, reads_it);
    throw bad_data(
        "sample " + std::to_string(sample) + " gives numbers that are not finite to the layer '" +
            layer.name + "'",
        "NaN and infinity have no integer; look at the sample, or keep the layer in floats");
  }

  // How much each layer loses on exact data, and its mean error by output channel.
  void find_errors() {
    // Of each layer: the error's mean by channel, or 0 where there are no channels, its mean square, that of the exact
    // result.
    std::vector<Expr> results;
    for (const Layer& layer : layers_.layers) {
      if (!layer.quantizable()) continue;
      const Call& c = layer.call;
      Expr error = make_call("subtract",
                             {quantized_layer(layer, factors_of(*c)[0],
                                              parameters_.ranges[layer.source], layers_.form),
                              c},
                             {}, c->span);
      auto mean = [&](const Expr& e) { return make_call("mean", {e}, {}, c->span); };
      auto square = [&](const Expr& e) { return make_call("multiply", {e, e}, {}, c->span); };
      results.push_back(layer.channels
                            ? make_call("mean", {error},
                                        {{"axis", to_value(Ints{layer.channels->result_axis})},
                                         {"exclude", true}},
                                        c->span)
                            : mean(error));
      results.push_back(mean(square(error)));
      results.push_back(mean(square(c)));
    }
    std::vector<std::vector<double>> sums(results.size());
    compile_and_run(layers_.with_results(results), "errors of layers",
                    [&](size_t, const Results& found) {
                      for (size_t i = 0; i < found.size(); ++i) {
                        auto n = static_cast<size_t>(found[i].num_elements());
                        sums[i].resize(n, 0);
                        for (size_t j = 0; j < n; ++j)
                          sums[i][j] += found[i].get_as_double(static_cast<int64_t>(j));
                      }
                    });
    auto count = static_cast<double>(samples_.size());
    parameters_.corrections.resize(layers_.layers.size());
    errors_.resize(layers_.layers.size(), 0);
    for (size_t i = 0, at = 0; i < layers_.layers.size(); ++i) {
      const Layer& layer = layers_.layers[i];
      if (!layer.quantizable()) continue;
      double square = sums[at + 1][0] / count, of_exact = sums[at + 2][0] / count;
      if (options_.bias_correction && layer.channels) {
        const std::vector<double>& means = sums[at];
        Tensor correction = Tensor::empty(DType::Float(32), {static_cast<int64_t>(means.size())});
        double removed = 0;
        for (size_t j = 0; j < means.size(); ++j) {
          double mean = means[j] / count;
          correction.set_from_double(static_cast<int64_t>(j), -mean);
          removed += mean * mean / static_cast<double>(means.size());
        }
        square = std::max(0.0, square - removed);
        parameters_.corrections[i] = correction;
      }
      errors_[i] = of_exact > 0 ? std::sqrt(square / of_exact) : 0;
      at += 3;
    }
  }

  bool has_aims() const {
    return options_.max_error || options_.min_agreement || options_.max_loss;
  }

  Candidate evaluate(const std::vector<bool>& chosen) {
    Candidate out;
    out.chosen = chosen;
    out.source = with_quantized(layers_, chosen, parameters_);
    double error = 0, exact = 0;
    int64_t rows = 0, agreeing = 0;
    ++report_.tried;
    out.ready = compile_and_run(
        out.source, "program " + std::to_string(report_.tried), [&](size_t s, const Results& got) {
          const Results& want = expected_[s];
          for (size_t i = 0; i < got.size(); ++i) {
            if (!want[i].dtype().is_floating()) continue;
            for (int64_t j = 0; j < want[i].num_elements(); ++j) {
              double w = want[i].get_as_double(j), d = got[i].get_as_double(j) - w;
              error += d * d;
              exact += w * w;
            }
          }
          count_agreement(got[0], want[0], rows, agreeing);
        });
    out.error = error == 0 ? 0 : std::sqrt(error / exact);
    if (rows > 0) out.agreement = static_cast<double>(agreeing) / static_cast<double>(rows);
    if (options_.score) out.score = options_.score(out.ready->module);
    if (options_.min_agreement && !out.agreement) {
      throw UserError(Diagnostic(codes::driver_option, {},
                                 "an agreement is one of rows, and the first result has none"));
    }
    out.reaches_aims = (!options_.max_error || out.error <= *options_.max_error) &&
                       (!options_.min_agreement || *out.agreement >= *options_.min_agreement) &&
                       (!options_.max_loss || *report_.score - *out.score <= *options_.max_loss);
    return out;
  }

  static void count_agreement(const Tensor& got, const Tensor& want, int64_t& rows,
                              int64_t& agreeing) {
    if (!want.dtype().is_floating() || want.rank() == 0 || want.num_elements() == 0) return;
    int64_t width = want.dim(static_cast<size_t>(want.rank()) - 1);
    if (width < 2) return;
    auto largest = [&](const Tensor& t, int64_t row) {
      int64_t best = 0;
      for (int64_t i = 1; i < width; ++i) {
        if (t.get_as_double(row * width + i) > t.get_as_double(row * width + best)) best = i;
      }
      return best;
    };
    int64_t count = want.num_elements() / width;
    rows += count;
    for (int64_t r = 0; r < count; ++r) agreeing += largest(got, r) == largest(want, r);
  }

  // The fewest layers in floats, those with the largest loss first, with which the aims are
  // reached. Bisection: it assumes that more floats are nearer to the aims.
  Candidate search() {
    std::vector<size_t> order;
    for (size_t i = 0; i < quantizable_.size(); ++i) {
      if (quantizable_[i]) order.push_back(i);
    }
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return errors_[i]; });
    auto with_floats = [&](size_t floats) {
      std::vector<bool> chosen = quantizable_;
      for (size_t i = 0; i < floats; ++i) chosen[order[i]] = false;
      return evaluate(chosen);
    };
    Candidate all = with_floats(0);
    if (!has_aims() || all.reaches_aims) return all;
    size_t missed = 0, reached = order.size();
    std::optional<Candidate> best;
    while (reached - missed > 1) {
      size_t middle = missed + (reached - missed) / 2;
      Candidate next = with_floats(middle);
      if (next.reaches_aims) {
        reached = middle;
        best = std::move(next);
      } else {
        missed = middle;
      }
    }
    return best ? std::move(*best) : with_floats(reached);
  }

  void describe_layers(const Candidate& best) {
    for (size_t i = 0; i < layers_.layers.size(); ++i) {
      const Layer& layer = layers_.layers[i];
      LayerReport r;
      r.name = layer.name;
      r.op = as<OpNode>(layer.call->op)->name;
      r.result = to_string(layer.call->type);
      r.quantized = best.chosen[i];
      r.flops = layer.flops();
      r.weight_bytes = r.quantized_weight_bytes = layer.weight_bytes();
      if (layer.quantizable()) {
        r.range = parameters_.ranges[layer.source];
        r.scale = scale_of(r.range, options_.form.data);
        r.error = errors_[i];
        r.obstacle = r.quantized ? "" : "loses more than the aims allow";
      } else {
        r.obstacle = layer.obstacle;
      }
      if (r.quantized) {
        int64_t scales = layer.by_channel ? layer.channels->count : 1;
        r.quantized_weight_bytes = layer.weight_bytes() / 4 + 4 * scales;
      }
      report_.layers.push_back(std::move(r));
    }
  }

  // As a program stores them, before layouts and transforms that a target chooses: each tensor once.
  static int64_t constant_bytes(const Module& module) {
    int64_t out = 0;
    std::unordered_set<const void*> seen;
    for (const Function& f : module->functions) {
      post_order(
          f->body,
          [&](const Node& n) {
            auto* c = as<ConstantNode>(&n);
            if (c != nullptr && seen.insert(c->data.data()).second)
              out += static_cast<int64_t>(c->data.byte_size());
          },
          family::program);
    }
    return out;
  }

  // As the compiled program has them: packed for the target, convolution filters transformed.
  static int64_t compiled_bytes(const runtime::Module& module) {
    int64_t out = 0;
    for (const Tensor& t : module.program().constants) out += static_cast<int64_t>(t.byte_size());
    return out;
  }

  // Both programs alternately, so that other load of the machine affects both.
  void measure(const Candidate& best) {
    report_.constant_bytes = constant_bytes(layers_.module);
    report_.quantized_constant_bytes = constant_bytes(best.source);
    report_.compiled_bytes = compiled_bytes(reference_->module);
    report_.quantized_compiled_bytes = compiled_bytes(best.ready->module);
    runtime::Profiler profiles[2];
    const Ready* programs[] = {&*reference_, &*best.ready};
    double least[] = {HUGE_VAL, HUGE_VAL};
    using Clock = std::chrono::steady_clock;
    constexpr int kLeastRuns = 5, kMostRuns = 200;
    constexpr auto kTime = std::chrono::milliseconds(500);
    auto begin = Clock::now();
    for (int run = 0; run < kMostRuns && (run < kLeastRuns || Clock::now() - begin < kTime);
         ++run) {
      for (int m = 0; m < 2; ++m) {
        auto start = Clock::now();
        programs[m]->module.run("main", samples_[0]);
        least[m] = std::min(least[m], std::chrono::duration<double>(Clock::now() - start).count());
        runtime::RunOptions profiled;
        profiled.profiler = &profiles[m];
        programs[m]->module.run("main", samples_[0], profiled);
      }
    }
    report_.seconds = least[0];
    report_.quantized_seconds = least[1];
    for (int m = 0; m < 2; ++m) {
      for (const auto& row : profiles[m].rows(programs[m]->module.program())) {
        add_time(programs[m]->places[static_cast<size_t>(row.kernel)],
                 static_cast<double>(row.min_ns) * 1e-9, m == 1);
      }
    }
  }

  // A kernel's time counts for every layer that it implements: several layers may share one kernel,
  // each with a separate run.
  void add_time(const std::vector<std::string>& places, double seconds, bool quantized) {
    for (size_t i = 0; i < layers_.layers.size(); ++i) {
      const Span& span = layers_.layers[i].call->span;
      std::string place = (span.parts().empty() ? span : span.parts().front()).describe();
      if (place.empty() || std::ranges::find(places, place) == places.end()) continue;
      LayerReport& r = report_.layers[i];
      (quantized ? r.quantized_seconds : r.seconds) += seconds;
    }
  }

  const Samples& samples_;
  const Options& options_;
  Layers layers_;
  std::vector<bool> quantizable_;
  Parameters parameters_;
  std::vector<double> errors_;  // of layers
  std::optional<Ready> reference_;
  std::vector<Results> expected_;  // of samples
  Report report_;
};

}  // namespace

size_t Report::quantized_layers() const {
  return static_cast<size_t>(
      std::ranges::count_if(layers, [](const LayerReport& l) { return l.quantized; }));
}

Quantized quantize_model(const Module& mod, const Samples& samples, const Options& options) {
  initialize();
  check_options(options.compile);
  return Quantizer(mod, samples, options).run();
}

}  // namespace relay::quantize
