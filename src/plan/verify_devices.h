// The part of the verifier that is about devices: where values are, and which transfers go on.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace relay::plan {

class DeviceRules {
 public:
  DeviceRules(const PlanProgram& program, const PlanFunction& f) : program_(program), f_(f) {}

  // What is wrong with the next step, whose values are those that its row says; empty where nothing is.
  std::string defect(const Step& s);

 private:
  struct Transfer {
    ValueId event;
    Device device;
    ValueId on_host;
    bool writes_host;
  };

  // Where the memory of a value is, as far as its place says so.
  std::string defect_of(const PlanValue& v) const;
  std::string defect_of_devices(const Step& s) const;
  std::string end_transfers(const Step& wait);
  std::string use_beside_transfers(const Step& s) const;
  bool same_place(ValueId a, ValueId b) const;

  const PlanProgram& program_;
  const PlanFunction& f_;
  std::vector<Transfer> transfers_;  // that go on
};

}  // namespace relay::plan
