#include "frontend/torch/recurrent_gradient.h"

#include "frontend/common/step_loop.h"
#include "grad/dataflow.h"

namespace relay::frontend::torch {
namespace {

// The adjoint of what an activation reads, from its value and that value's adjoint.
Expr through(const Builder& build, ActivationKind kind, const Expr& value, const Expr& adjoint) {
  Expr one = build.scalar_like(1, value);
  switch (kind) {
    case ActivationKind::Sigmoid:
      return build.mul(adjoint, build.mul(value, build.sub(one, value)));
    case ActivationKind::Tanh:
      return build.mul(adjoint, build.sub(one, build.mul(value, value)));
    default: {
      RELAY_CHECK(kind == ActivationKind::Relu, "PyTorch's cells have no other activation");
      Expr zero = build.scalar_like(0, value);
      return build.where(build.call("greater", {value, zero}), adjoint, zero);
    }
  }
}

// The adjoints of the products of the input and of the state.
struct Products {
  Expr of_x, of_state;
};
Products products_of(const Builder& build, const RecurrentLayer& layer,
                     const std::vector<Expr>& gates, const std::vector<Expr>& adjoints) {
  const std::vector<Activation>& own = layer.directions[0].activations;
  const std::vector<Activation> kinds = own.empty() ? standard_activations(layer.cell) : own;
  auto read_by = [&](size_t activation, size_t gate) {
    return through(build, kinds[activation].kind, gates[gate], adjoints[gate]);
  };
  if (layer.cell == RecurrentCell::Rnn) {
    Expr e = read_by(0, 0);
    return {e, e};
  }
  const std::vector<size_t> order = gate_order(layer);
  if (layer.cell == RecurrentCell::Lstm) {
    std::vector<Expr> parts(4);
    parts[order[0]] = read_by(0, 0);
    parts[order[1]] = read_by(0, 3);
    parts[order[2]] = read_by(0, 1);
    parts[order[3]] = read_by(1, 2);
    Expr e = build.concat(parts, 1);
    return {e, e};
  }
  // The new state reads the reset gate times the product of the state.
  const Expr &reset = gates[1], &product = gates[3];
  Expr fresh = read_by(1, 2), of_reset = build.mul(fresh, product);
  std::vector<Expr> parts(2);
  parts[order[0]] = read_by(0, 0);
  parts[order[1]] = through(build, kinds[0].kind, reset, of_reset);
  return {build.concat({parts[0], parts[1], fresh}, 1),
          build.concat({parts[0], parts[1], build.mul(fresh, reset)}, 1)};
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
        std::vector<Expr> before, gates;
        for (size_t i = 0; i < kept.size(); ++i)
          (i < count ? before : gates).push_back(line(kept[i]));
        const std::vector<Expr> next = states_of_gates(build, layer, d, gates, before);
        std::vector<Seed> seeds;
        for (size_t i = 0; i < count; ++i) {
          seeds.push_back({next[i], {i == 0 ? build.add(adjoints[0], line(y)) : adjoints[i]}});
        }
        std::vector<Expr> wrt = gates;
        wrt.insert(wrt.end(), before.begin(), before.end());
        std::vector<Expr> of_gates, states;
        for (const std::vector<Expr>& found : dataflow_gradient(seeds, wrt)) {
          (of_gates.size() < gates.size() ? of_gates : states).push_back(found[0]);
        }
        const Products p = products_of(build, layer, gates, of_gates);
        Expr of_product = build.matmul(p.of_state, d.r);
        states[0] = states[0] ? build.add(states[0], of_product) : of_product;
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
