#include "frontend/torch/recurrent_gradient.h"

#include "frontend/common/step_loop.h"
#include "grad/dataflow.h"

namespace relay::frontend::torch {
namespace {

// The adjoints of the products of the input and of the state, from those of what a cell reads.
struct Products {
  Expr of_x, of_state;
};
Products products_of(const Builder& build, RecurrentCell cell, const std::vector<Expr>& read) {
  if (cell != RecurrentCell::Gru) return {read[0], read[0]};
  return {build.concat({read[0], read[1]}, 1), build.concat({read[0], read[2]}, 1)};
}

}  // namespace

RecurrentGradients recurrent_gradient(const Builder& build, const RecurrentLayer& layer,
                                      const std::vector<Expr>& kept, const Expr& y,
                                      const std::vector<Expr>& last) {
  const RecurrentDirection& d = layer.directions.at(0);
  const Dim batch = Builder::shape_of(layer.x)[1];
  const size_t count = last.size();
  const bool one_product = layer.cell != RecurrentCell::Gru;
  std::vector<Expr> initial;
  for (const Expr& e : last) initial.push_back(build.reshape(e, {batch, dim(layer.hidden)}));

  Expr lines = zeros_along(build, layer.x, 0);
  // Results stand where the steps stood: those of a direction that goes forwards are filled from the end.
  StepLoop loop{length_of(build, lines), lines, initial,
                std::vector<bool>(one_product ? 1 : 2, !d.backward), nullptr};
  StepResults out =
      run_steps(build, loop, [&](const Expr& t, const Expr&, const std::vector<Expr>& adjoints) {
        Expr one = build.scalar(1, DType::Int(64));
        Expr at = d.backward ? t : build.sub(build.sub(loop.count, one), t);
        auto line = [&](const Expr& e) {
          return build.call("take", {e, at}, {{"axis", int64_t{0}}});
        };
        std::vector<Expr> before, read, wrt;
        for (size_t i = 0; i < kept.size(); ++i)
          (i < count ? before : read).push_back(line(kept[i]));
        wrt = read;
        wrt.insert(wrt.end(), before.begin(), before.end());
        const std::vector<Expr> next = recurrent_cell(build, layer, d, read, before);
        std::vector<Seed> seeds;
        for (size_t i = 0; i < count; ++i) {
          seeds.push_back({next[i], {i == 0 ? build.add(adjoints[0], line(y)) : adjoints[i]}});
        }
        const std::vector<std::vector<Expr>> found = dataflow_gradient(seeds, wrt);
        std::vector<Expr> of_read, states;
        for (size_t i = 0; i < wrt.size(); ++i) {
          Expr e = found[i][0];
          if (i < read.size()) {
            of_read.push_back(e);
          } else {
            states.push_back(e);
          }
        }
        const Products p = products_of(build, layer.cell, of_read);
        Expr through = build.matmul(p.of_state, d.r);
        states[0] = states[0] ? build.add(states[0], through) : through;
        Step step{states, {p.of_x}};
        if (!one_product) step.results.push_back(p.of_state);
        return step;
      });

  auto rows = [&](const Expr& e) { return build.merge_axes(e, 0, 2); };
  auto over_rows = [&](const Expr& a, const Expr& b) {
    return build.matmul(build.transpose(a, {1, 0}), b);
  };
  Expr of_x = rows(out.stacked[0]), of_state = one_product ? of_x : rows(out.stacked[1]);
  RecurrentGradients g;
  g.x = build.reshape(build.matmul(of_x, d.w), Builder::shape_of(layer.x));
  g.states = out.states;
  g.w = over_rows(of_x, rows(layer.x));
  g.r = over_rows(of_state, rows(kept[0]));
  g.w_bias = build.reduce("sum", of_x, {0}, false);
  g.r_bias = one_product ? g.w_bias : build.reduce("sum", of_state, {0}, false);
  return g;
}

}  // namespace relay::frontend::torch
