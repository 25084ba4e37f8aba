// Images from the bytes of their files. What is known about formats is in the image library
// (runtime/core/string_functions.h).
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/image/sampling.h"
#include "ops/loops.h"
#include "ops/rows.h"
#include "runtime/core/string_functions.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::Type;
using runtime::PixelFormat;

constexpr DType kWord = DType::Int(64);
constexpr int64_t kWordBytes = 8;

PrimExpr word(int64_t v) { return imm(kWord, v); }

struct DecodeAttrs : AttrsOf<DecodeAttrs> {
  std::string pixel_format = "RGB";
  static AttrsList describe() {
    return {"relay.attrs.ImageDecodeAttrs",
            {attribute("pixel_format", &Self::pixel_format,
                       "RGB, BGR, or Grayscale for one channel.")}};
  }
  int64_t channels() const { return pixel_format == "Grayscale" ? 1 : 3; }
  PixelFormat format() const {
    return pixel_format == "RGB"   ? PixelFormat::Rgb
           : pixel_format == "BGR" ? PixelFormat::Bgr
                                   : PixelFormat::Grey;
  }
};

Type decode_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  auto& a = ctx.attrs<DecodeAttrs>();
  if (x == nullptr || !one_of(ctx, "pixel_format", a.pixel_format, {"RGB", "BGR", "Grayscale"}) ||
      !require(ctx, x->dtype == DType::UInt(8), codes::type_dtype, "needs the bytes of a file",
               "uint8", x->dtype.to_string()) ||
      !require(ctx, x->rank() == 1, codes::type_rank, "needs the bytes of a file", "1 dimension",
               shape_text(x->shape))) {
    return nullptr;
  }
  return tensor_type({dim_any(), dim_any(), dim(a.channels())}, DType::UInt(8));
}

// `body` after `file` has become the word of a file with the bytes of `in`.
Stmt with_file(const Buffer& in, const Cell& file, const Stmt& body) {
  const PrimExpr size = in->shape[0];
  auto byte = [&](const PrimExpr& at) { return tir::cast(kWord, load(in, {at})); };
  auto put = [&](const PrimExpr& at, const PrimExpr& bytes) {
    return file.set(tir::call("image_put", kWord, {file.get(), tir::cast(kWord, at), bytes}));
  };
  PrimExpr whole = floor_div(size, index(kWordBytes));
  Stmt words = each("w", whole, [&](const PrimExpr& w) {
    PrimExpr bytes = word(0);
    for (int64_t k = 0; k < kWordBytes; ++k) {
      PrimExpr part = byte(w * kWordBytes + k);
      bytes = binary(BinaryOp::BitOr, bytes, binary(BinaryOp::Shl, part, word(8 * k)));
    }
    return put(w * kWordBytes, bytes);
  });
  Stmt rest = each("b", size - whole * kWordBytes, [&](const PrimExpr& b) {
    return put(whole * kWordBytes + b, byte(whole * kWordBytes + b));
  });
  Stmt begin = file.set(tir::call("image_begin", kWord, {tir::cast(kWord, size)}));
  return file.in(seq({begin, words, rest, body}));
}

TirTensor image_size(const ComputeContext& ctx) {
  const int64_t channels = ctx.attrs<DecodeAttrs>().channels();
  return imperative("T_image_size", kIndex, {index(3)}, ctx.inputs,
                    [=](const std::vector<Buffer>& in, const Buffer& out) {
                      Cell file("file", kWord);
                      auto size = [&](int64_t axis) {
                        PrimExpr n = tir::call("image_size", kWord, {file.get(), word(axis)});
                        return store(out, {index(axis)}, tir::cast(kIndex, n));
                      };
                      Stmt all = seq({size(0), size(1), store(out, {index(2)}, index(channels))});
                      return with_file(in[0], file, all);
                    });
}

TirTensor decode(const ComputeContext& ctx) {
  auto& a = ctx.attrs<DecodeAttrs>();
  const int64_t channels = a.channels();
  const auto format = static_cast<int64_t>(a.format());
  auto build = [=](const std::vector<Buffer>& in, const Buffer& out) {
    Cell file("file", kWord), pixels("pixels", kWord);
    const PrimExpr row_bytes = out->shape[1] * channels;
    auto row_at = [&](const PrimExpr& y) {
      return [&, y](const PrimExpr& from, int64_t count) {
        PrimExpr at = tir::cast(kWord, y * row_bytes + from);
        return named(
            "bytes", tir::call("image_get", kWord, {pixels.get(), at}), [&](const PrimExpr& bytes) {
              std::vector<Stmt> stores;
              for (int64_t k = 0; k < count; ++k) {
                PrimExpr x = from + k;
                PrimExpr byte =
                    binary(BinaryOp::BitAnd, binary(BinaryOp::Shr, bytes, word(8 * k)), word(255));
                stores.push_back(
                    store(out, {y, floor_div(x, index(channels)), floor_mod(x, index(channels))},
                          tir::cast(DType::UInt(8), byte)));
              }
              return seq(std::move(stores));
            });
      };
    };
    PrimExpr whole = floor_div(row_bytes, index(kWordBytes));
    Stmt rows = each("y", out->shape[0], [&](const PrimExpr& y) {
      auto bytes = row_at(y);
      return seq(
          {each("w", whole, [&](const PrimExpr& w) { return bytes(w * kWordBytes, kWordBytes); }),
           each("b", row_bytes - whole * kWordBytes,
                [&](const PrimExpr& b) { return bytes(whole * kWordBytes + b, 1); })});
    });
    Stmt image = pixels.set(tir::call("image_decode", kWord, {file.get(), word(format)}));
    return with_file(in[0], file, pixels.in(seq({image, rows})));
  };
  return imperative("T_image_decode", DType::UInt(8), ctx.outputs[0].shape, ctx.inputs, build);
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::DecodeImage>() {
  static const OpInfo rows[] = {
      {
          .name = "image.decode",
          .doc = "The image of a file of PNG, JPEG, BMP or PNM, as (height, width, channel). A "
                 "file that is "
                 "none of these or damaged fails when the program runs.",
          .args = {{"data", "The bytes of the file."}},
          .attrs = &DecodeAttrs::static_info(),
          .support_level = 5,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .may_end_run = on_every_call,
          .relation = decode_relation,
          .compute = compute_rule_with_shape(image_size, decode),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = Absent::DataDecides,
          .gradient = Absent::NotDifferentiable,
          .batching = Absent::LaneByLane,
          // A PPM of two pixels: "P6 2 1 255", a line feed, "abcdef".
          .examples =
              {{.args = {"Tensor[(17,), uint8]"},
                .attrs = "",
                .inputs = {{80, 54, 32, 50, 32, 49, 32, 50, 53, 53, 10, 97, 98, 99, 100, 101, 102}},
                .results = {{97, 98, 99, 100, 101, 102}}},
               {.args = {"Tensor[(17,), uint8]"},
                .attrs = "pixel_format=\"Grayscale\"",
                .inputs = {{80, 54, 32, 50, 32, 49, 32, 50, 53, 53, 10, 97, 98, 99, 100, 101, 102}},
                .results = {{98, 101}}}},
          .expected = "by hand, from the definition of PPM in Netpbm",
      },
  };
  return rows;
}

}  // namespace relay::ops
