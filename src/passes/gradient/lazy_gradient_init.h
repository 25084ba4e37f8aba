// LazyGradientInit: cells for adjoints are filled when something arrives, not with zeros before.
//
// before                                        after
//   let %d = ref(zeros(shape=[1000]));            let %d = ref(Zero);
//   ref_write(%d, add(ref_read(%d), %g));         match (ref_read(%d)) {
//   ref_read(%d)                                    Zero => ref_write(%d, Raw(%g)),
//                                                   Raw(%s) => ref_write(%d, Raw(add(%s, %g))) };
//                                                 match (ref_read(%d)) {
//                                                   Zero => zeros(shape=[1000]), Raw(%s) => %s }
//
// Saves the memory of the zeros and the first sum; the data type is `GradCell[A] { Zero, Raw(A) }`.
// Legal for a reference that a Let binds and that is only read and written, in closures too: one that
// goes elsewhere stays. Loses a match at each use, where PartialEvaluate does not decide it. Gradients
// of the mode higher_order are made in this form.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kLazyGradientInit;

}  // namespace relay
