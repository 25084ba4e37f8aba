// Shapes as arguments: what converters of shape operators share.
#pragma once

#include <optional>
#include <vector>

#include "frontend/common/operands.h"

namespace relay::frontend {

// The number of elements of a shape that is known to be small.
int64_t count_of(const std::vector<int64_t>& shape);

// The product of dims[begin, end).
Dim product(const std::vector<Dim>& dims, size_t begin, size_t end);

// The shape of an input, without making an expression of what is only known; nullopt for what is no
// tensor.
std::optional<std::vector<Dim>> shape_of_input(const Operands& build, size_t input);

// The elements of an input that is a list of integers; E0505 when they are not known, E0506 when
// they are more than a tensor may have dimensions. `what` is "the new shape".
std::vector<Dim> shape_elements(const Operands& build, size_t input, const char* what);

// Whether a size can stand in an attribute: a number, or a term that is never below zero.
bool is_size(const Dim& d);

// Refuses negative dimensions (E0504) and sizes that overflow (E0506).
void check_sizes(const Builder& build, const std::vector<Dim>& shape);

}  // namespace relay::frontend
