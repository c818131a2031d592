#include "client/holdfastctl/arguments.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace holdfast::ctl {
namespace {

std::string FlagNames(absl::Span<const FlagSpec> flags) {
  const auto with_dashes = [](std::string* out, const FlagSpec& flag) {
    absl::StrAppend(out, "--", std::string(flag.name));
  };
  return absl::StrJoin(flags, ", ", with_dashes);
}

}  // namespace

absl::StatusOr<Arguments> Arguments::Parse(absl::Span<const std::string> arguments, absl::Span<const FlagSpec> flags) {
  Arguments parsed;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      parsed.words_.insert(parsed.words_.end(), arguments.begin() + static_cast<ptrdiff_t>(i) + 1, arguments.end());
      break;
    }
    if (!argument.starts_with("--")) {
      parsed.words_.push_back(argument);
      continue;
    }
    const size_t equals = std::min(argument.find('='), argument.size());
    const std::string name = argument.substr(2, equals - 2);
    const auto flag =
        std::find_if(flags.begin(), flags.end(), [&](const FlagSpec& candidate) { return candidate.name == name; });
    if (flag == flags.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, ": no such flag; there are ", FlagNames(flags)));
    }
    std::string& value = parsed.flags_[name];
    if (flag->value.empty()) {
      if (equals < argument.size()) {
        return absl::InvalidArgumentError(absl::StrCat(argument, ": --", name, " takes no value"));
      }
    } else if (equals < argument.size()) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": a value is required, as --", name, "=", std::string(flag->value)));
    }
  }
  return parsed;
}

std::string Arguments::Get(const std::string& flag, const std::string& otherwise) const {
  const auto found = flags_.find(flag);
  return found == flags_.end() ? otherwise : found->second;
}

absl::StatusOr<absl::Duration> Arguments::GetDuration(const std::string& flag, absl::Duration otherwise) const {
  if (!Has(flag)) return otherwise;
  absl::Duration duration;
  if (absl::ParseDuration(Get(flag), &duration) && duration >= absl::ZeroDuration() &&
      duration != absl::InfiniteDuration()) {
    return duration;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": '", Get(flag), "'; a duration of 0 or more is valid, as 500ms, 20s or 1m30s"));
}

}  // namespace holdfast::ctl
