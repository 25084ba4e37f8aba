#include "passes/pipelines.h"

#include <algorithm>

#include "base/codes/passes.h"

namespace relay {
namespace {

// Weights from which on it is felt that they are moved twice.
constexpr int64_t kLargeWeight = int64_t{1} << 20;

Pipeline::Step phase(const char* name) { return {name, nullptr, Form::any}; }
Pipeline::Step pass(const Pass& p, Form from_here_on = Form::any) { return {"", &p, from_here_on}; }
// FoldConstant before layouts are chosen: what packs a large weight turns it as well.
Pipeline::Step fold_before_packing() {
  return {"",
          &kFoldConstant,
          Form::any,
          {{"relay.FoldConstant.keep_transposes", AttrValue(kLargeWeight)}}};
}

std::vector<Pipeline::Step> optimize_steps() {
  return {
      phase("import"),
      phase("structure"),
      pass(kRemoveUnusedFunctions),
      pass(
          kCompileExternalFunctions),  // what their code generators refuse is optimised like the rest
      pass(kBatchTrees),               // where it is asked for
      pass(kInline),           // from here on a function that is left is called often, or recursive
      pass(kPartialEvaluate),  // known data, closures and references are eliminated
      pass(kRemoveUnusedFunctions),
      phase("simplify"),
      pass(kSimplifyInference),  // no operator that only training needs is left
      pass(kDeadCodeElimination),
      pass(kToGraphNormalForm),  // pure values have no names: the next passes see along operands
      pass(kPlanDevices),        // from here on copies tell where values are
      fold_before_packing(),     // scales and zero points are known
      pass(kFakeQuantizationToInteger),  // sums of quantised numbers are sums of integers
      pass(kCanonicalizeOps),            // no operator that is defined by others is left
      fold_before_packing(),
      pass(kDynamicToStatic),  // sizes that are known are part of types
      pass(kCombineUpdates),   // lines that a loop of known length writes are one tensor
      pass(kSimplifyExpr),
      pass(kDivToMul),
      pass(kFastMath),                // where it is asked for
      pass(kEliminateCommonSubexpr),  // equal operators with equal operands are one
      phase("combine"),
      pass(kFuseAttention),  // before its products are combined with others
      pass(kFoldExplicitPadding),
      pass(kCombineSummands),  // before products get their layouts
      pass(kCombineParallelConv2D),
      pass(kCombineParallelDense),
      pass(kCombineParallelBatchMatmul),
      pass(kFoldScaleAxis),
      pass(kWidenHalfPrecision),  // contractions have one of the dtypes that kernels compute in
      phase("layout"),
      pass(kIm2Col),  // weights that few pixels read have no layout of their own
      pass(kConvertLayout),
      pass(kSubPixelConvolution),
      pass(kSkipBorder),
      pass(kWinogradConvolution),
      pass(kAlterOpLayout),
      pass(kHoistLayouts),  // what a loop reads in a layout of its own is in that layout before it
      pass(kSimplifyExpr),  // no layout is changed there and back
      pass(kEliminateCommonSubexpr),  // and none is changed twice for two readers
      pass(kFoldConstant),   // constant weights are in the layout in which kernels read them
      pass(kPrepackInputs),  // and inputs that stay the same for many runs, where it is asked for
      phase("fusion"),
      pass(kPlaceExternalFunctions),  // they are kernels, with bodies of their own
      pass(kOutlineLoops),            // loops of numbers are kernels
      pass(
          kCompileMatch),  // matches ask one question each, but for those whose tree would be far larger
      pass(kFuseOps, Form::fused),
      pass(kChooseDevices),  // where the program says nothing
      pass(kPlaceKernels),
      pass(kRecomputeValues),  // large values that are cheap are not kept
      pass(
          kShareKernels),  // the steps of a loop that was written out are calls of the same kernels
      phase("normal_form"),
      pass(kLambdaLift, Form::lifted),
      pass(kToANormalForm, Form::anf),  // sharing carries no meaning
      pass(kOmitFills),                 // what a loop writes line by line
      pass(kJoinKernels),               // small kernels of a loop are one
      pass(kAlternateOrder),
  };
}

[[noreturn]] void no_place(const Pass& pass, std::string_view place,
                           const std::vector<Pipeline::Step>& steps) {
  std::string places;
  for (const Pipeline::Step& s : steps) {
    if (s.pass == nullptr) places += (places.empty() ? "" : ", ") + s.phase;
  }
  throw UserError(
      Diagnostic(codes::pass_registration, {},
                 "the pass '" + pass.name + "' cannot be added: there is no place '" +
                     std::string(place) + "'")
          .expected("before: or after: and a pass of the pipeline, or one of the phases " +
                    places));
}

bool lacks_disabled(const Module& mod, Form form, const PassContext& ctx) {
  auto defect = find_form_defect(mod, form);
  if (!defect) return false;
  for (const Pass* p : builtin_passes()) {
    if (has(p->out, defect->form) && ctx.disabled_pass.contains(p->name)) return true;
  }
  return false;
}

}  // namespace

void Pipeline::insert(const Pass& pass, std::string_view place) {
  bool before = place.starts_with("before:");
  if (!before && !place.starts_with("after:")) no_place(pass, place, steps_);
  std::string_view name = place.substr(place.find(':') + 1);
  auto is_named = [&](const Step& s) {
    return s.pass == nullptr ? s.phase == name : s.pass->name == name;
  };
  auto first = std::find_if(steps_.begin(), steps_.end(), is_named);
  if (name.empty() || first == steps_.end()) no_place(pass, place, steps_);
  auto at = first;
  if (!before && first->pass == nullptr) {
    at = std::find_if(first + 1, steps_.end(), [](const Step& s) { return s.pass == nullptr; });
  } else if (!before) {
    at = std::find_if(steps_.rbegin(), steps_.rend(), is_named).base();
    // Behind those that were put there earlier.
    auto is_ours = [](const Step& s) {
      return s.pass == nullptr || std::find(builtin_passes().begin(), builtin_passes().end(),
                                            s.pass) != builtin_passes().end();
    };
    at = std::find_if(at, steps_.end(), is_ours);
  }
  steps_.insert(at, Step{"", &pass, Form::any});
}

std::vector<const Pass*> Pipeline::passes() const {
  std::vector<const Pass*> out;
  for (const Step& s : steps_) {
    if (s.pass != nullptr) out.push_back(s.pass);
  }
  return out;
}

Pipeline optimize_pipeline() {
  Pipeline out(optimize_steps());
  for (const PlacedPass& p : outside_passes()) {
    if (!p.place.empty()) out.insert(*p.pass, p.place);
  }
  return out;
}

Module run_passes(Module mod, const Pipeline& pipeline, PassContext& ctx) {
  Form held = Form::any;
  for (const Pipeline::Step& s : pipeline.steps()) {
    if (s.pass == nullptr || !ctx.enabled(*s.pass)) continue;
    // Without what a disabled pass gives, those that take it are left out too.
    if (lacks_disabled(mod, s.pass->in, ctx)) continue;
    bool skipped = false;
    PassContext here = ctx;
    here.config.insert(s.config.begin(), s.config.end());
    mod = run_pass(mod, *s.pass, here, held | s.from_here_on, &skipped);
    if (!skipped) held = held | s.from_here_on;
  }
  return mod;
}

}  // namespace relay
