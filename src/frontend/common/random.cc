#include "frontend/common/random.h"

#include <string>

#include "frontend/common/open_args.h"

namespace relay::frontend {
namespace {

std::string name_of(const Distribution& d) {
  return d.kind == Distribution::Uniform ? "random.uniform" : "random.normal";
}

DType drawn_dtype(DType dtype) { return dtype.bits == 64 ? DType::Float(64) : DType::Float(32); }

}  // namespace

uint64_t seed_of_name(std::string_view name) {
  uint64_t seed = 0xCBF29CE484222325u;  // FNV-1a
  for (char c : name) seed = (seed ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return seed;
}

// random.threefry_key in Python: four words of seed, no path, no counter, and the mark of where the path ends.
Expr random_key(const Builder& build, uint64_t seed) {
  Tensor key = Tensor::zeros(DType::UInt(64), {10});
  key.data<uint64_t>()[0] = seed;
  key.data<uint64_t>()[8] = uint64_t{1} << 63;
  return build.constant(std::move(key));
}

Expr draw(const Builder& build, const Expr& key, const Distribution& d,
          const std::vector<int64_t>& shape, DType dtype) {
  DType wide = drawn_dtype(dtype);
  Expr both =
      build.call(name_of(d), {key, build.scalar(d.first, wide), build.scalar(d.second, wide)},
                 {{"out_shape", to_value(shape)}, {"out_dtype", to_value(wide)}});
  return build.cast(build.item(both, 1), dtype);
}

Expr draw_at_run_time(const Builder& build, const Expr& key, const Distribution& d,
                      const Expr& sizes, DType dtype) {
  DType wide = drawn_dtype(dtype);
  Expr numbers = build.call(
      "dyn." + name_of(d), {key, build.scalar(d.first, wide), build.scalar(d.second, wide), sizes});
  return build.cast(std::move(numbers), dtype);
}

Expr draw_like(const Builder& build, const Expr& key, const Distribution& d, const Expr& like,
               DType dtype) {
  const auto& type = Builder::type_of(like);
  if (auto shape = type.const_shape()) return draw(build, key, d, *shape, dtype);
  Expr numbers = draw_at_run_time(build, key, d, sizes_of(build, like), dtype);
  return build.with_sizes(std::move(numbers), type.shape);
}

Expr bernoulli(const Builder& build, const Expr& key, const Expr& p, DType dtype) {
  Expr u = draw_like(build, key, {}, p, drawn_dtype(Builder::dtype_of(p)));
  return build.cast(build.call("less", {u, build.cast(p, Builder::dtype_of(u))}), dtype);
}

Expr multinomial(const Builder& build, const Expr& key, const Expr& weights, int64_t count,
                 DType dtype) {
  Expr both = build.call("random.multinomial", {key, weights}, {{"num_samples", count}});
  return build.cast(build.item(both, 1), dtype);
}

Dropout dropout(const Builder& build, const Expr& key, const Expr& x, const Expr& given,
                const Expr& active) {
  const DType f32 = DType::Float(32);
  Expr share = given;
  Expr kept = build.call("greater_equal", {draw_like(build, key, {}, x, f32), share});
  if (active) {
    Expr no = build.call("logical_not", {active});
    kept = build.call("logical_or", {kept, no});
    share = build.where(no, build.scalar(0, f32), share);
  }
  Expr rest = build.cast(build.sub(build.scalar(1, f32), share), Builder::dtype_of(x));
  return {build.where(kept, build.div(x, rest), build.scalar_like(0, x)), kept};
}

}  // namespace relay::frontend
