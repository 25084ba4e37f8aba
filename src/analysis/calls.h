// Reading and making operator calls by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace relay {

// A call of an operator with some attributes, the others as its row has them, at the place of another call or of `at`.
Expr make_call(std::string_view op, std::vector<Expr> args,
               const std::vector<std::pair<std::string, AttrValue>>& attrs, const CallNode& at);
Expr make_call(std::string_view op, std::vector<Expr> args,
               const std::vector<std::pair<std::string, AttrValue>>& attrs, const Span& at);

// The same operator on other arguments, with some of its attributes changed.
Expr with_attrs(const CallNode& c, std::vector<Expr> args,
                std::vector<std::pair<std::string, AttrValue>> changes);

const TensorTypeNode* tensor_of(const Expr& e);
std::optional<std::vector<int64_t>> static_shape(const Expr& e);
// Certainly the same shape, symbolic sizes included; never with `?`.
bool same_shape(const Type& a, const Type& b);
bool same_shape(const Expr& a, const Expr& b);
// One expression, or constants of equal elements.
bool same_value(const Expr& a, const Expr& b);
AttrValue to_value(const std::vector<int64_t>& list);
// A list of integers; nullopt for None.
std::optional<std::vector<int64_t>> ints_attr(const CallNode& c, std::string_view name);
// An attribute that the operator has, of the type that it has there.
int64_t int_attr(const CallNode& c, std::string_view name);
bool bool_attr(const CallNode& c, std::string_view name);
double float_attr(const CallNode& c, std::string_view name);
std::string text_attr(const CallNode& c, std::string_view name);

}  // namespace relay
