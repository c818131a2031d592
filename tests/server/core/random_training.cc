#include "tests/server/core/random_training.h"

#include <algorithm>
#include <numeric>

#include "gtest/gtest.h"
#include "server/core/ema_schedule.h"
#include "tests/common/element/element_reference.h"
#include "tests/server/core/model_values.h"

namespace holdfast {
namespace {

constexpr size_t kFirstState = 0;

std::vector<double> PartOf(const std::vector<double>& whole, const FlatParameter& flat, int32_t shard) {
  const auto first = whole.begin() + shard * flat.shard_elements;
  return {first, first + flat.shard_elements};
}

void Write(absl::Span<std::byte> place, const std::vector<double>& values, DType dtype) {
  const std::vector<std::byte> bytes = testing::EncodeAll(dtype, values);
  std::copy(bytes.begin(), bytes.end(), place.begin());
}

uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccd;
  return (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53;
}

}  // namespace

RandomTraining::RandomTraining(const ModelLayout& layout, uint64_t seed, uint64_t num_steps)
    : layout_(layout), seed_(seed) {
  ReferenceState& initial = states_.emplace_back();
  initial.emas.resize(layout.emas().size());
  for (size_t u = 0; u < layout.units().size(); ++u) {
    for (size_t f = 0; f < layout.units()[u].flat_parameters.size(); ++f) {
      const FlatParameter& of = flat({u, f});
      // Integers are carried as bytes: they stay zero.
      std::vector<double> values(static_cast<size_t>(of.padded_elements(layout.mesh().num_shard)));
      if (IsArithmetic(of.master_dtype)) {
        const std::vector<double> drawn = testing::RandomIntegers(of.num_elements, seed * 100 + u * 10 + f, 8);
        std::copy(drawn.begin(), drawn.end(), values.begin());
      }
      if (of.trainable) {
        ++num_trainable_;
        initial.states[{u, f}] = std::vector<double>(values.size());
        for (auto& ema : initial.emas) ema[{u, f}] = values;
      }
      initial.parameters[{u, f}] = std::move(values);
    }
  }
  std::mt19937_64 random(seed);
  for (uint64_t step = 0; step < num_steps; ++step) {
    AddProgram(random);
    AddState();
  }
}

void RandomTraining::AddProgram(std::mt19937_64& random) {
  std::vector<ProgramCall>& program = programs_.emplace_back();
  num_micro_steps_.push_back(1 + random() % 2);
  std::vector<size_t> units(layout_.units().size());
  std::iota(units.begin(), units.end(), size_t{0});
  for (uint64_t micro_step = 0; micro_step < num_micro_steps_.back(); ++micro_step) {
    std::shuffle(units.begin(), units.end(), random);
    for (size_t i = 0; i < units.size(); ++i) {
      ProgramCall& gather = program.emplace_back(ProgramCall{.unit = units[i]});
      if (i + 1 < units.size() && random() % 2 == 0) gather.prefetch = {layout_.units()[units[i + 1]].name};
    }
    for (const size_t unit : units) {
      const std::vector<FlatParameter>& flats = layout_.units()[unit].flat_parameters;
      if (std::any_of(flats.begin(), flats.end(), [](const FlatParameter& f) { return f.trainable; })) {
        program.push_back({.is_gather = false, .unit = unit, .micro_step = micro_step});
      }
    }
  }
}

double RandomTraining::Gradient(Step step, uint64_t micro_step, FlatIndex index, Rank rank, int64_t element) const {
  // Padding has no gradient.
  if (element >= flat(index).num_elements) return 0;
  uint64_t hash = seed_;
  for (const uint64_t part : {step.value(), micro_step, uint64_t{index.first}, uint64_t{index.second},
                              static_cast<uint64_t>(rank.value()), static_cast<uint64_t>(element)}) {
    hash = Mix(hash + part + 1);
  }
  // Multiples of the number of ranks, so that their mean is a whole number.
  return (static_cast<double>(hash % 9) - 4) * layout_.mesh().world();
}

double RandomTraining::MeanGradient(Step step, FlatIndex index, int64_t element) const {
  double sum = 0;
  for (uint64_t micro_step = 0; micro_step < num_micro_steps_[step.value()]; ++micro_step) {
    for (int32_t rank = 0; rank < layout_.mesh().world(); ++rank) {
      sum += Gradient(step, micro_step, index, Rank(rank), element);
    }
  }
  return sum / layout_.mesh().world();
}

void RandomTraining::AddState() {
  const Step step(states_.size() - 1);
  ReferenceState next = states_.back();
  for (auto& [index, state] : next.states) {
    std::vector<double>& parameter = next.parameters[index];
    for (size_t i = 0; i < state.size(); ++i) {
      const double gradient = MeanGradient(step, index, static_cast<int64_t>(i));
      parameter[i] = parameter[i] / 2 + gradient;
      state[i] += gradient;
    }
    for (size_t e = 0; e < next.emas.size(); ++e) {
      const v1::EmaSpec& spec = layout_.spec().emas(static_cast<int>(e));
      if (!UpdatesAt(spec, step.Next())) continue;
      const double decay = spec.constant().decay();
      std::vector<double>& ema = next.emas[e][index];
      for (size_t i = 0; i < ema.size(); ++i) ema[i] = decay * ema[i] + (1 - decay) * parameter[i];
    }
  }
  states_.push_back(std::move(next));
}

void RandomTraining::WriteInitial(const TestWorker& worker) const {
  const int32_t shard = layout_.mesh().ShardOf(worker.rank());
  for (const auto& [index, values] : states_[0].parameters) {
    const FlatParameter& of = flat(index);
    if (IsArithmetic(of.master_dtype)) Write(worker.Shard(of), PartOf(values, of, shard), of.master_dtype);
  }
}

void RandomTraining::WriteGradient(const TestWorker& worker, Step step, uint64_t micro_step, size_t unit,
                                   int32_t slot) const {
  for (size_t f = 0; f < layout_.units()[unit].flat_parameters.size(); ++f) {
    const FlatParameter& of = flat({unit, f});
    if (!of.trainable) continue;
    std::vector<double> gradient;
    for (int64_t i = 0; i < of.padded_elements(layout_.mesh().num_shard); ++i) {
      gradient.push_back(Gradient(step, micro_step, {unit, f}, worker.rank(), i));
    }
    Write(worker.GradientSlot(slot, of), gradient, of.reduce_dtype);
  }
}

void RandomTraining::WriteUpdate(const TestWorker& worker, Step step, size_t num_parts) const {
  const auto commit_count = static_cast<std::byte>(step.value() + 1);
  for (const UnitLayout& unit : layout_.units()) {
    for (const BufferLayout& buffer : unit.buffers) {
      const absl::Span<std::byte> bytes = worker.Buffer(buffer);
      std::fill(bytes.begin(), bytes.end(), commit_count);
    }
  }
  size_t part = 0;
  for (const auto& [index, states] : states_[0].states) {
    if (part++ == num_parts) return;
    const FlatParameter& of = flat(index);
    const DType state_dtype = layout_.StateDType(of, kFirstState);
    const std::vector<double> gradient = ValuesOf(worker.Gradient(of), of.master_dtype);
    std::vector<double> parameter = ValuesOf(worker.Shard(of), of.master_dtype);
    std::vector<double> state = ValuesOf(worker.State(of, kFirstState), state_dtype);
    for (size_t i = 0; i < gradient.size(); ++i) {
      parameter[i] = parameter[i] / 2 + gradient[i];
      state[i] += gradient[i];
    }
    Write(worker.Shard(of), parameter, of.master_dtype);
    Write(worker.State(of, kFirstState), state, state_dtype);
  }
}

void RandomTraining::ExpectGathered(const TestWorker& worker, Step step, UnitIndex unit, int32_t slot) const {
  for (size_t f = 0; f < layout_.unit(unit).flat_parameters.size(); ++f) {
    const FlatIndex index(static_cast<size_t>(unit.value()), f);
    const FlatParameter& of = flat(index);
    if (!IsArithmetic(of.param_dtype)) continue;
    EXPECT_EQ(BytesOf(worker.GatherSlot(slot, of)), RoundedBytes(at(step).parameters.at(index), of.param_dtype))
        << "flat parameter " << f << " of unit '" << layout_.unit(unit).name << "' at step " << step << " on rank "
        << worker.rank();
  }
}

void RandomTraining::ExpectShards(const TestWorker& worker, Step step) const {
  const int32_t shard = layout_.mesh().ShardOf(worker.rank());
  const ReferenceState& reference = at(step);
  for (const auto& [index, values] : reference.states) {
    const FlatParameter& of = flat(index);
    EXPECT_EQ(ValuesOf(worker.Shard(of), of.master_dtype), PartOf(reference.parameters.at(index), of, shard));
    EXPECT_EQ(ValuesOf(worker.State(of, kFirstState), layout_.StateDType(of, kFirstState)), PartOf(values, of, shard));
  }
  for (const UnitLayout& unit : layout_.units()) {
    for (const BufferLayout& buffer : unit.buffers) {
      for (const std::byte byte : worker.Buffer(buffer)) EXPECT_EQ(byte, static_cast<std::byte>(step.value()));
    }
  }
}

std::vector<std::byte> RandomTraining::Tensor(const std::string& name, Step step, int ema) const {
  const TensorLocation location = *layout_.FindTensor(name);
  const FlatIndex index(static_cast<size_t>(location.unit.value()), static_cast<size_t>(location.flat_parameter));
  const ParameterLayout& parameter = flat(index).parameters[static_cast<size_t>(location.index)];
  const std::vector<double>& whole =
      ema < 0 ? at(step).parameters.at(index) : at(step).emas[static_cast<size_t>(ema)].at(index);
  const auto first = whole.begin() + parameter.offset;
  return testing::EncodeAll(ema < 0 ? flat(index).master_dtype : layout_.emas()[static_cast<size_t>(ema)].dtype,
                            {first, first + parameter.num_elements});
}

}  // namespace holdfast
