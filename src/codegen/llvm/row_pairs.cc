#include "codegen/llvm/row_pairs.h"

#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace relay::codegen {
namespace {

using llvm::BasicBlock;
using llvm::IntrinsicInst;
using llvm::Value;

using llvm::Intrinsic::ID;

// Of a call: the name of the instruction for two rows.
constexpr const char* kMark = "relay-row-pairs";

ID matrix_of(const IntrinsicInst& dot) {
  const llvm::Attribute mark = dot.getFnAttr(kMark);
  return mark.isValid() ? llvm::Function::lookupIntrinsicID(mark.getValueAsString())
                        : llvm::Intrinsic::not_intrinsic;
}

// The word that all lanes of the row's operand have; null when they may differ.
Value* row_word(const IntrinsicInst& dot) {
  Value* v = dot.getArgOperand(1);
  if (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(v)) v = cast->getOperand(0);
  Value* word = llvm::getSplatValue(v);
  return word != nullptr && word->getType()->isIntegerTy(32) ? word : nullptr;
}

// What a loop adds to one vector of sums.
struct Chain {
  llvm::PHINode* sum;
  ID matrix;
  std::vector<IntrinsicInst*> dots;
  std::vector<Value*> words, columns;  // of each
};

// No products: the sum is none of these, or their number is odd.
Chain chain_of(llvm::PHINode& sum, BasicBlock& loop) {
  Chain out{&sum, llvm::Intrinsic::not_intrinsic, {}, {}, {}};
  Value* const last = sum.getIncomingValueForBlock(&loop);
  for (Value* v = &sum; v != last;) {
    if (!v->hasOneUse()) return {};
    auto* dot = llvm::dyn_cast<IntrinsicInst>(v->user_back());
    const ID matrix = dot == nullptr ? ID{llvm::Intrinsic::not_intrinsic} : matrix_of(*dot);
    if (matrix == llvm::Intrinsic::not_intrinsic || dot->getParent() != &loop ||
        dot->getArgOperand(0) != v || (!out.dots.empty() && out.matrix != matrix)) {
      return {};
    }
    out.matrix = matrix;
    out.dots.push_back(dot);
    out.words.push_back(row_word(*dot));
    out.columns.push_back(dot->getArgOperand(2));
    if (out.words.back() == nullptr) return {};
    v = dot;
  }
  const bool used_inside = std::ranges::any_of(last->users(), [&](llvm::User* u) {
    return u != &sum && llvm::cast<llvm::Instruction>(u)->getParent() == &loop;
  });
  if (out.dots.size() % 2 != 0 || used_inside) return {};
  return out;
}

// Words that are neighbours in memory, which may be read at once.
using Neighbours = std::set<std::pair<Value*, Value*>>;

// What is replaced in a loop.
struct LoopPairs {
  BasicBlock *loop, *exit;
  std::vector<std::pair<Chain, Chain>> pairs;
  Neighbours neighbours;
};

class Replacement {
 public:
  Replacement(BasicBlock& loop, BasicBlock& exit, const Neighbours& neighbours)
      : loop_(loop), neighbours_(neighbours), b_(loop.getContext()) {
    end_ = BasicBlock::Create(loop.getContext(), "", loop.getParent(), &exit);
    llvm::BranchInst::Create(&exit, end_);
    loop.getTerminator()->replaceSuccessorWith(&exit, end_);
    exit.replacePhiUsesWith(&loop, end_);
  }

  void replace(const Chain& x, const Chain& y) {
    auto* low = sum_of(x, y, {0, 1, 4, 5});
    auto* high = sum_of(x, y, {2, 3, 6, 7});
    Value *l = low, *h = high;
    for (size_t i = 0; i < x.dots.size(); i += 2) {
      Value* rows = rows_of({x.words[i], x.words[i + 1], y.words[i], y.words[i + 1]});
      auto& columns = columns_of(x.columns[i], x.columns[i + 1]);
      IntrinsicInst* last = x.dots[i + 1];
      if (last->comesBefore(y.dots[i + 1])) last = y.dots[i + 1];
      b_.SetInsertPoint(last);
      l = product(x.matrix, l, rows, columns.first);
      h = product(x.matrix, h, rows, columns.second);
    }
    low->addIncoming(l, &loop_);
    high->addIncoming(h, &loop_);
    b_.SetInsertPoint(end_->getTerminator());
    finish(x, b_.CreateShuffleVector(l, h, {0, 1, 4, 5}));
    finish(y, b_.CreateShuffleVector(l, h, {2, 3, 6, 7}));
  }

