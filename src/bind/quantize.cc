// relay.quantize.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/compiler.h"
#include "bind/exchange.h"
#include "bind/settings.h"
#include "bind/unlocked.h"
#include "bind/wrong_argument.h"
#include "driver/evaluate.h"
#include "quantize/report.h"
#include "types/infer.h"

namespace relay::bind {
namespace {

double number(nb::handle value, const std::string& name) {
  double out = PyFloat_AsDouble(value.ptr());
  if (out != -1.0 || PyErr_Occurred() == nullptr) return out;
  PyErr_Clear();
  throw WrongArgument((name + " is a number, not " + python_text(value)).c_str());
}

// What the package hands on: every name is one of this table's, or the package's own mistake.
quantize::Options make_quantize_options(nb::dict given) {
  quantize::Options out;
  for (auto [key, value] : given) {
    std::string name = to_text(key, "the name of a setting");
    if (name == "calibration") {
      out.calibration = quantize::calibration_of(to_text(value, "a method")).value();
    } else if (name == "percentile") {
      out.percentile = number(value, name);
    } else if (name == "per_channel") {
      out.form.per_channel = value.ptr() == Py_True;
    } else if (name == "dtype_input") {
      out.form.data = DType::parse(to_text(value, "a dtype")).value();
    } else if (name == "weight_scale") {
      out.form.power2_weights = to_text(value, "a scale") == "power2";
    } else if (name == "rounding") {
      out.form.rounding = to_text(value, "a rounding");
    } else if (name == "bias_correction") {
      out.bias_correction = value.ptr() == Py_True;
    } else if (name == "keep_float") {
      for (nb::handle layer : nb::iter(value))
        out.keep_float.push_back(to_text(layer, "the name of a layer"));
    } else if (name == "global_scale") {
      out.global_scale = number(value, name);
    } else if (name == "skip_conv_layers") {
      for (nb::handle index : nb::iter(value))
        out.skip_conv_layers.push_back(nb::cast<int64_t>(index));
    } else if (name == "skip_dense_layer") {
      out.skip_dense_layer = value.ptr() == Py_True;
    } else if (name == "max_error") {
      out.max_error = number(value, name);
    } else if (name == "min_agreement") {
      out.min_agreement = number(value, name);
    } else if (name == "max_loss") {
      out.max_loss = number(value, name);
    } else if (name == "score") {
      // Called with Python's lock held; the function lives as long as the dictionary.
      nb::handle score = value;
      out.score = [score](const runtime::Module& module) {
        PythonLock lock;
        return number(score(nb::cast(Executable{module, nullptr, "", nullptr})), "a score");
      };
    }
  }
  return out;
}

// The program, its report as JSON, the cells of its table (the header first), its totals, and a page.
nb::tuple quantize_program(const PyModule& mod, nb::list dataset, nb::dict given,
                           nb::handle settings) {
  quantize::Options options = make_quantize_options(given);
  Settings compile_settings = make_options(settings);
  options.compile = compile_settings;
  Module typed = compile_unlocked([&] { return whole(mod); });
  runtime::Function main = signature_of(typed, "main");
  quantize::Samples samples;
  for (nb::handle sample : dataset) {
    bool named = PyDict_Check(sample.ptr()) != 0;
    Exchange exchange;
    std::vector<runtime::Value> values =
        collect_arguments(main, typed, named ? nb::tuple() : nb::tuple(nb::borrow(sample)),
                          named ? nb::cast<nb::dict>(sample) : nb::dict(), exchange);
    std::vector<Tensor>& tensors = samples.emplace_back();
    for (const runtime::Value& v : values) {
      if (!runtime::flatten_tensors(v, tensors))
        throw WrongArgument("a sample of quantize() is made of tensors");
    }
  }
  quantize::Quantized out =
      compile_unlocked([&] { return quantize_model(typed, samples, options); });
  quantize::Cells cells = layer_cells(out.report);
  cells.rows.insert(cells.rows.begin(), cells.header);
  std::string name = mod.source_name.empty()
                         ? "program"
                         : mod.source_name.substr(mod.source_name.find_last_of('/') + 1);
  return nb::make_tuple(PyModule{out.module, mod.source_name, mod.source_hash}, to_json(out.report),
                        cells.rows, totals(out.report), to_html(out.report, name + ", quantised"));
}

}  // namespace

void bind_quantize(nb::module_& m) {
  m.def("quantize", &quantize_program, nb::arg("mod"), nb::arg("dataset"), nb::arg("options"),
        nb::arg("settings"));
}

}  // namespace relay::bind
