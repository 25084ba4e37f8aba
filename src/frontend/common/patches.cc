#include "frontend/common/patches.h"

#include "frontend/common/open_args.h"

namespace relay::frontend {

Expr image_of_patches(const Builder& build, const Expr& x, const Expr& image, const Expr& block,
                      const PatchSpec& spec) {
  const DType kI64 = DType::Int(64);
  const int64_t nd = length_of_vector(image);
  auto number = [&](int64_t v) { return build.scalar(static_cast<double>(v), kI64); };
  auto divide = [&](const Expr& a, const Expr& b) { return build.call("floor_divide", {a, b}); };
  auto product_of = [&](const Expr& v) { return build.reduce("prod", v, {0}, false); };
  Expr in_patch = open_range(build, number(0), product_of(block));
  // How many patches there are along each axis.
  std::vector<Expr> sizes, extents, counts;
  Expr patches = number(1);
  for (int64_t i = 0; i < nd; ++i) {
    auto k = static_cast<size_t>(i);
    sizes.push_back(build.select(image, 0, i));
    extents.push_back(build.select(block, 0, i));
    Expr reach = build.mul(build.sub(extents[k], number(1)), number(spec.dilations[k]));
    Expr room = build.sub(
        build.add(sizes[k], number(spec.pads[k] + spec.pads[k + static_cast<size_t>(nd)])),
        build.add(reach, number(1)));
    counts.push_back(build.add(divide(room, number(spec.strides[k])), number(1)));
    patches = build.mul(patches, counts[k]);
  }
  Expr patch = open_range(build, number(0), patches);
  // (in the patch, patch): where each element goes, counted through the image.
  Expr rest_in = in_patch, rest_of = patch, place, inside, step = number(1);
  for (int64_t i = nd; i-- > 0;) {
    auto k = static_cast<size_t>(i);
    Expr within = build.call("floor_mod", {rest_in, extents[k]});
    Expr which = build.call("floor_mod", {rest_of, counts[k]});
    rest_in = divide(rest_in, extents[k]);
    rest_of = divide(rest_of, counts[k]);
    Expr begin = build.sub(build.mul(which, number(spec.strides[k])), number(spec.pads[k]));
    Expr at = build.add(build.expand_dims(build.mul(within, number(spec.dilations[k])), 1),
                        build.expand_dims(begin, 0));
    Expr good = build.call("logical_and", {build.call("greater_equal", {at, number(0)}),
                                           build.call("less", {at, sizes[k]})});
    inside = inside ? build.call("logical_and", {inside, good}) : good;
    Expr here = build.mul(at, step);
    place = place ? build.add(place, here) : here;
    step = build.mul(step, sizes[k]);
  }
  // What lies in the padding goes behind the image, and is cut off.
  place = build.call("where", {inside, place, step});
  Expr all = build.mul(product_of(block), patches);
  auto as_vector = [&](const Expr& e) { return build.reshape(e, std::vector<int64_t>{1}); };
  Expr columns = build.concat({build.ints({-1}), as_vector(all)}, 0);
  Expr values = build.call("dyn.reshape", {x, columns});
  Expr lines = build.select(sizes_of(build, values), 0, 0);
  DType dtype = Builder::dtype_of(x);
  Expr shape = build.concat({as_vector(lines), as_vector(build.add(step, number(1)))}, 0);
  Expr zeros = build.call("dyn.full", {build.scalar(0, dtype), shape});
  Expr places =
      build.call("dyn.broadcast_to", {build.reshape(place, {dim(1), dim_any()}),
                                      build.concat({as_vector(lines), as_vector(all)}, 0)});
  Expr y = build.call("scatter_elements", {zeros, places, values},
                      {{"axis", int64_t{1}}, {"reduction", std::string("add")}});
  y = open_slice(build, y, build.ints({0}), as_vector(step), build.ints({1}), {1});
  Expr batch = entries(build, sizes_of(build, x), 0, 1);
  return open_reshape(build, y, build.concat({batch, divide(as_vector(lines), batch), image}, 0));
}

}  // namespace relay::frontend
