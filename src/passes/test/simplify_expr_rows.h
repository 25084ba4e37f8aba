// The rules of SimplifyExpr with a program each on which they fire, and one on which they must not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace relay::pass_test {

// A rule with a program on which it fires, what becomes of it, and a program that stays as it is.
struct Row {
  std::string rule;
  std::string fires;
  std::string becomes;
  std::string stays;
};

inline const char* const kF = "%x: Tensor[(2, 3), float32]";
inline const char* const kI = "%x: Tensor[(2, 3), int32]";

inline std::string program(const std::string& params, const std::string& body) {
  return "def @main(" + params + ") { " + body + " }";
}
inline std::string f(const std::string& body) { return program(kF, body); }
inline std::string i(const std::string& body) { return program(kI, body); }
inline std::string b(const std::string& body) { return program("%x: Tensor[(2, 3), bool]", body); }

// With `%w` in the body for a matrix of ones, of the size of the parameter `%v`.
inline std::string product_by_ones(std::string body) {
  constexpr std::string_view kWeights = "ones(shape=[5, 4], dtype=\"float32\")";
  for (size_t at = body.find("%w"); at != std::string::npos; at = body.find("%w", at))
    body.replace(at, 2, kWeights);
  return program(
      "%x: Tensor[(6, 5), float32], %y: Tensor[(3, 5), float32], %v: Tensor[(5, 4), float32],"
      " %b: Tensor[(3, 4), float32]",
      body);
}

// `%x` of 64 rows, row by row.
inline std::string rows_of_parameter() {
  std::string out;
  for (int row = 0; row < 64; ++row) {
    out += (out.empty() ? "strided_slice(%x, begin=[" : ", strided_slice(%x, begin=[") +
           std::to_string(row) + "], end=[" + std::to_string(row + 1) + "], axes=[0])";
  }
  return "(" + out + ")";
}

// The joined columns of `parameters` vectors and, with `groups`, of groups of nine.
inline std::string joined_parameters(int parameters, bool groups) {
  std::string names, body;
  for (int i = 0; i < parameters; ++i) {
    const std::string name = "%x" + std::to_string(i);
    names += (i == 0 ? "" : ", ") + name + ": Tensor[(2), float32]";
    body += i == 0 ? "" : groups && i % 9 == 0 ? "), axis=-1), concatenate((" : ", ";
    body += name;
  }
  body = "concatenate((" + body + "), axis=-1)";
  return program(names, groups ? "concatenate((" + body + "), axis=-1)" : body);
}