 private:
  using Mask = llvm::ArrayRef<int>;

  // A sum over columns of both rows, with its values on the way into the loop.
  llvm::PHINode* sum_of(const Chain& x, const Chain& y, Mask lanes) {
    b_.SetInsertPoint(&loop_, loop_.begin());
    llvm::PHINode* out = b_.CreatePHI(x.sum->getType(), x.sum->getNumIncomingValues());
    for (BasicBlock* before : x.sum->blocks()) {
      if (before == &loop_) continue;
      b_.SetInsertPoint(before->getTerminator());
      out->addIncoming(b_.CreateShuffleVector(x.sum->getIncomingValueForBlock(before),
                                              y.sum->getIncomingValueForBlock(before), lanes),
                       before);
    }
    return out;
  }

  // Behind the last of these in the loop.
  void insert_after(std::initializer_list<Value*> values) {
    llvm::Instruction* last = nullptr;
    for (Value* v : values) {
      auto* i = llvm::dyn_cast<llvm::Instruction>(v);
      if (i == nullptr || i->getParent() != &loop_ || llvm::isa<llvm::PHINode>(i)) continue;
      if (last == nullptr || last->comesBefore(i)) last = i;
    }
    if (last == nullptr) {
      b_.SetInsertPoint(&loop_, loop_.getFirstInsertionPt());
    } else {
      b_.SetInsertPoint(last->getNextNode());
    }
  }

  // Two words of each row.
  Value* rows_of(const std::array<Value*, 4>& words) {
    auto [it, is_new] = rows_.try_emplace(words, nullptr);
    if (!is_new) return it->second;
    const auto& [x, next_x, y, next_y] = words;
    insert_after({x, next_x, y, next_y});
    if (neighbours_.contains({x, next_x}) && neighbours_.contains({y, next_y})) {
      Value* out = llvm::PoisonValue::get(llvm::FixedVectorType::get(b_.getInt64Ty(), 2));
      // The rows may be one row.
      const std::array<Value*, 2> first_words = {x, y};
      for (uint64_t row = 0; row < first_words.size(); ++row) {
        auto* first = llvm::cast<llvm::LoadInst>(first_words[row]);
        Value* pair =
            b_.CreateAlignedLoad(b_.getInt64Ty(), first->getPointerOperand(), first->getAlign());
        out = b_.CreateInsertElement(out, pair, row);
      }
      return it->second = out;
    }
    Value* out = llvm::PoisonValue::get(llvm::FixedVectorType::get(b_.getInt32Ty(), 4));
    for (uint64_t i = 0; i < words.size(); ++i) out = b_.CreateInsertElement(out, words[i], i);
    return it->second = out;
  }

  // Two words of the first two columns and of the last two.
  const std::pair<Value*, Value*>& columns_of(Value* x, Value* y) {
    auto [it, is_new] = columns_.try_emplace(std::pair(x, y));
    if (is_new) {
      insert_after({x, y});
      auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), 4);
      Value *first = b_.CreateBitCast(x, words), *second = b_.CreateBitCast(y, words);
      it->second = {b_.CreateShuffleVector(first, second, {0, 4, 1, 5}),
                    b_.CreateShuffleVector(first, second, {2, 6, 3, 7})};
    }
    return it->second;
  }

  Value* product(ID matrix, Value* sum, Value* rows, Value* columns) {
    auto* elements = llvm::cast<llvm::FixedVectorType>(
        sum->getType()->isFPOrFPVectorTy() ? llvm::FixedVectorType::get(b_.getBFloatTy(), 8)
                                           : llvm::FixedVectorType::get(b_.getInt8Ty(), 16));
    llvm::SmallVector<llvm::Type*, 2> types;
    if (llvm::Intrinsic::isOverloaded(matrix)) types = {sum->getType(), elements};
    return b_.CreateIntrinsic(
        matrix, types,
        {sum, b_.CreateBitCast(rows, elements), b_.CreateBitCast(columns, elements)});
  }

  static void finish(const Chain& chain, Value* sums) {
    chain.sum->replaceAllUsesWith(llvm::PoisonValue::get(chain.sum->getType()));
    chain.sum->eraseFromParent();
    chain.dots.back()->replaceAllUsesWith(sums);
    for (auto it = chain.dots.rbegin(); it != chain.dots.rend(); ++it) (*it)->eraseFromParent();
  }

  BasicBlock& loop_;
  BasicBlock* end_;  // between the loop and what follows it
  const Neighbours& neighbours_;
  llvm::IRBuilder<> b_;
  std::map<std::array<Value*, 4>, Value*> rows_;
  std::map<std::pair<Value*, Value*>, std::pair<Value*, Value*>> columns_;
};

