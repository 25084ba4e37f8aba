// A report on a model before anybody uses it: what it is made of, what is wrong with it, and what running it means.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "driver/model.h"

namespace relay {

// A diagnostic as JSON: severity, code, message, place, expected, found, help, notes (place, message).
nlohmann::ordered_json to_json(const Diagnostic& d);

// A model of a front end that reports on files (FrontEnd::check), as a JSON object:
//   ok            whether it can be imported and compiled
//   diagnostics   everything that is wrong with it, together
//   file          producer, opsets, operators (domain, name, opset, nodes, imported), nodes, parameters, parameter_bytes,
//                 open_sizes (name, and the inputs and axes that have it); metadata, where the file has any: name,
//                 description, version, author, license, inputs and outputs (name, title, description, image, mean, std,
//                 labels), files (name, bytes)
//   specialise    where the number of dimensions of something is open: the inputs that decide (input), and what of them:
//                 sizes, elements of a sequence, or the value (by); there is a program for each case of these
//   program       where it can be imported: inputs and outputs with their types; data_dependent: the nodes whose results
//                 have sizes that are data-dependent; kernels, constant_bytes, arena_bytes; working_memory, a
//                 formula of the open sizes in bytes, where there are any; flops of the kernels of
//                 known sizes, and open_kernels, of which only a run knows; plain_loops: the kernels with much arithmetic
//                 for which no schedule rule holds, and their nodes; libraries: those beside the runtime that it needs
// Throws UserError for a file that is no model of the front end at all. Nothing is compiled to machine code.
nlohmann::ordered_json check_imported_model(const FrontEnd& front_end, const std::string& path,
                                            const ModelOptions& options);

}  // namespace relay
