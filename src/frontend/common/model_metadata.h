// What a model file says about its use, beside the program: what its inputs are and how they are prepared, what its
// results mean, and the files that come with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace relay {

struct ModelMetadata {
  struct File {
    std::string name;
    int64_t bytes = 0;
  };
  struct Tensor {
    std::string name;  // of the input or the result in the program
    std::string title, description;
    bool is_image = false;
    bool is_grey = false;
    // (x - mean) / std; empty, one number each, or one for each channel.
    std::vector<float> mean, std;
    // Of integers that stand for real numbers, scale * (integer - zero); 0 for others.
    float scale = 0;
    int64_t zero = 0;
    // Names of the elements along the last axis.
    std::vector<std::string> labels;
  };
  std::string name, description, version, author, license;
  std::vector<Tensor> inputs, outputs;
  std::vector<File> files;

  // Null for a tensor that it says nothing of.
  const Tensor* input(const std::string& tensor) const { return find(inputs, tensor); }
  const Tensor* output(const std::string& tensor) const { return find(outputs, tensor); }

 private:
  static const Tensor* find(const std::vector<Tensor>& list, const std::string& tensor) {
    for (const Tensor& t : list)
      if (t.name == tensor) return &t;
    return nullptr;
  }
};

}  // namespace relay
