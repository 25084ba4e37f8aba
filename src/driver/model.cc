#include "driver/model.h"

#include <cctype>
#include <fstream>

#include "base/codes/driver.h"
#include "driver/bind_params.h"
#include "driver/compile.h"
#include "driver/evaluate_constant.h"
#include "frontend/read_source.h"

namespace relay {
namespace {

// The first bytes of a file, enough to tell what it is.
std::string first_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) unreadable_file(path, "the file cannot be opened");
  std::string head(kSniffedBytes, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (in.bad() || (in.gcount() == 0 && !in.eof())) unreadable_file(path, "the file cannot be read");
  head.resize(static_cast<size_t>(in.gcount()));
  return head;
}

// Imports the model; where the rank of something is open, again with what is given of the inputs that decide.
ImportedModel import_specialised(const FrontEnd& front_end, const std::string& path,
                                 ImportOptions import, const ModelOptions& options,
                                 LoadedModel& out) {
  while (true) {
    try {
      return import_model(front_end, {.path = path, .weights = options.weights}, import);
    } catch (const RankIsOpen& e) {
      bool more = false;
      for (const DecidingInput& d : e.deciding()) {
        auto given = options.values.find(d.name);
        if (given == options.values.end() || d.by == DecidingInput::Elements) continue;
        const Tensor& value = given->second;
        const bool by_sizes = d.by == DecidingInput::Sizes;
        std::vector<int64_t> shape(value.shape().begin(), value.shape().end());
        if (by_sizes ? !import.shapes.emplace(d.name, shape).second
                     : !import.specialised.emplace(d.name, value).second) {
          continue;
        }
        more = true;
        SpecialisedInput& input = out.specialised.emplace_back(SpecialisedInput{d.name, shape, {}});
        if (by_sizes) continue;
        input.value.emplace();
        for (int64_t k = 0; k < value.num_elements(); ++k)
          input.value->push_back(value.get_as_int(k));
      }
      if (!more) throw;
    }
  }
}

}  // namespace

const FrontEnd& front_end_of(const std::string& path) {
  return front_end_for(path, first_bytes(path));
}

std::string model_kinds(std::string_view also) { return titles_of_front_ends(also); }

std::string SpecialisedInput::text() const {
  if (!value) return "shape " + runtime::shape_to_string(shape);
  std::string out;
  for (int64_t v : *value) out += (out.empty() ? "" : ", ") + std::to_string(v);
  return "value " + (shape.empty() ? out : "[" + out + "]");
}

LoadedModel load_model(const std::string& path, const ModelOptions& options) {
  initialize();
  const FrontEnd& front_end =
      options.front_end.empty() ? front_end_of(path) : front_end_named(options.front_end);
  ImportOptions import;
  import.shapes = options.shapes;
  import.dtypes = options.dtypes;
  import.dims = options.dims;
  import.numbers = options.numbers;
  import.frozen = options.frozen;
  import.evaluate = make_constant_evaluator();
  LoadedModel out;
  ImportedModel imported = import_specialised(front_end, path, std::move(import), options, out);
  out.format = front_end.name;
  out.module = imported.module;
  out.input_names = imported.input_names;
  out.output_names = imported.output_names;
  out.source_name = path;
  out.source_hash = imported.source_hash;
  if (options.weights && !front_end.takes_weights) {
    const Function before = out.module->find("main");
    out.module = bind_params(out.module, options.weights->tensors);
    // The names of the parameters that remain.
    const Function after = out.module->find("main");
    std::vector<std::string> names;
    for (size_t i = 0; before && i < before->params.size(); ++i) {
      // Those that remain are in their old order.
      const size_t next = names.size();
      if (next < after->params.size() && after->params[next] == before->params[i])
        names.push_back(out.input_names[i]);
    }
    out.input_names = std::move(names);
  }
  return out;
}

void parse_input_option(const std::string& text, ModelOptions& options) {
  auto bad = [&](const std::string& why) {
    throw UserError(
        Diagnostic(codes::driver_option, {},
                   "--input " + escape_for_terminal(text, 200) + " is not a shape: " + why)
            .expected("NAME=SHAPE or NAME=SHAPE:DTYPE")
            .help("for example --input data=1,3,224,224:float32"));
  };
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) bad("there is no NAME=");
  std::string name = text.substr(0, equals), shape = text.substr(equals + 1);
  if (options.shapes.contains(name)) bad("the input has a shape already");
  size_t colon = shape.find(':');
  if (colon != std::string::npos) {
    auto dtype = DType::parse(shape.substr(colon + 1));
    if (!dtype || dtype->lanes != 1)
      bad("there is no dtype '" + escape_for_terminal(shape.substr(colon + 1), 40) + "'");
    options.dtypes[name] = *dtype;
    shape.resize(colon);
  }
  std::vector<int64_t> dims;
  std::string number;
  auto flush = [&] {
    if (number.empty()) bad("a dimension is missing");
    char* end = nullptr;
    errno = 0;
    long long v = std::strtoll(number.c_str(), &end, 10);
    if (*end != '\0' || errno != 0 || v < -1)
      bad("'" + escape_for_terminal(number, 40) + "' is not a dimension");
    dims.push_back(v);
    number.clear();
  };
  for (char c : shape) {
    if (c == ',' || c == 'x') {
      flush();
    } else if (!std::isspace(static_cast<unsigned char>(c)) && c != '(' && c != ')') {
      number += c;
    }
  }
  if (!number.empty() ||
      (!shape.empty() && !dims.empty() && shape.back() != ')' && shape.back() != ',')) {
    flush();
  }
  options.shapes[name] = std::move(dims);
}

}  // namespace relay
