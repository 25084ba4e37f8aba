#include "ops/random_attrs.h"

namespace relay::ops {

#define RELAY_INFO(Name, ...)                                                             \
  const NodeInfo& Name::static_info() {                                                   \
    static const NodeInfo info = describe_attrs<Name>("relay.attrs." #Name, __VA_ARGS__); \
    return info;                                                                          \
  }

RELAY_INFO(ThreefryGenerateAttrs,
           {attribute("out_shape", &ThreefryGenerateAttrs::out_shape, "Shape of the numbers.")})
RELAY_INFO(UniformAttrs, {attribute("out_shape", &UniformAttrs::out_shape, "Shape of the numbers."),
                          attribute("out_dtype", &UniformAttrs::out_dtype,
                                    "dtype of the numbers; unset: that of the bounds.")})
RELAY_INFO(NormalAttrs, {attribute("out_shape", &NormalAttrs::out_shape, "Shape of the numbers."),
                         attribute("out_dtype", &NormalAttrs::out_dtype,
                                   "dtype of the numbers; unset: that of the mean.")})
RELAY_INFO(MultinomialAttrs, {attribute("num_samples", &MultinomialAttrs::num_samples,
                                        "How many are drawn from each distribution.")})

#undef RELAY_INFO

}  // namespace relay::ops
