// The `.relay` text format, version 0.0.5: what prints, parses back to an equal module.
//
//   #[version = "0.0.5"]
//   def @main(%x: Tensor[(1, 4), float32]) -> Tensor[(1, 4), float32] {
//     %0 = nn.relu(%x);
//     add(%0, 1f)
//   }
//
// docs/text_format.md has the grammar. Beyond Relay's first life: named dimensions
// (`def @f[n: Dim](%x: Tensor[(n, 4), float32])`), `ref(T)` types and string escapes parse.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ir/module.h"

namespace relay {

struct PrintOptions {
  // `/* ty=... */` behind every call.
  bool show_types = false;
  // `/* span=... */` behind every call.
  bool show_spans = false;
  // Constants in a metadata section; without it they print as `meta[...]` and the text does not
  // parse back.
  bool show_metadata = true;
};

// Names, layout and numbering are the same for equal programs with equal name hints.
std::string print_module(const Module& mod, const PrintOptions& options = {});
// One expression, with free variables declared in front: `free_type [n: Dim];`, `free_var %x: T;`.
std::string print_expr(const Expr& expr, const PrintOptions& options = {});

// The type as `to_string` has it, cut behind `most` characters.
std::string print_type(const Type& type, size_t most);

// Parses a module; the types are as written, `infer_types` (types/infer.h) completes them. One call
// reports many errors: UserError with codes E01xx and E08xx, each with its place.
Module parse_module(std::shared_ptr<const SourceFile> source);
Module parse_module(std::string name, std::string text);
// The same for who goes on behind errors, which are collected in `diags`: the module holds what can
// be checked further, without what depends on a mistake. A function with a mistake in its body is
// there by its signature, with another body.
Module parse_module(std::shared_ptr<const SourceFile> source, Diagnostics& diags);
// The module with those definitions of a file of the prelude, "prelude.rly", "nat.rly" or
// "tensor_array.rly", that it lacks; `infer_types` completes the types. UserError E0103 for another
// file. A module that is parsed has what it reaches of them already (ir/text/prelude/prelude.h).
Module import_prelude(const Module& mod, std::string_view file);
// A single expression, version header optional. Free variables are those in `scope` or declared in
// front.
Expr parse_expr(std::string name, std::string text, const std::map<std::string, Expr>& scope = {});
// A type, "Tensor[(1, 3), float32]".
Type parse_type(std::string text);
// Attribute values in text form, "axis=1, keepdims=True", for an operator's attributes.
Attrs parse_attrs(const NodeInfo& info, std::string text, std::string_view op_name);

}  // namespace relay