inline const std::vector<Row>& rows() {
  static const std::vector<Row> table{
      {"add_zero", i("add(zeros(shape=[3], dtype=\"int32\"), add(0, %x))"), i("%x"),
       f("(add(%x, 0f), add(%x, zeros(shape=[3], dtype=\"float32\")))")},
      {"add_negative_zero", f("add(%x, -0f)"), f("%x"), f("add(0f, %x)")},
      {"subtract_zero", f("subtract(%x, 0f)"), f("%x"), f("(subtract(%x, -0f), subtract(0f, %x))")},
      {"multiply_one", f("multiply(1f, %x)"), f("%x"), f("multiply(%x, 1.5f)")},
      {"divide_one", f("divide(%x, 1f)"), f("%x"), f("divide(1f, %x)")},
      {"floor_divide_one", i("floor_divide(%x, 1)"), i("%x"), f("floor_divide(%x, 1f)")},
      {"trunc_divide_one", i("trunc_divide(%x, 1)"), i("%x"), f("trunc_divide(%x, 1f)")},
      {"power_one", f("power(%x, 1f)"), f("%x"), f("power(1f, %x)")},
      {"left_shift_zero", i("left_shift(%x, 0)"), i("%x"), i("left_shift(0, %x)")},
      {"right_shift_zero", i("right_shift(%x, 0)"), i("%x"), i("right_shift(%x, 1)")},
      {"bitwise_or_zero", i("bitwise_or(%x, 0)"), i("%x"), i("bitwise_or(%x, 1)")},
      {"bitwise_xor_zero", i("bitwise_xor(0, %x)"), i("%x"), i("bitwise_xor(%x, -1)")},
      {"logical_and_true", b("logical_and(%x, True)"), b("%x"), b("logical_and(%x, False)")},
      {"logical_or_false", b("logical_or(%x, False)"), b("%x"), b("logical_or(%x, True)")},
      {"involution", f("negative(negative(%x))"), f("%x"), f("negative(abs(%x))")},
      {"involution", b("logical_not(logical_not(%x))"), b("%x"), b("logical_not(%x)")},
      {"involution", i("bitwise_not(bitwise_not(%x))"), i("%x"), i("bitwise_not(%x)")},
      {"idempotent", f("abs(abs(%x))"), f("abs(%x)"), f("abs(nn.relu(%x))")},
      {"idempotent", f("nn.relu(nn.relu(%x))"), f("nn.relu(%x)"), f("nn.relu(abs(%x))")},
      {"idempotent", f("sign(sign(%x))"), f("sign(%x)"), f("sign(abs(%x))")},
      {"abs_negative", f("abs(negative(%x))"), f("abs(%x)"), f("negative(abs(%x))")},
      {"round_rounded", f("ceil(floor(%x))"), f("floor(%x)"), f("ceil(sqrt(%x))")},
      {"round_integer", i("round(%x)"), i("%x"), f("round(%x)")},
      {"same_operands", f("maximum(%x, %x)"), f("%x"), f("(add(%x, %x), maximum(%x, exp(%x)))")},
      {"copy", f("copy(%x)"), f("%x"), f("exp(%x)")},
      {"not_equal", f("logical_not(equal(%x, 1f))"), f("not_equal(%x, 1f)"),
       f("logical_not(less(%x, 1f))")},
      {"equal", f("logical_not(not_equal(%x, 1f))"), f("equal(%x, 1f)"),
       f("logical_not(greater_equal(%x, 1f))")},
      {"less", i("logical_not(greater_equal(%x, 1))"), i("less(%x, 1)"),
       f("logical_not(greater_equal(%x, 1f))")},
      {"less_equal", i("logical_not(greater(%x, 1))"), i("less_equal(%x, 1)"),
       f("logical_not(greater(%x, 1f))")},
      {"greater", i("logical_not(less_equal(%x, 1))"), i("greater(%x, 1)"),
       f("logical_not(less_equal(%x, 1f))")},
      {"greater_equal", i("logical_not(less(%x, 1))"), i("greater_equal(%x, 1)"),
       f("logical_not(less(%x, 1f))")},
      {"holds_of_itself", i("less_equal(%x, %x)"), i("ones(shape=[2, 3], dtype=\"bool\")"),
       f("equal(%x, %x)")},
      {"never_holds_of_itself", i("not_equal(%x, %x)"), i("zeros(shape=[2, 3], dtype=\"bool\")"),
       f("(less(%x, %x), not_equal(%x, %x))")},
      {"add_negative", f("add(negative(%x), exp(%x))"), f("subtract(exp(%x), %x)"),
       f("add(abs(%x), exp(%x))")},
      {"add_negative", i("add(negative(%x), 7)"), i("subtract(7, %x)"),
       b("add(%x, negative(%x))")},  // truth values are added, but not subtracted
      {"subtract_negative", f("subtract(%x, negative(exp(%x)))"), f("add(%x, exp(%x))"),
       f("subtract(negative(%x), exp(%x))")},
      {"negative_subtract", i("negative(subtract(%x, 7))"), i("subtract(7, %x)"),
       f("negative(subtract(%x, 7f))")},
      {"multiply_negatives", f("multiply(negative(%x), negative(exp(%x)))"),
       f("multiply(%x, exp(%x))"), f("multiply(negative(%x), exp(%x))")},
      {"multiply_minus_one", f("multiply(-1f, %x)"), f("negative(%x)"), f("multiply(%x, -2f)")},
      {"subtract_itself", i("subtract(%x, %x)"), i("zeros(shape=[2, 3], dtype=\"int32\")"),
       f("subtract(%x, %x)")},
      {"relu_clip", f("nn.relu(clip(%x, a_min=-1f, a_max=6f))"), f("clip(%x, a_min=0f, a_max=6f)"),
       f("nn.relu(clip(%x, a_min=-2f, a_max=-1f))")},
      {"clip_nothing", f("clip(%x, a_min=-inff, a_max=inff)"), f("%x"),
       f("clip(%x, a_min=-inff, a_max=3e38f)")},
      {"power_zero", f("power(%x, 0f)"), f("ones(shape=[2, 3], dtype=\"float32\")"),
       f("power(0f, %x)")},
      {"rsqrt", f("divide(1f, sqrt(%x))"), f("rsqrt(%x)"),
       f("(divide(2f, sqrt(%x)), divide(-1f, sqrt(%x)))")},
      {"where_not", b("where(logical_not(%x), 1f, exp(2f))"), b("where(%x, exp(2f), 1f)"),
       b("where(%x, 1f, exp(2f))")},
      {"clip_clip", f("clip(clip(%x, a_min=0f, a_max=6f), a_min=-1f, a_max=4f)"),
       f("clip(%x, a_min=0f, a_max=4f)"),
       program(kF + std::string(", %y: Tensor[(4,), int32]"),
               "(clip(clip(%x, a_min=0f, a_max=1f), a_min=2f, a_max=4f), "
               "clip(clip(%y, a_min=-1f, a_max=0.5f), a_min=0.5f, a_max=2f))")},
      {"clip_relu", f("clip(nn.relu(%x), a_min=0f, a_max=6f)"), f("clip(%x, a_min=0f, a_max=6f)"),
       f("clip(nn.relu(%x), a_min=-1f, a_max=6f)")},
      {"add_add_constants", i("add(add(%x, 3), 4)"), i("add(%x, 7)"), f("add(add(%x, 3f), 4f)")},
      {"multiply_multiply_constants", i("multiply(2147483647, multiply(2, %x))"),
       i("multiply(%x, -2)"), f("multiply(multiply(%x, 3f), 0.1f)")},
      {"multiply_zero", i("multiply(%x, 0)"), i("zeros(shape=[2, 3], dtype=\"int32\")"),
       f("multiply(%x, 0f)")},
      {"power_two", f("power(%x, 2f)"), f("multiply(%x, %x)"), f("power(%x, 3f)")},
      {"where_constant", f("where(True, %x, exp(%x))"), f("%x"),
       f("where(greater(%x, 0f), %x, exp(%x))")},
      {"where_same", f("where(greater(%x, 0f), %x, %x)"), f("%x"),
       program("%x: float32, %c: Tensor[(2,), bool]", "where(%c, %x, %x)")},
      {"reshape_same", f("reshape(%x, newshape=[2, 3])"), f("%x"),
       f("reshape(%x, newshape=[3, 2])")},
      {"reshape_back",
       program("%x: Tensor[(2, 1, 3), float32]", "expand_dims(squeeze(%x, axis=[1]), axis=1)"),
       program("%x: Tensor[(2, 1, 3), float32]", "%x"),
       program("%x: Tensor[(?, 1, 3), float32]", "expand_dims(squeeze(%x, axis=[1]), axis=1)")},
      {"transpose_ones", program("%x: Tensor[(2, 1, 3), float32]", "transpose(%x, axes=[1, 0, 2])"),
       program("%x: Tensor[(2, 1, 3), float32]", "reshape(%x, newshape=[1, 2, 3])"),
       program("%x: Tensor[(2, 1, 3), float32]", "transpose(%x, axes=[1, 2, 0])")},
      {"permuted_view",
       program("%x: Tensor[(2, 5, 6, 4), float32]",
               "transpose(reshape(layout_transform(%x, src_layout=\"NHWC\", dst_layout=\"NCHW\"),"
               " newshape=[2, 4, 30]), axes=[0, 2, 1])"),
       program("%x: Tensor[(2, 5, 6, 4), float32]", "reshape(%x, newshape=[2, 30, 4])"),
       program("%x: Tensor[(2, 5, 6, 4), float32]",
               "(transpose(reshape(layout_transform(%x, src_layout=\"NHWC\", dst_layout=\"NCHW\"),"
               " newshape=[2, 2, 60]), axes=[0, 2, 1]),"
               " transpose(reshape(transpose(%x, axes=[0, 3, 2, 1]), newshape=[2, 4, 30]),"
               " axes=[0, 2, 1]))")},
      {"layout_transform_ones",
       program("%x: Tensor[(2, 3, 1, 1), float32]",
               "layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NHWC\")"),
       program("%x: Tensor[(2, 3, 1, 1), float32]", "reshape(%x, newshape=[2, 1, 1, 3])"),
       program("%x: Tensor[(2, 3, 1, 2), float32]",
               "(layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NHWC\"),"
               " layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NCHW1c\"))")},
      {"cast_clip", f("cast(clip(%x, a_min=-200f, a_max=127f), dtype=\"int8\")"),
       f("cast(%x, dtype=\"int8\")"), i("cast(clip(%x, a_min=-200f, a_max=127f), dtype=\"int8\")")},
      {"clip_widened",
       program("%x: Tensor[(2, 3), int8]",
               "clip(cast(%x, dtype=\"int32\"), a_min=-128f, a_max=127f)"),
       program("%x: Tensor[(2, 3), int8]", "cast(%x, dtype=\"int32\")"),
       program("%x: Tensor[(2, 3), int8]",
               "clip(cast(%x, dtype=\"int32\"), a_min=-127f, a_max=127f)")},
      {"split_one", f("split(%x, indices_or_sections=1).0"), f("(%x,).0"),
       f("split(%x, indices_or_sections=2).0")},
      {"split_parameter",
       program("%x: Tensor[(64, 3), float32]", "split(%x, indices_or_sections=64).5"),
       program("%x: Tensor[(64, 3), float32]", rows_of_parameter() + ".5"),
       program(
           "%x: Tensor[(64, 3), float32]",
           "(split(%x, indices_or_sections=32).5, split(negative(%x), indices_or_sections=64).5)")},
      {"reduce_one", program("%x: Tensor[(2, 1, 3), float32]", "max(%x, axis=[1])"),
       program("%x: Tensor[(2, 1, 3), float32]", "reshape(%x, newshape=[2, 3])"),
       program("%x: Tensor[(2, 1, 3), float32]", "(sum(%x, axis=[1]), max(%x, axis=[2]))")},
      {"add_before_reshape",
       program("%x: Tensor[(6, 5), float32], %w: Tensor[(5, 4), float32], %b: Tensor[(4), float32]",
               "add(reshape(nn.matmul(%x, %w), newshape=[2, 3, 4]), %b)"),
       program("%x: Tensor[(6, 5), float32], %w: Tensor[(5, 4), float32], %b: Tensor[(4), float32]",
               "reshape(add(nn.matmul(%x, %w), %b), newshape=[2, 3, 4])"),
       program(
           "%x: Tensor[(6, 5), float32], %w: Tensor[(5, 4), float32], %b: Tensor[(2), float32], "
           "%c: Tensor[(3, 4), float32]",
           "(add(reshape(nn.matmul(%x, %w), newshape=[6, 2, 2]), %b),"
           " add(reshape(nn.matmul(%x, %w), newshape=[2, 3, 4]), %c))")},
      {"elements_before_reshape",
       product_by_ones("multiply(reshape(nn.matmul(%x, %w), newshape=[2, 3, 4]),"
                       " tanh(multiply(0.5f, reshape(nn.matmul(%x, %w), newshape=[2, 3, 4]))))"),
       product_by_ones(
           "reshape(multiply(nn.matmul(%x, %w), tanh(multiply(0.5f, nn.matmul(%x, %w)))),"
           " newshape=[2, 3, 4])"),
       // Columns that are separated, another operand, no product, shapes that are not those of the rows, and weights that
       // are an input.
       product_by_ones(
           "(tanh(reshape(nn.matmul(%x, %w), newshape=[6, 2, 2])),"
           " multiply(reshape(nn.matmul(%x, %w), newshape=[2, 3, 4]), %b),"
           " tanh(reshape(%x, newshape=[2, 3, 5])),"
           " broadcast_to(reshape(nn.matmul(%x, %w), newshape=[6, 1, 4]), shape=[6, 3, 4]),"
           " broadcast_to(reshape(nn.matmul(%y, %w), newshape=[3, 1, 4]), shape=[3, 3, 4]),"
           " exp(reshape(zeros(shape=[6, 4], dtype=\"float32\"), newshape=[2, 3, 4])),"
           " add(reshape(nn.matmul(%x, %w), newshape=[6, 1, 4]),"
           " reshape(nn.matmul(%x, %w), newshape=[1, 6, 4])),"
           " tanh(reshape(nn.matmul(%x, %v), newshape=[2, 3, 4])))")},
      {"sum_of_one_product",
       program("%x: Tensor[(2, 3, 1), float32], %c: Tensor[(2, 1, 1), float32]",
               "nn.batch_matmul(%c, %x, transpose_b=True)"),
       program("%x: Tensor[(2, 3, 1), float32], %c: Tensor[(2, 1, 1), float32]",
               "add(multiply(%c, reshape(%x, newshape=[2, 1, 3])), 0f)"),
       // A sum of two, a column by a row, a dtype whose sums are of another.
       program("%x: Tensor[(3, 1), float32], %y: Tensor[(1, 3), float32], "
               "%h: Tensor[(3, 1), float16], %c: Tensor[(1, 1), float16]",
               "(nn.matmul(%y, %x), nn.matmul(%x, %y), nn.matmul(%h, %c))")},
      {"sum_of_one_product",
       program("%x: Tensor[(2, 5, 7), float32], %w: Tensor[(5, 1, 1), float32]",
               "nn.conv1d(%x, %w, groups=5)"),
       program("%x: Tensor[(2, 5, 7), float32], %w: Tensor[(5, 1, 1), float32]",
               "add(multiply(%x, reshape(%w, newshape=[1, 5, 1])), 0f)"),
       // A border, a stride, two results of a channel.
       program("%x: Tensor[(2, 5, 7), float32], %w: Tensor[(5, 1, 1), float32], "
               "%v: Tensor[(10, 1, 1), float32]",
               "(nn.conv1d(%x, %w, groups=5, padding=[0, 1]), "
               "nn.conv1d(%x, %w, groups=5, strides=[2]), nn.conv1d(%x, %v, groups=5))")},
      {"reshape_reshape", f("squeeze(expand_dims(nn.batch_flatten(%x), axis=0), axis=[0])"),
       f("%x"),
       program("%x: Tensor[(?, 2, 3), float32]",
               "reshape(reshape(%x, newshape=[-1, 6]), newshape=[-1, 3, 2])")},
      {"transpose_same", f("transpose(%x, axes=[0, 1])"), f("%x"), f("transpose(%x)")},
      {"transpose_transpose", f("transpose(transpose(%x), axes=[1, 0])"), f("%x"),
       f("transpose(exp(transpose(%x)))")},
      {"layout_transform_same", f("layout_transform(%x, src_layout=\"NC\", dst_layout=\"NC\")"),
       f("%x"), f("layout_transform(%x, src_layout=\"NC\", dst_layout=\"CN\")")},
      {"layout_transform_pair",
       f("layout_transform(layout_transform(%x, src_layout=\"NC\", dst_layout=\"NC3c\"), "
         "src_layout=\"NC3c\", dst_layout=\"NC\")"),
       f("%x"),
       f("layout_transform(layout_transform(%x, src_layout=\"NC\", dst_layout=\"NC2c\"), "
         "src_layout=\"NC2c\", dst_layout=\"NC\")")},
      {"cast_same", f("cast(%x, dtype=\"float32\")"), f("%x"), f("cast(%x, dtype=\"float64\")")},
      {"cast_cast", i("cast(cast(%x, dtype=\"int64\"), dtype=\"int8\")"),
       i("cast(%x, dtype=\"int8\")"), i("cast(cast(%x, dtype=\"int8\"), dtype=\"int64\")")},
      {"cast_like", f("cast_like(%x, 1)"), f("cast(%x, dtype=\"int32\")"),
       program("%x: float32, %r: ref(float32)",
               "let %w = ref_write(%r, %x); cast_like(%x, ref_read(%r))")},
      {"broadcast_to_same", f("broadcast_to(%x, shape=[2, 3])"), f("%x"),
       f("broadcast_to(%x, shape=[4, 2, 3])")},
      {"tile_once", f("repeat(tile(%x, reps=[1, 1]), repeats=1, axis=0)"), f("%x"),
       program("%x: Tensor[(?, 3), float32]", "tile(%x, reps=[1, 2])")},
      {"tile_broadcast", f("tile(%x, reps=[2, 1])"),
       f("reshape(broadcast_to(reshape(%x, newshape=[1, 2, 3]), shape=[2, 2, 3]), newshape=[4, "
         "3])"),
       program("%x: Tensor[(?, 3), float32]", "tile(%x, reps=[2, 1])")},
      {"tile_broadcast", program("%x: Tensor[(5, 60, 2), float32]", "tile(%x, reps=[30, 1, 2])"),
       program(
           "%x: Tensor[(5, 60, 2), float32]",
           "reshape(annotation.stop_fusion(broadcast_to(reshape(annotation.stop_fusion(reshape("
           "annotation.stop_fusion(broadcast_to(reshape(%x, newshape=[5, 60, 1, 2]), shape=[5, 60, "
           "2, 2])), newshape=[1200])), newshape=[1, 1200]), shape=[30, 1200])), newshape=[150, "
           "60, 4])"),
       program("%x: Tensor[(?, 3), float32]", "tile(%x, reps=[2, 2])")},
      {"scan_columns", program("%x: Tensor[(4, 5, 2, 3), float32]", "cumsum(%x, axis=1)"),
       program("%x: Tensor[(4, 5, 2, 3), float32]",
               "reshape(cumsum(reshape(%x, newshape=[4, 5, 6]), axis=1), newshape=[4, 5, 2, 3])"),
       f("(cumsum(%x, axis=0), cumsum(%x))")},
      {"topk_one", i("topk(%x, k=1, axis=1, ret_type=\"indices\")"),
       i("%0 = min(where(equal(%x, max(%x, axis=[1], keepdims=True)), "
         "reshape(arange(stop=3, dtype=\"int32\"), newshape=[1, 3]), 3), axis=[1], keepdims=True); "
         "where(equal(%0, 3), 0, %0)"),
       i("topk(%x, k=2, axis=1, ret_type=\"indices\")")},
      {"slice_whole", f("strided_slice(%x, begin=[0, 0], end=[2, 3])"), f("%x"),
       f("strided_slice(%x, begin=[-1], end=[-3], strides=[-1], axes=[0])")},
      {"pad_nothing", f("nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0]])"), f("%x"),
       f("nn.pad(%x, 0f, pad_width=[[0, 0], [1, -1]])")},
      {"concatenate_groups", joined_parameters(65, false), joined_parameters(65, true),
       joined_parameters(64, false)},
      {"slice_of_fill", f("strided_slice(full(2f, shape=[4, 5]), begin=[1], end=[3], axes=[1])"),
       f("full(2f, shape=[4, 2])"), f("strided_slice(exp(%x), begin=[1], end=[3], axes=[1])")},
      // Queries, keys and values, each with zeros for the others.
      {"add_parts",
       program("%x: Tensor[(2, 3), float32]",
               "%0 = concatenate((%x, zeros(shape=[4, 3])));\n"
               "%1 = concatenate((zeros(shape=[2, 3]), exp(%x), zeros(shape=[2, 3])));\n"
               "%2 = concatenate((zeros(shape=[5, 3]), strided_slice(%x, begin=[0], end=[1])));\n"
               "add(add(%0, %1), %2)"),
       program("%x: Tensor[(2, 3), float32]",
               "concatenate((add(%x, 0f), add(exp(%x), 0f), strided_slice(zeros(shape=[2, 3]), "
               "begin=[0], "
               "end=[1], axes=[0]), add(strided_slice(%x, begin=[0], end=[1]), 0f)))"),
       program("%x: Tensor[(2, 3), float32], %z: Tensor[(?, 3), float32]",
               "%0 = concatenate((%x, zeros(shape=[2, 3])));\n"
               "%1 = concatenate((zeros(shape=[1, 3]), exp(%x), zeros(shape=[1, 3])));\n"
               "%2 = concatenate((%x, ones(shape=[2, 3])));\n"
               "%3 = concatenate((zeros(shape=[2, 3]), %x));\n"
               "%4 = concatenate((%z, zeros(shape=[2, 3])));\n"
               "%5 = concatenate((zeros(shape=[2, 3]), %z));\n"
               "(add(%0, %1), add(%2, %3), add(%4, %5))")},
      {"concatenate_one", f("concatenate((%x,))"), f("%x"), f("concatenate((%x, %x))")},
      {"stack_one", f("stack((%x,), axis=1)"), f("expand_dims(%x, axis=1)"), f("stack((%x, %x))")},
      {"reverse_reverse", f("reverse(reverse(%x, axis=1), axis=1)"), f("%x"),
       f("reverse(reverse(%x, axis=1), axis=0)")},
      {"broadcast_broadcast", f("broadcast_to(broadcast_to(%x, shape=[1, 2, 3]), shape=[4, 2, 3])"),
       f("broadcast_to(%x, shape=[4, 2, 3])"), f("broadcast_to(exp(%x), shape=[4, 2, 3])")},
      {"broadcast_operand",
       program("%x: Tensor[(2, 3), float32], %y: Tensor[(3,), float32]",
               "add(broadcast_to(%y, shape=[2, 3]), %x)"),
       program("%x: Tensor[(2, 3), float32], %y: Tensor[(3,), float32]", "add(%y, %x)"),
       program("%x: Tensor[(2, 1), float32]", "add(broadcast_to(%x, shape=[2, 3]), %x)")},
      {"reshape_like", f("reshape_like(%x, ones(shape=[3, 2], dtype=\"float32\"))"),
       f("reshape(%x, newshape=[3, 2])"),
       program("%x: Tensor[(?, 3), float32], %y: Tensor[(?), float32]", "reshape_like(%x, %y)")},
      {"broadcast_to_like", f("broadcast_to_like(1f, %x)"), f("broadcast_to(1f, shape=[2, 3])"),
       program("%x: Tensor[(?, 3), float32]", "broadcast_to_like(1f, %x)")},
      {"zeros_like", f("zeros_like(%x)"), f("zeros(shape=[2, 3], dtype=\"float32\")"),
       program("%x: Tensor[(?, 3), float32]", "zeros_like(%x)")},
      {"ones_like", i("ones_like(%x)"), i("ones(shape=[2, 3], dtype=\"int32\")"),
       program("%x: Tensor[(?, 3), float32]", "ones_like(%x)")},
      {"full_like", f("full_like(%x, 7f)"), f("full(7f, shape=[2, 3], dtype=\"float32\")"),
       program("%x: Tensor[(?, 3), float32]", "full_like(%x, 7f)")},
  };
  return table;
}

}  // namespace relay::pass_test