// Of the loop whose only block it is, the block that follows; null: it is none.
BasicBlock* exit_of(BasicBlock& block) {
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
  if (branch == nullptr || !branch->isConditional()) return nullptr;
  BasicBlock *x = branch->getSuccessor(0), *y = branch->getSuccessor(1);
  if (x == y) return nullptr;
  return x == &block ? y : y == &block ? x : nullptr;
}

// Pairs of chains whose rows are multiplied by the same columns, in the order of the code.
std::vector<std::pair<Chain, Chain>> pairs_in(BasicBlock& loop) {
  std::vector<Chain> chains;
  for (llvm::PHINode& sum : loop.phis()) {
    Chain chain = chain_of(sum, loop);
    if (!chain.dots.empty()) chains.push_back(std::move(chain));
  }
  std::ranges::sort(chains, [](const Chain& x, const Chain& y) {
    return x.dots.front()->comesBefore(y.dots.front());
  });
  std::map<std::pair<ID, std::vector<Value*>>, Chain> waiting;
  std::vector<std::pair<Chain, Chain>> out;
  for (Chain& chain : chains) {
    auto [it, is_new] = waiting.try_emplace({chain.matrix, chain.columns}, chain);
    if (is_new) continue;
    out.emplace_back(std::move(it->second), std::move(chain));
    waiting.erase(it);
  }
  return out;
}

Neighbours neighbours_in(BasicBlock& loop, const std::vector<std::pair<Chain, Chain>>& pairs,
                         llvm::ScalarEvolution& evolution) {
  Neighbours out;
  const bool writes = std::ranges::any_of(loop, [](llvm::Instruction& i) {
    auto* call = llvm::dyn_cast<IntrinsicInst>(&i);
    const bool prefetch = call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::prefetch;
    return i.mayWriteToMemory() && !prefetch;
  });
  auto load_of = [&](Value* v) {
    auto* load = llvm::dyn_cast<llvm::LoadInst>(v);
    return load != nullptr && load->getParent() == &loop && load->isSimple() ? load : nullptr;
  };
  auto add = [&](Value* word, Value* next) {
    auto *x = load_of(word), *y = load_of(next);
    if (x == nullptr || y == nullptr) return;
    auto* distance = llvm::dyn_cast<llvm::SCEVConstant>(evolution.getMinusSCEV(
        evolution.getSCEV(y->getPointerOperand()), evolution.getSCEV(x->getPointerOperand())));
    constexpr int64_t kWordBytes = 4;
    if (distance != nullptr && distance->getAPInt().getSExtValue() == kWordBytes) {
      out.emplace(word, next);
    }
  };
  for (const auto& [first, second] : pairs) {
    for (size_t i = 0; !writes && i < first.words.size(); i += 2) {
      for (const Chain& chain : {first, second}) add(chain.words[i], chain.words[i + 1]);
    }
  }
  return out;
}

}  // namespace

void mark_for_row_pairs(llvm::CallInst& dot, ID matrix) {
  dot.addFnAttr(
      llvm::Attribute::get(dot.getContext(), kMark, llvm::Intrinsic::getBaseName(matrix)));
}

llvm::PreservedAnalyses RowPairsPass::run(llvm::Function& f,
                                          llvm::FunctionAnalysisManager& analyses) {
  // All loops are looked at before one is changed.
  std::vector<LoopPairs> loops;
  for (BasicBlock& block : f) {
    BasicBlock* exit = exit_of(block);
    if (exit == nullptr) continue;
    auto pairs = pairs_in(block);
    if (pairs.empty()) continue;
    auto neighbours =
        neighbours_in(block, pairs, analyses.getResult<llvm::ScalarEvolutionAnalysis>(f));
    loops.push_back({&block, exit, std::move(pairs), std::move(neighbours)});
  }
  for (const LoopPairs& l : loops) {
    Replacement replacement(*l.loop, *l.exit, l.neighbours);
    for (const auto& [x, y] : l.pairs) replacement.replace(x, y);
  }
  return loops.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
}

}  // namespace relay::codegen
