// Every diagnostic code a user can meet, in one list.
//
// Ranges: E01xx text, E02xx types, E03xx passes, E04xx lowering and code generation, E05xx front
// ends, E06xx runtime, artifacts and run-time inputs, E07xx driver, options and command line, E08xx
// operator attributes. A code never changes its meaning; each has a must-fail test.
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

// E01xx: text.
inline constexpr DiagnosticCode text_unexpected_token{"E0101", "unexpected token"};
inline constexpr DiagnosticCode text_bad_literal{"E0102", "bad literal"};
inline constexpr DiagnosticCode text_unbound_name{"E0103", "unbound name"};
inline constexpr DiagnosticCode text_duplicate_name{"E0104", "duplicate definition"};
inline constexpr DiagnosticCode text_unknown_operator{"E0105", "unknown operator"};
inline constexpr DiagnosticCode text_bad_attribute{"E0106", "bad attribute"};
inline constexpr DiagnosticCode text_bad_version{"E0107", "missing or unsupported version header"};
inline constexpr DiagnosticCode text_bad_metadata{"E0108", "bad metadata section"};

// E02xx: types.
inline constexpr DiagnosticCode type_mismatch{"E0201", "type mismatch"};
inline constexpr DiagnosticCode type_arity{"E0202", "wrong number of arguments"};
inline constexpr DiagnosticCode type_shape{"E0203", "shapes do not fit"};
inline constexpr DiagnosticCode type_dtype{"E0204", "dtype not allowed"};
inline constexpr DiagnosticCode type_rank{"E0205", "wrong rank"};
inline constexpr DiagnosticCode type_not_callable{"E0206", "not a function"};
inline constexpr DiagnosticCode type_not_tuple{"E0207", "not a tuple, or no such field"};
inline constexpr DiagnosticCode type_unsolved{"E0208", "type could not be inferred"};
inline constexpr DiagnosticCode type_infinite{"E0209", "infinite type"};
inline constexpr DiagnosticCode type_kind{"E0210", "wrong kind"};
inline constexpr DiagnosticCode type_match{"E0211",
                                           "match is not exhaustive or has a redundant clause"};
inline constexpr DiagnosticCode type_ill_formed{"E0212", "ill-formed program"};
inline constexpr DiagnosticCode type_overflow{"E0213", "dimension overflow"};

// E03xx: passes.
inline constexpr DiagnosticCode pass_unknown{"E0301", "unknown pass"};
inline constexpr DiagnosticCode pass_broke_invariant{"E0302", "a pass broke an invariant"};
inline constexpr DiagnosticCode pass_cancelled{"E0303", "compilation was cancelled"};
inline constexpr DiagnosticCode compile_time_limit{"E0304", "compilation exceeds its time limit"};
inline constexpr DiagnosticCode compile_memory_limit{"E0305",
                                                     "compilation exceeds its memory limit"};
inline constexpr DiagnosticCode pass_needed{"E0306", "a pass that cannot be skipped"};
inline constexpr DiagnosticCode pass_form{"E0311", "a pass and the form of a program do not fit"};
inline constexpr DiagnosticCode pass_registration{"E0312", "a pass cannot be added"};
inline constexpr DiagnosticCode pass_option{"E0313", "unknown or wrong option of a pass"};

// E04xx: lowering and code generation.
inline constexpr DiagnosticCode lower_unsupported{"E0401", "not supported by the compiler"};
inline constexpr DiagnosticCode schedule_illegal{"E0402", "illegal schedule step"};
inline constexpr DiagnosticCode codegen_target{"E0403", "unknown target or feature"};
inline constexpr DiagnosticCode codegen_failed{"E0404", "code generation failed"};

// E05xx: front ends.
inline constexpr DiagnosticCode frontend_unsupported{"E0501", "operator that cannot be imported"};
inline constexpr DiagnosticCode frontend_damaged{"E0502", "damaged model file"};
inline constexpr DiagnosticCode frontend_version{"E0503", "model of an unsupported version"};
inline constexpr DiagnosticCode frontend_attribute{"E0504", "unsupported attribute or input"};
inline constexpr DiagnosticCode frontend_dynamic{"E0505", "shape that depends on data"};
inline constexpr DiagnosticCode frontend_limit{"E0506", "model exceeds a limit"};
inline constexpr DiagnosticCode frontend_graph{"E0507", "ill-formed model graph"};
inline constexpr DiagnosticCode frontend_tensor{"E0508", "bad tensor in a model"};
inline constexpr DiagnosticCode frontend_external_data{"E0509", "unusable external data"};
inline constexpr DiagnosticCode frontend_input{"E0510", "wrong option for a model input"};
inline constexpr DiagnosticCode frontend_file{"E0511", "model file cannot be read"};

// E06xx: runtime, artifacts and run-time inputs.
inline constexpr DiagnosticCode tensor_size{"E0601", "tensor size out of range"};
inline constexpr DiagnosticCode tensor_dlpack{"E0602", "unusable DLPack tensor"};
inline constexpr DiagnosticCode run_input{"E0603", "wrong input at run time"};
inline constexpr DiagnosticCode run_out_of_memory{"E0604", "out of memory"};
inline constexpr DiagnosticCode run_kernel_failed{"E0605", "a kernel reported an error"};
inline constexpr DiagnosticCode run_out_of_fuel{"E0606", "instruction limit reached"};
inline constexpr DiagnosticCode run_failed{"E0607", "the program failed"};
inline constexpr DiagnosticCode artifact_corrupt{"E0608", "damaged artifact"};
inline constexpr DiagnosticCode artifact_version{"E0609", "artifact of another version"};
inline constexpr DiagnosticCode artifact_cpu{"E0610", "artifact for another CPU"};
inline constexpr DiagnosticCode artifact_io{"E0611",
                                            "artifact cannot be read, or file not written"};
inline constexpr DiagnosticCode run_no_function{"E0612", "no such function"};
inline constexpr DiagnosticCode bytecode_invalid{"E0613", "invalid bytecode"};
inline constexpr DiagnosticCode artifact_changed{"E0614", "artifact overwritten while in use"};
inline constexpr DiagnosticCode run_time_limit{"E0615", "a run exceeds its time limit"};

// E07xx: driver, options and command line.
inline constexpr DiagnosticCode driver_file{"E0701", "file cannot be read"};
inline constexpr DiagnosticCode driver_option{"E0702", "bad option"};
inline constexpr DiagnosticCode driver_output_exists{"E0703", "output file exists"};
inline constexpr DiagnosticCode driver_usage{"E0704", "wrong usage of the command line"};
inline constexpr DiagnosticCode driver_output{"E0705", "output cannot be written"};

// E08xx: operators: their attributes, and rows from outside.
inline constexpr DiagnosticCode op_bad_attribute{"E0801", "operator attribute out of range"};
inline constexpr DiagnosticCode op_bad_name{"E0802", "bad name of an operator"};
inline constexpr DiagnosticCode op_name_taken{"E0803", "operator registered already"};
inline constexpr DiagnosticCode op_incomplete{"E0804", "operator with empty columns"};
inline constexpr DiagnosticCode op_attribute_list{"E0805", "bad list of attributes"};

}  // namespace relay::codes
