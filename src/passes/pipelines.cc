#include "passes/pipelines.h"

#include <array>

#include "passes/alter_op_layout.h"
#include "passes/alternate_order.h"
#include "passes/combine_parallel.h"
#include "passes/compile_match.h"
#include "passes/convert_layout.h"
#include "passes/dead_code_elimination.h"
#include "passes/defunctionalization.h"
#include "passes/defuse_ops.h"
#include "passes/div_to_mul.h"
#include "passes/dynamic_to_static.h"
#include "passes/eliminate_common_subexpr.h"
#include "passes/eta_expand.h"
#include "passes/fast_math.h"
#include "passes/fold_constant.h"
#include "passes/fold_explicit_padding.h"
#include "passes/fold_scale_axis.h"
#include "passes/fuse_attention.h"
#include "passes/fuse_ops.h"
#include "passes/infer_type.h"
#include "passes/inline.h"
#include "passes/lambda_lift.h"
#include "passes/partial_evaluate.h"
#include "passes/remove_unused_functions.h"
#include "passes/simplify_expr.h"
#include "passes/simplify_inference.h"
#include "passes/sub_pixel_convolution.h"
#include "passes/to_a_normal_form.h"
#include "passes/to_basic_block_normal_form.h"
#include "passes/to_cps.h"
#include "passes/to_graph_normal_form.h"
#include "passes/winograd_convolution.h"

namespace relay {
namespace {

constexpr std::array kAll{
    &kAlterOpLayout,
    &kAlternateOrder,
    &kCombineParallelBatchMatmul,
    &kCombineParallelConv2D,
    &kCombineParallelDense,
    &kCompileMatch,
    &kConvertLayout,
    &kDeadCodeElimination,
    &kDefunctionalization,
    &kDefuseOps,
    &kDivToMul,
    &kDynamicToStatic,
    &kEliminateCommonSubexpr,
    &kEtaExpand,
    &kFastMath,
    &kFoldConstant,
    &kFoldExplicitPadding,
    &kFoldScaleAxis,
    &kFuseAttention,
    &kFuseOps,
    &kInferType,
    &kInline,
    &kLambdaLift,
    &kPartialEvaluate,
    &kRemoveUnusedFunctions,
    &kSimplifyExpr,
    &kSimplifyInference,
    &kSubPixelConvolution,
    &kToANormalForm,
    &kToBasicBlockNormalForm,
    &kToCPS,
    &kToGraphNormalForm,
    &kWinogradConvolution,
};

constexpr std::array kOptimize{
    &kRemoveUnusedFunctions,
    &kInline,           // from here on a function that is left is called often, or recursive
    &kPartialEvaluate,  // known data, closures and references are no more
    &kRemoveUnusedFunctions,
    &kSimplifyInference,  // no operator that only training needs is left
    &kDeadCodeElimination,
    &kToGraphNormalForm,  // pure values have no names: the next passes see along operands
    &kFoldConstant,
    &kDynamicToStatic,  // sizes that are known are part of types
    &kSimplifyExpr,
    &kDivToMul,
    &kFastMath,                // where it is asked for
    &kEliminateCommonSubexpr,  // equal operators with equal operands are one
    &kFuseAttention,           // before its products are combined with others
    &kFoldExplicitPadding,
    &kCombineParallelConv2D,
    &kCombineParallelDense,
    &kCombineParallelBatchMatmul,
    &kFoldScaleAxis,
    &kConvertLayout,
    &kSubPixelConvolution,
    &kWinogradConvolution,
    &kAlterOpLayout,
    &kSimplifyExpr,   // no layout is changed there and back
    &kFoldConstant,   // constant weights are in the layout in which kernels read them
    &kCompileMatch,   // from here on a match looks at one constructor
    &kFuseOps,        // from here on every operator call is inside a primitive function
    &kLambdaLift,     // from here on a function inside another is a kernel or a closure's body
    &kToANormalForm,  // from here on every operand is a leaf; sharing carries no meaning
    &kAlternateOrder,
};

}  // namespace

std::span<const Pass* const> all_passes() { return kAll; }
std::span<const Pass* const> optimize_pipeline() { return kOptimize; }

}  // namespace relay
