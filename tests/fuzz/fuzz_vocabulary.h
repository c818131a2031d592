// What a fuzzer's right requests are made of.
#ifndef HOLDFAST_TESTS_FUZZ_FUZZ_VOCABULARY_H_
#define HOLDFAST_TESTS_FUZZ_FUZZ_VOCABULARY_H_

#include <string>
#include <vector>

#include "holdfast/v1/model.pb.h"
#include "tests/fuzz/fuzz_call.h"

namespace holdfast {

// "base", which the driver keeps registered, and others that come and go.
const std::vector<std::string>& FuzzModels();
// The units of every model: a, b, c, d.
const std::vector<std::string>& FuzzUnits();
// These, and names of tensors, copies and states, and globs.
std::vector<std::string> FuzzWords();
// Four units of odd sizes; c is frozen, d ties a's weight.
v1::ModelSpec FuzzSpec(const std::string& name);
// Every unary method; the calls of a step come more often.
std::vector<FuzzMethod> FuzzMethods();

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_FUZZ_FUZZ_VOCABULARY_H_
