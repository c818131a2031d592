// What is just valid.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/layout.h"
#include "gtest/gtest.h"
#include "tests/common/sample_spec.h"

namespace holdfast {
namespace {

using Spec = v1::ModelSpec;

struct GoodSpec {
  std::string name;
  std::function<void(Spec&)> change;
};

class GoodSpecTest : public testing::TestWithParam<GoodSpec> {};

TEST_P(GoodSpecTest, Create_AtTheEdgeOfWhatIsValid_IsTaken) {
  Spec spec = SampleSpec();
  GetParam().change(spec);
  EXPECT_TRUE(ModelLayout::Create(spec, 2).ok()) << ModelLayout::Create(spec, 2).status();
}

INSTANTIATE_TEST_SUITE_P(
    Table, GoodSpecTest,
    testing::Values(
        GoodSpec{"LongestNames",
                 [](Spec& s) {
                   s.set_name(std::string(128, 'M'));
                   s.mutable_units(0)->set_name(std::string(1024, 'u'));
                   s.mutable_units(0)->mutable_buffers(0)->set_name(std::string(1024, 'b'));
                   s.mutable_emas(0)->set_name(std::string(64, '-'));
                   (*s.mutable_optimizer()->mutable_worker()).mutable_states(0)->set_name(std::string(64, '_'));
                   s.add_ignored_parameters(std::string(1024, '?'));
                 }},
        GoodSpec{"AnyBytesInATensorsName",
                 [](Spec& s) { s.mutable_units(2)->mutable_parameters(1)->set_name("ä \n'"); }},
        GoodSpec{"UnitNamedAsAParameter", [](Spec& s) { s.mutable_units(0)->set_name("embed.weight"); }},
        GoodSpec{"StateNamedAsAnEma",
                 [](Spec& s) { (*s.mutable_optimizer()->mutable_worker()).mutable_states(0)->set_name("slow"); }},
        GoodSpec{"SixtyFourDimensions",
                 [](Spec& s) { AddParameter(*s.mutable_units(0), "x", std::vector<int64_t>(64, 1)); }},
        GoodSpec{"EmptyWithOneLongSide",
                 [](Spec& s) {
                   AddParameter(*s.mutable_units(0), "x", {std::numeric_limits<int64_t>::max(), 0, 1});
                 }},
        GoodSpec{"LargestTensor",
                 [](Spec& s) {
                   // 2^43 bytes of masters on each of two ranks, with no copies of them.
                   s.clear_emas();
                   s.clear_optimizer();
                   s.set_gather_slots(1);
                   s.set_update_protection(v1::UPDATE_PROTECTION_NONE);
                   AddParameter(*s.mutable_units(0), "x", {int64_t{1} << 42}).set_frozen(true);
                 }},
        GoodSpec{"EverythingIgnored", [](Spec& s) { s.add_ignored_parameters("*"); }},
        GoodSpec{"ManyIgnored",
                 [](Spec& s) {
                   for (int i = 0; i < 256; ++i) s.add_ignored_parameters(absl::StrCat("nothing.", i, ".*"));
                 }},
        // What is ignored need not be trainable, nor be tied to anything there is.
        GoodSpec{"IgnoredIntegerAndAlias",
                 [](Spec& s) {
                   AddParameter(*s.mutable_units(0), "x.0", {2}, v1::DATA_TYPE_INT8);
                   AddParameter(*s.mutable_units(0), "x.1", {2}).set_alias_of("nothing");
                   s.add_ignored_parameters("x.?");
                 }},
        GoodSpec{"MeshSpelledOut", [](Spec& s) { SetMesh(s, v1::SHARDING_STRATEGY_NO_SHARD, 2, 1); }},
        GoodSpec{"HybridOfOneReplica", [](Spec& s) { SetMesh(s, v1::SHARDING_STRATEGY_HYBRID_SHARD, 1, 2); }},
        GoodSpec{"SlowestAndFastestDecay",
                 [](Spec& s) {
                   s.mutable_emas(0)->mutable_constant()->set_decay(0);
                   s.mutable_emas(1)->mutable_warmup()->set_decay(std::nextafter(1.0, 0.0));
                 }},
        GoodSpec{"PowerFunctions",
                 [](Spec& s) {
                   s.mutable_emas(0)->mutable_power_function()->set_gamma(1e-300);
                   s.mutable_emas(1)->mutable_power_function()->set_sigma_rel(0.28859);
                   s.mutable_emas(1)->set_update_every(std::numeric_limits<uint64_t>::max());
                 }},
        GoodSpec{"MostSlots",
                 [](Spec& s) {
                   s.set_gather_slots(256);
                   s.set_gradient_slots(256);
                 }},
        GoodSpec{"ManyUnitsOfShardGradOpWithANumber",
                 [](Spec& s) {
                   SetMesh(s, v1::SHARDING_STRATEGY_SHARD_GRAD_OP, 0, 0);
                   s.set_gather_slots(4);
                   for (int i = 0; i < 300; ++i) {
                     v1::UnitSpec& unit = *s.add_units();
                     unit.set_name(absl::StrCat("u", i));
                     AddParameter(unit, absl::StrCat("p", i), {1});
                   }
                 }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace holdfast
