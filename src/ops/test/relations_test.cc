// What relations refuse, what they promise, and what they leave to a check at run time.
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ops/test/programs.h"

namespace relay {
namespace {

const std::string kIntegers = "Tensor[(2, 3), int32]";
const std::string kEmpty = "Tensor[(0, 3), float32]";
const std::string kSequence = "Tensor[(1, 4, 8), float32]";
const std::string kSquareImage = "Tensor[(1, 4, 8, 8), float32]";
const std::string kVolume = "Tensor[(1, 4, 8, 8, 8), float32]";
const std::string kKernel = "Tensor[(4, 4, 3, 3), float32]";
const std::string kHuge = "Tensor[(1099511627776, 1099511627776), float32]";

const Refusal kRelationRefusals[] = {
    // Element-wise and broadcast.
    {"add", {kMatrix, "Tensor[(4, 3), float32]"}, "", "do not broadcast"},
    {"add", {kMatrix, kIntegers}, "", "dtype"},
    {"exp", {kIntegers}, "", "floating"},
    {"clip", {kMatrix}, "a_min=nan, a_max=1f", "not a number"},
    {"nn.bias_add", {kSquareImage, "Tensor[(3,), float32]"}, "", "each channel"},
    {"nn.bias_add", {kSquareImage, kVector}, "axis=4", "out of range"},
    {"nn.prelu", {kScalar, kVector}, "", "scalar"},
    // Composed.
    {"image.dilation2d", {kMatrix, kScalar}, "", "number of axes"},
    {"strided_set", {kMatrix, kMatrix}, "begin=[0], end=[2], strides=[0]", "a stride is 0"},
    {"dft", {kScalar, kScalar}, "", "number of axes"},
    // Reductions.
    {"sum", {kMatrix}, "axis=[2]", "out of range"},
    {"sum", {kMatrix}, "axis=[0, -2]", "twice"},
    {"sum", {kScalar}, "axis=[0]", "scalar"},
    {"sum", {"Tensor[(2,), bool]"}, "", "cast to int32"},
    {"mean", {"Tensor[(0,), int32]"}, "", "over nothing"},
    {"argmax", {kEmpty}, "axis=[0]", "of none"},
    {"argmax", {"Tensor[(2147483648,), int8]"}, "", "int32"},
    {"variance", {kMatrix, "Tensor[(2, 2), float32]"}, "axis=[1]", "broadcast"},
    {"variance", {kIntegers, "Tensor[(2, 1), int32]"}, "axis=[1]", "floating"},
    // Products.
    {"nn.dense", {kMatrix, "Tensor[(5, 4), float32]"}, "", "inner dimensions"},
    {"nn.dense", {kMatrix, "Tensor[(5, 3), float32]"}, "units=4", "units"},
    {"nn.dense", {kScalar, "Tensor[(5, 3), float32]"}, "", "too few"},
    {"nn.matmul", {kMatrix, "Tensor[(3, 5), float32]"}, "units=4", "units"},
    {"nn.matmul", {"Tensor[(3,), float32]", kMatrix}, "transpose_a=True", "too few"},
    {"nn.batch_matmul",
     {"Tensor[(2, 3, 4), float32]", "Tensor[(2, 5, 3), float32]"},
     "",
     "inner dimensions"},
    {"nn.batch_matmul",
     {"Tensor[(2, 3, 4), float32]", "Tensor[(3, 4, 3), float32]"},
     "transpose_b=False",
     "broadcast"},
    // Convolutions.
    {"nn.conv2d", {kSquareImage, kKernel}, "strides=[0, 1]", "strides"},
    {"nn.conv2d", {kSquareImage, kKernel}, "strides=[1]", "strides"},
    {"nn.conv2d", {kSquareImage, kKernel}, "strides=[-9223372036854775808, 1]", "strides"},
    {"nn.conv2d", {kSquareImage, kKernel}, "dilation=[0, 1]", "dilation"},
    {"nn.conv2d", {kSquareImage, kKernel}, "padding=[-1, 0]", "padding"},
    {"nn.conv2d", {kSquareImage, kKernel}, "padding=[1, 1, 1]", "padding"},
    {"nn.conv2d", {kSquareImage, kKernel}, "padding=[9223372036854775807]", "padding"},
    {"nn.conv2d", {kSquareImage, kKernel}, "groups=0", "groups"},
    {"nn.conv2d", {kSquareImage, kKernel}, "groups=3", "channels"},
    {"nn.conv2d", {kSquareImage, "Tensor[(3, 2, 3, 3), float32]"}, "groups=2", "groups"},
    {"nn.conv2d", {kSquareImage, kKernel}, "channels=5", "channels=4"},
    {"nn.conv2d", {kSquareImage, kKernel}, "kernel_size=[3, 5]", "kernel_size contradicts"},
    {"nn.conv2d", {kSquareImage, kKernel}, "kernel_size=[3]", "kernel_size"},
    {"nn.conv2d", {kSquareImage, "Tensor[(4, 4, 9, 9), float32]"}, "", "larger than"},
    {"nn.conv2d", {kSquareImage, kKernel}, "dilation=[4, 4]", "larger than"},
    {"nn.conv2d", {kSquareImage, "Tensor[(4, 4, 0, 3), float32]"}, "", "not zero"},
    {"nn.conv2d", {kSquareImage, kKernel}, "data_layout=\"NCQQ\"", "layout"},
    {"nn.conv2d", {kSquareImage, kKernel}, "data_layout=\"NCHH\"", "layout"},
    {"nn.conv2d",
     {kSquareImage, "Tensor[(4, 4, 3, 3, 2), float32]"},
     "kernel_layout=\"OIHW2h\"",
     "spatial axes"},
    {"nn.conv2d",
     {kSquareImage, "Tensor[(1, 2, 3, 3, 4), float32]"},
     "kernel_layout=\"OIHW4o\"",
     "channels"},
    {"nn.conv1d", {kSequence, "Tensor[(4, 4, 9), float32]"}, "", "larger than"},
    {"nn.conv3d", {kVolume, "Tensor[(4, 4, 9, 3, 3), float32]"}, "", "larger than"},
    {"nn.conv2d_transpose", {kSquareImage, kKernel}, "output_padding=[1, 0]", "output_padding"},
    {"nn.conv2d_transpose",
     {kSquareImage, kKernel},
     "strides=[2, 2], output_padding=[4611686018427387904, 0]",
     "output_padding"},
    {"nn.conv2d_transpose",
     {kSquareImage, kKernel},
     "kernel_size=[5, 5]",
     "kernel_size contradicts"},
    {"nn.conv2d_transpose", {kSquareImage, kKernel}, "channels=8", "channels contradicts"},
    {"nn.conv2d_transpose", {kSquareImage, kKernel}, "groups=3", "groups"},
    {"nn.conv2d_transpose", {kSquareImage, kKernel}, "padding=[9, 9]", "cuts off"},
    {"nn.conv2d_transpose",
     {"Tensor[(1, 4, 0, 8), float32]", kKernel},
     "strides=[2, 2]",
     "empty along"},
    // Pools.
    {"nn.max_pool2d", {kSquareImage}, "pool_size=[9, 9]", "larger than"},
    {"nn.max_pool2d", {kSquareImage}, "pool_size=[2, 2], strides=[0, 0]", "strides"},
    {"nn.max_pool2d", {kSquareImage}, "pool_size=[0, 2]", "pool_size"},
    {"nn.max_pool2d", {kSquareImage}, "pool_size=[2, 2], padding=[2, 0]", "padding"},
    {"nn.max_pool2d", {kSquareImage}, "pool_size=[2, 2], padding=[-1, 0]", "padding"},
    {"nn.avg_pool2d", {"Tensor[(1, 4, 8, 8), bool]"}, "pool_size=[2, 2]", "numbers"},
    {"nn.avg_pool2d", {kSquareImage}, "pool_size=[2, 2], layout=\"NCHW4c\"", "layout"},
    {"nn.global_avg_pool2d", {"Tensor[(1, 4, 0, 8), float32]"}, "", "empty along"},
    {"nn.adaptive_avg_pool2d", {kSquareImage}, "output_size=[0, 1]", "output_size"},
    {"nn.adaptive_avg_pool2d", {kSquareImage}, "output_size=[4611686018427387904]", "absurdly"},
    // Normalisations.
    {"nn.softmax", {kMatrix}, "axis=5", "out of range"},
    {"nn.softmax", {kMatrix}, "axis=-9223372036854775808", "out of range"},
    {"nn.softmax", {kScalar}, "", "scalar"},
    {"nn.layer_norm", {kMatrix, kVector, kVector}, "", "vector along"},
    {"nn.layer_norm", {kMatrix, "Tensor[(3,), float64]", "Tensor[(3,), float32]"}, "", "vector"},
    {"nn.instance_norm", {kMatrix, kVector, kVector}, "axis=2", "out of range"},
    {"nn.instance_norm",
     {kSquareImage, "Tensor[(1,), float32]", "Tensor[(1,), float32]"},
     "axis=0",
     "axis 0"},
    {"nn.group_norm", {kSquareImage, kVector, kVector}, "num_groups=3", "num_groups"},
    {"nn.group_norm", {kSquareImage, kVector, kVector}, "num_groups=0", "num_groups"},
    {"nn.lrn", {kSquareImage}, "size=0", "size"},
    {"nn.lrn", {kSquareImage}, "size=4611686018427387904", "size"},
    // Attention.
    {"nn.attention",
     {kSquareImage, kSquareImage, kSquareImage, kScalar},
     "key_layout=\"BSH\"",
     "key_layout"},
    {"nn.attention",
     {kSquareImage, kSquareImage, kSquareImage, kScalar},
     "out_layout=\"BHSE\"",
     "out_layout"},
    {"nn.attention", {kSquareImage, kSequence, kSquareImage, kScalar}, "", "dimensions"},
    {"nn.attention",
     {kSquareImage, "Tensor[(1, 4, 8, 7), float32]", kSquareImage, kScalar},
     "",
     "depths"},
    {"nn.attention",
     {kSquareImage, "Tensor[(1, ?, 8, 8), float32]", "Tensor[(1, 2, 8, 8), float32]", kScalar},
     "",
     "heads of queries and values"},
    {"nn.attention",
     {kSquareImage, kSquareImage, "Tensor[(1, 4, 9, 8), float32]", kScalar},
     "",
     "lengths"},
    {"nn.attention",
     {kSquareImage, kSquareImage, kSquareImage, "Tensor[(8, 7), float32]"},
     "",
     "broadcast"},
    {"nn.attention",
     {kSquareImage, kSquareImage, kSquareImage, "Tensor[(2, 4, 8, 8), float32]"},
     "",
     "the mask"},
    {"nn.attention", {kSquareImage, kSquareImage, kSquareImage, "float64"}, "", "dtypes"},
};

// Moving elements.
const Refusal kMoves[] = {
    {"reshape", {kMatrix}, "newshape=[4, 2]", "number of elements"},
    {"reshape", {kMatrix}, "newshape=[4, -1]", "do not fill"},
    {"reshape", {kMatrix}, "newshape=[-1, -1]", "twice"},
    {"reshape", {kMatrix}, "newshape=[-9]", "unknown code"},
    {"reshape", {kMatrix}, "newshape=[2, 3, 0]", "does not have"},
    {"reshape", {kMatrix}, "newshape=[2, -3]", "does not have"},
    {"reshape", {kMatrix}, "newshape=[2, -4, 3]", "two sizes"},
    {"reshape", {kMatrix}, "newshape=[2, -4, 3, -7]", "two sizes"},
    {"reshape", {kMatrix}, "newshape=[2, -4, -1, -1]", "two sizes"},
    {"reshape", {kMatrix}, "newshape=[2, -4, 0, 3]", "two sizes"},
    {"reshape", {kMatrix}, "newshape=[2, -4, 2, -1]", "split"},
    {"reshape", {kMatrix}, "newshape=[4611686018427387904, 4611686018427387904]", "overflow"},
    {"expand_dims", {kMatrix}, "axis=4", "out of range"},
    {"expand_dims", {kMatrix}, "axis=0, num_newaxis=1000000000", "num_newaxis"},
    {"expand_dims", {kMatrix}, "axis=0, num_newaxis=-1", "num_newaxis"},
    {"expand_dims", {kMatrix}, "axis=0, num_newaxis=63", "too many dimensions"},
    {"squeeze", {kMatrix}, "axis=[0]", "size one"},
    {"transpose", {kMatrix}, "axes=[0, 0]", "once"},
    {"transpose", {kMatrix}, "axes=[0]", "once"},
    {"concatenate", {"(" + kMatrix + ", Tensor[(2, 4), float32])"}, "axis=0", "does not fit"},
    {"concatenate", {"(" + kScalar + ", " + kScalar + ")"}, "axis=0", "scalar"},
    {"stack", {"(" + kMatrix + ", Tensor[(2, 4), float32])"}, "axis=0", "one type"},
    {"split", {kMatrix}, "indices_or_sections=2, axis=1", "equal parts"},
    {"split", {kMatrix}, "indices_or_sections=0, axis=1", "out of range"},
    {"split", {kMatrix}, "indices_or_sections=[2, 1], axis=1", "in order"},
    {"split", {kMatrix}, "indices_or_sections=[4], axis=1", "behind the end"},
    {"strided_slice", {kMatrix}, "begin=[0], end=[2], strides=[0]", "steps other than 0"},
    {"strided_slice", {kMatrix}, "begin=[0, 0, 0], end=[1, 1, 1]", "axes within"},
    {"strided_slice", {kMatrix}, "begin=[0, 0], end=[1, 1], axes=[1, -1]", "different axes"},
    {"strided_slice", {kMatrix}, "begin=[0, 0], end=[1, 1], axes=[0]", "axes"},
    {"nn.pad", {kMatrix, kScalar}, "pad_width=[[1, 1]]", "each axis"},
    {"nn.pad", {kMatrix, kScalar}, "pad_width=[[1], [0, 0]]", "begin and an end"},
    {"nn.pad", {kMatrix, kScalar}, "pad_width=[[-2, -1], [0, 0]]", "more than there is"},
    {"nn.pad", {kMatrix, kScalar}, "pad_width=[[9223372036854775807, 1], [0, 0]]", "2^40"},
    {"nn.pad", {kMatrix, kVector}, "pad_width=[[1, 1], [0, 0]]", "one element"},
    {"nn.pad", {kMatrix, kScalar}, "pad_width=[[2, 0], [0, 0]], pad_mode=\"reflect\"", "narrower"},
    {"nn.pad", {kEmpty, kScalar}, "pad_width=[[1, 0], [0, 0]], pad_mode=\"edge\"", "constant"},
    {"nn.mirror_pad", {kMatrix}, "pad_width=[[3, 0], [0, 0]]", "wider than"},
    {"nn.mirror_pad", {kMatrix}, "pad_width=[[0, 0], [0, 3]], mode=\"REFLECT\"", "wider than"},
    {"nn.mirror_pad", {kMatrix}, "pad_width=[[0, 0], [0, 0]], mode=\"WRAP\"", "mode"},
    {"tile", {kMatrix}, "reps=[-1]", "negative"},
    {"tile", {kMatrix}, "reps=[4611686018427387904, 1]", "overflow"},
    {"tile", {kMatrix}, "reps=[1048576, 1048576, 1048576]", "absurdly large"},
    {"repeat", {kMatrix}, "repeats=-1", "negative"},
    {"repeat", {kMatrix}, "repeats=2305843009213693952", "overflow"},
    {"repeat", {kMatrix}, "repeats=281474976710656, axis=0", "absurdly large"},
    {"reverse", {kMatrix}, "axis=2", "out of range"},
    {"reverse", {kScalar}, "axis=0", "scalar"},
    {"broadcast_to", {kMatrix}, "shape=[2, 4]", "broadcast"},
    {"broadcast_to", {kMatrix}, "shape=[3]", "broadcast"},
    {"broadcast_to", {kMatrix}, "shape=[4611686018427387904, 2, 3]", "absurdly large"},
    {"zeros", {}, "shape=[-1], dtype=\"float32\"", "negative"},
    {"zeros", {}, "shape=[4611686018427387904, 4], dtype=\"float32\"", "absurdly"},
    {"exp", {kHuge}, "", "absurdly large"},
    {"take", {kEmpty, "int64"}, "axis=0", "nothing to take"},
    {"take", {kMatrix, kVector}, "axis=0", "integers"},
    {"take", {kMatrix, "int64"}, "axis=2", "out of range"},
    {"gather", {kMatrix, "Tensor[(3, 1), int64]"}, "axis=1", "longer than"},
    {"gather", {kMatrix, "Tensor[(3,), int64]"}, "axis=0", "dimensions"},
    {"gather_nd", {kMatrix, "Tensor[(3, 4), int64]"}, "", "first axis"},
    {"gather_nd", {kMatrix, "Tensor[(1, 5), int64]"}, "batch_dims=1", "batch dimensions"},
    {"one_hot", {"Tensor[(2,), int64]", kScalar, kScalar}, "depth=-1", "depth"},
    {"one_hot", {"Tensor[(2,), int64]", kScalar, kScalar}, "depth=4611686018427387904", "absurdly"},
    {"trilu", {kVector, "int64"}, "", "two dimensions"},
    {"layout_transform",
     {kSquareImage},
     "src_layout=\"NCHW\", dst_layout=\"NHWQ\"",
     "different axes"},
    {"layout_transform", {kSquareImage}, "src_layout=\"NCHW\", dst_layout=\"NCHW4c4c\"", "read"},
};

TEST(Relations, refuse_what_does_not_fit) {
  for (const Refusal& c : kRelationRefusals) expect_refused(c);
  for (const Refusal& c : kMoves) expect_refused(c);
}

struct Open {
  const char* op;
  std::vector<std::string> args;
  const char* attrs;
  const char* result;
  std::vector<std::string> assumes;
};

// `n` and `m` may be equal, so the relation holds; the compiled program checks that they are.
TEST(Relations, assume_what_only_a_run_can_tell) {
  const std::string n = "Tensor[(n,), float32]", m = "Tensor[(m,), float32]",
                    three = "Tensor[(3,), float32]", one = "Tensor[(1,), float32]",
                    rows = "Tensor[(2, n), float32]";
  const Open cases[] = {
      {"add", {n, n}, "", "Tensor[(n,), float32]", {}},
      {"add", {n, one}, "", "Tensor[(n,), float32]", {}},
      {"add", {n, three}, "", "Tensor[(3,), float32]", {"n must equal 3, or one of them be 1"}},
      {"add", {three, n}, "", "Tensor[(3,), float32]", {"3 must equal n, or one of them be 1"}},
      {"add",
       {n, m},
       "",
       "Tensor[(broadcast(m, n),), float32]",
       {"n must equal m, or one of them be 1"}},
      {"add", {n, n}, "", "Tensor[(n,), float32]", {}},
      // What cannot be 1 is not broadcast.
      {"add",
       {"Tensor[(2 * n,), float32]", "Tensor[(m + 2,), float32]"},
       "",
       "Tensor[((2 * n),), float32]",
       {"(2 * n) must equal (m + 2)"}},
      {"add",
       {"Tensor[(2 * n,), float32]", m},
       "",
       "Tensor[((2 * n),), float32]",
       {"(2 * n) must equal m, or one of them be 1"}},
      {"broadcast_to",
       {n},
       "shape=[4]",
       "Tensor[(4,), float32]",
       {"n must equal 4, or one of them be 1"}},
      {"nn.dense",
       {rows, "Tensor[(4, m), float32]"},
       "",
       "Tensor[(2, 4), float32]",
       {"n must equal m"}},
      {"nn.max_pool1d",
       {"Tensor[(1, 1, n), float32]"},
       "pool_size=[3], strides=[2], ceil_mode=True",
       "Tensor[(1, 1, (((n + -2) // 2) + 1)), float32]",
       {"n must be at least 2"}},
      {"concatenate", {"(" + n + ", " + m + ")"}, "axis=0", "Tensor[((m + n),), float32]", {}},
      {"reshape", {rows}, "newshape=[-1, 4]", "Tensor[(((2 * n) // 4), 4), float32]", {""}},
      // What is copied says nothing about the size for -1: it may be 0.
      {"reshape",
       {"Tensor[(n, 3, m), float32]"},
       "newshape=[0, -1]",
       "Tensor[(n, (3 * m)), float32]",
       {}},
      {"reshape",
       {"Tensor[(?, 3, 0), float32]"},
       "newshape=[0, -1]",
       "Tensor[(?, 0), float32]",
       {}},
      {"reshape",
       {"Tensor[(n, 3, 4), float32]"},
       "newshape=[0, 3, -1]",
       "Tensor[(n, 3, 4), float32]",
       {}},
      {"nn.dilate", {rows}, "strides=[2, 1]", "Tensor[(3, n), float32]", {}},
      {"nn.dilate", {n}, "strides=[2]", "Tensor[(max(((2 * n) + -1), 0),), float32]", {}},
      {"nn.dilate",
       {"Tensor[(n + 1,), float32]"},
       "strides=[2]",
       "Tensor[(((2 * n) + 1),), float32]",
       {}},
      {"squeeze", {n}, "axis=[0]", "float32", {"n must equal 1"}},
      {"split",
       {n},
       "indices_or_sections=[2]",
       "(Tensor[(2,), float32], Tensor[((n + -2),), float32])",
       {"n must be at least 2"}},
      {"nn.mirror_pad",
       {n},
       "pad_width=[[2, 0]]",
       "Tensor[((n + 2),), float32]",
       {"n must be at least 2"}},
      {"strided_slice", {n}, "begin=[0], end=[9223372036854775807]", "Tensor[(n,), float32]", {}},
      {"strided_slice", {n}, "begin=[0], end=[4]", "Tensor[(min(4, n),), float32]", {}},
      {"strided_slice",
       {n},
       "begin=[-1], end=[-9223372036854775807], strides=[-1]",
       "Tensor[(n,), float32]",
       {}},
      {"gather", {rows, "Tensor[(2, m), int64]"}, "axis=1", "Tensor[(2, m), float32]", {""}},
  };
  for (const Open& c : cases) {
    SCOPED_TRACE(program_of(c.op, c.args, c.attrs, "n: Dim, m: Dim"));
    try {
      Module mod = infer(c.op, c.args, c.attrs, "n: Dim, m: Dim");
      const auto* call = as<CallNode>(as<FunctionNode>(mod->find("main"))->body);
      EXPECT_EQ(to_string(call->type), c.result);
      std::vector<DimAssumption> found = assumptions_of(*call);
      ASSERT_EQ(found.size(), c.assumes.size());
      for (size_t i = 0; i < found.size(); ++i) {
        std::string text = to_string(found[i]);
        EXPECT_TRUE(c.assumes[i].empty() || c.assumes[i] == text) << text;
      }
    } catch (const UserError& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

}  // namespace
}  // namespace relay
