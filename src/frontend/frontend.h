// Front ends: each reads the models of one system and builds Relay programs. A front end is a row of an open list.
//
//   register_front_end({.name = "toy", .title = "toy model", .endings = {".toy"},
//                       .sniff = [](std::string_view head) { return head.starts_with("toy 1\n"); },
//                       .import = import_toy});
//
// Everything above the front ends - the command, Python, the driver - works through the rows and names none of them.
// frontend/common holds what front ends build programs with; docs/adding_a_front_end.md adds one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/common/front_end.h"

namespace relay {

// Adds a row, which lives as long as the process. E0513 when there is one of that name.
void register_front_end(FrontEnd row);
// All rows in the order in which they were added, those that are built in first.
std::vector<const FrontEnd*> front_ends();
// E0514 when there is no such front end.
const FrontEnd& front_end_named(std::string_view name);
// The front end for a file that begins with `head`: the one that knows its content, else the one that has the ending of
// its name. E0512 when two claim it, E0514 when none does.
const FrontEnd& front_end_for(const std::string& path, std::string_view head);
// "ONNX model, Relay text or compiled .so": what can be given as a model, and what `also` names.
std::string titles_of_front_ends(std::string_view also = {});

// Imports through a row. E0515 for own options that it does not have.
ImportedModel import_model(const FrontEnd& front_end, const ModelSource& source,
                           const ImportOptions& options);

}  // namespace relay
