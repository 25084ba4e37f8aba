// From the subgraphs of a model to expressions: values by tensor, rows by operator.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/common/program_builder.h"
#include "frontend/tflite/model.h"

namespace relay::frontend::tflite {

struct Row;

// What a resource of a model holds: the value of a variable, or the keys and values of a hash table.
struct Resource {
  std::string name;
  ValuePtr value;
  ValuePtr keys;  // of a table
};

class Importer : public ProgramBuilder {
 public:
  Importer(std::shared_ptr<const SourceFile> file, const ImportOptions& options,
           const Model& model);

  // The program of a signature; of the first subgraph for an empty name. E0515 for one that is not there.
  ImportedModel run(const std::string& signature);

  // ---- What rows use
  const Model& model() const { return model_; }
  // The outputs of a subgraph for these values of its inputs.
  Values import_graph(int64_t index, const Values& inputs, const Span& span);
  // The resource of a name, which is made with the first use of it; and what a handle stands for, E0507 for no handle.
  ValuePtr handle(const std::string& name);
  Resource& resource(const ValuePtr& handle, const Span& span);
  // E0504 in a branch or a loop: what is written there would not be seen behind it.
  void check_may_write(const Span& span) const;
  // Runs a part in which resources are not written.
  template <class Part>
  auto in_branch(const Part& part) {
    ++branches_;
    struct Leave {
      int& count;
      ~Leave() { --count; }
    } leave{branches_};
    return part();
  }
  // Whether the subgraph runs for the first time; from now on it did.
  bool first_call(int64_t graph) { return called_.insert(graph).second; }
  // The tensor becomes this value behind the operator: the state of a recurrent layer.
  void update_state(int32_t tensor, ValuePtr value);

 private:
  struct Frame {
    size_t graph;
    std::vector<ValuePtr> values;  // by tensor
  };

  void check_operators();
  void declare(size_t graph, const std::map<int32_t, std::string>& names);
  // The value of a tensor: what an operator gave it, its constant, or the zeros that a state begins with.
  ValuePtr value(int32_t tensor, const Span& span);
  void import_operators(size_t graph);
  void import_operator(size_t graph, size_t index);
  Values convert(size_t graph, size_t index, Values inputs, const Span& span);
  void define_output(int32_t tensor, ValuePtr value, const Span& span);

  const Model& model_;
  std::deque<Frame> frames_;
  UniqueNames weight_names_;
  std::map<std::string, ValuePtr> handles_;
  std::unordered_map<const ModelValue*, Resource> resources_;
  std::set<int64_t> called_;
  int branches_ = 0;
};

}  // namespace relay::frontend::tflite
