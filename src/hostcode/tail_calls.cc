#include "hostcode/tail_calls.h"

namespace relay::hostcode {

std::vector<bool> plain_functions(const Program& program) {
  const size_t count = program.functions.size();
  std::vector<std::vector<size_t>> callers(count);  // by tail calls, one for each
  std::vector<size_t> open(count);  // tail calls of functions that are not known to be plain
  std::vector<bool> never(count), out(count);
  for (size_t n = 0; n < count; ++n) {
    const Function& f = program.functions[n];
    if (f.kind == FunctionKind::closure) {
      never[n] = true;
      never[static_cast<size_t>(program.bodies[static_cast<size_t>(f.index)])] = true;
    }
    for (const Block& b : f.blocks) {
      const Inst& end = b.insts.back();
      if (end.op == Op::tail_invoke) never[n] = true;
      if (end.op != Op::tail_call) continue;
      callers[static_cast<size_t>(program.bodies[static_cast<size_t>(end.number)])].push_back(n);
      ++open[n];
    }
  }
  std::vector<size_t> work;
  for (size_t n = 0; n < count; ++n) {
    if (open[n] == 0 && !never[n]) work.push_back(n);
  }
  while (!work.empty()) {
    const size_t n = work.back();
    work.pop_back();
    out[n] = true;
    for (size_t caller : callers[n]) {
      if (--open[caller] == 0 && !never[caller]) work.push_back(caller);
    }
  }
  return out;
}

}  // namespace relay::hostcode
