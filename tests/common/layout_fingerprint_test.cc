#include "common/layout_fingerprint.h"

#include <functional>
#include <map>
#include <string>

#include "common/layout.h"
#include "gtest/gtest.h"
#include "tests/common/sample_spec.h"

namespace holdfast {
namespace {

using Spec = v1::ModelSpec;

uint64_t Fingerprint(const Spec& spec) { return ModelLayout::Create(spec, 2).value().fingerprint(); }

// If this fails, layouts have changed: a worker of the last release can't work with a daemon of this one, and memory
// that was kept can't be adopted. Change the number only if that is meant.
TEST(LayoutFingerprintTest, SampleSpec_HasTheFingerprintItAlwaysHad) {
  EXPECT_EQ(FingerprintText(Fingerprint(SampleSpec())), "6059b6b662c7bb2e");
}

TEST(LayoutFingerprintTest, FingerprintText_IsSixteenDigits) {
  EXPECT_EQ(FingerprintText(0xab), "00000000000000ab");
  EXPECT_EQ(FingerprintText(~uint64_t{0}), "ffffffffffffffff");
}

TEST(LayoutFingerprintTest, EveryFieldThatMovesSomething_ChangesIt_NoTwoAlike) {
  const std::map<std::string, std::function<void(Spec&)>> changes = {
      {"nothing", [](Spec&) {}},
      {"unit name", [](Spec& s) { s.mutable_units(0)->set_name("other"); }},
      {"unit more", [](Spec& s) { s.add_units()->set_name("empty"); }},
      {"unit order", [](Spec& s) { s.mutable_units()->SwapElements(0, 1); }},
      {"parameter name", [](Spec& s) { s.mutable_units(2)->mutable_parameters(1)->set_name("other"); }},
      {"parameter order", [](Spec& s) { s.mutable_units(1)->mutable_parameters()->SwapElements(0, 1); }},
      {"parameter more", [](Spec& s) { AddParameter(*s.mutable_units(1), "x", {0}); }},
      {"parameter less", [](Spec& s) { s.mutable_units(2)->mutable_parameters()->RemoveLast(); }},
      {"length", [](Spec& s) { s.mutable_units(1)->mutable_parameters(0)->set_shape(0, 5); }},
      // As many elements.
      {"shape",
       [](Spec& s) {
         s.mutable_units(1)->mutable_parameters(0)->set_shape(0, 8);
         s.mutable_units(1)->mutable_parameters(0)->set_shape(1, 2);
       }},
      {"dimensions", [](Spec& s) { s.mutable_units(1)->mutable_parameters(0)->add_shape(1); }},
      {"dtype", [](Spec& s) { s.mutable_units(1)->mutable_parameters(0)->set_dtype(v1::DATA_TYPE_FLOAT16); }},
      {"carried dtype", [](Spec& s) { s.mutable_units(1)->mutable_parameters(3)->set_dtype(v1::DATA_TYPE_INT8); }},
      {"frozen", [](Spec& s) { s.mutable_units(1)->mutable_parameters(1)->set_frozen(true); }},
      {"untied", [](Spec& s) { s.mutable_units(2)->mutable_parameters(0)->clear_alias_of(); }},
      {"alias name", [](Spec& s) { s.mutable_units(2)->mutable_parameters(0)->set_name("other.weight"); }},
      {"alias gone",
       [](Spec& s) {
         s.mutable_units(2)->mutable_parameters()->SwapElements(0, 1);
         s.mutable_units(2)->mutable_parameters()->RemoveLast();
       }},
      {"ignored", [](Spec& s) { s.add_ignored_parameters("block.bias"); }},
      {"buffer name", [](Spec& s) { s.mutable_units(1)->mutable_buffers(0)->set_name("other"); }},
      {"buffer length", [](Spec& s) { s.mutable_units(1)->mutable_buffers(0)->set_shape(0, 5); }},
      {"buffer dtype", [](Spec& s) { s.mutable_units(1)->mutable_buffers(0)->set_dtype(v1::DATA_TYPE_INT32); }},
      {"strategy", [](Spec& s) { s.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_SHARD_GRAD_OP); }},
      {"mesh", [](Spec& s) { s.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_NO_SHARD); }},
      {"param", [](Spec& s) { s.mutable_precision()->set_param(v1::DATA_TYPE_FLOAT16); }},
      {"reduce", [](Spec& s) { s.mutable_precision()->set_reduce(v1::DATA_TYPE_FLOAT64); }},
      {"master", [](Spec& s) { s.mutable_precision()->set_master(v1::DATA_TYPE_FLOAT64); }},
      {"buffer precision", [](Spec& s) { s.mutable_precision()->set_buffer(v1::DATA_TYPE_FLOAT16); }},
      {"ema name", [](Spec& s) { s.mutable_emas(0)->set_name("other"); }},
      {"ema dtype", [](Spec& s) { s.mutable_emas(0)->set_dtype(v1::DATA_TYPE_BFLOAT16); }},
      {"ema order", [](Spec& s) { s.mutable_emas()->SwapElements(0, 1); }},
      {"ema less", [](Spec& s) { s.mutable_emas()->RemoveLast(); }},
      {"state name", [](Spec& s) { s.mutable_optimizer()->mutable_worker()->mutable_states(0)->set_name("other"); }},
      {"state dtype",
       [](Spec& s) { s.mutable_optimizer()->mutable_worker()->mutable_states(0)->set_dtype(v1::DATA_TYPE_BFLOAT16); }},
      {"state less", [](Spec& s) { s.mutable_optimizer()->mutable_worker()->mutable_states()->RemoveLast(); }},
      {"gather slots", [](Spec& s) { s.set_gather_slots(4); }},
      {"gradient slots", [](Spec& s) { s.set_gradient_slots(4); }},
      {"protection", [](Spec& s) { s.set_update_protection(v1::UPDATE_PROTECTION_NONE); }},
  };
  std::map<uint64_t, std::string> seen;
  for (const auto& [name, change] : changes) {
    Spec spec = SampleSpec();
    change(spec);
    const auto [other, is_new] = seen.emplace(Fingerprint(spec), name);
    EXPECT_TRUE(is_new) << "'" << name << "' and '" << other->second << "' have the same fingerprint";
  }
}

TEST(LayoutFingerprintTest, WhatMovesNothing_LeavesIt) {
  const std::map<std::string, std::function<void(Spec&)>> changes = {
      {"model name", [](Spec& s) { s.set_name("other"); }},
      {"default spelled out", [](Spec& s) { s.set_gather_slots(3); }},
      {"decay", [](Spec& s) { s.mutable_emas(0)->mutable_constant()->set_decay(0.5); }},
      {"schedule", [](Spec& s) { s.mutable_emas(0)->mutable_warmup()->set_decay(0.5); }},
      {"update_every", [](Spec& s) { s.mutable_emas(0)->set_update_every(10); }},
      {"glob that matches nothing", [](Spec& s) { s.add_ignored_parameters("nothing.*"); }},
      {"ignored parameter",
       [](Spec& s) {
         AddParameter(*s.mutable_units(0), "extra", {9});
         s.add_ignored_parameters("extra");
       }},
  };
  for (const auto& [name, change] : changes) {
    Spec spec = SampleSpec();
    change(spec);
    EXPECT_EQ(Fingerprint(spec), Fingerprint(SampleSpec())) << name;
  }
}

}  // namespace
}  // namespace holdfast
