// Field types of the tensor IR.
#pragma once

#include "node/node.h"
#include "node/scalar_fields.h"
