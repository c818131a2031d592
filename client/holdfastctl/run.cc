#include "client/holdfastctl/run.h"

#include <algorithm>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/holdfastctl/command.h"

namespace holdfast::ctl {
namespace {

// What precedes the command, the command's own arguments behind its name, and the command; null if there is none of
// that name.
struct Choice {
  const Command* command = nullptr;
  std::vector<std::string> arguments;
  // As it was given.
  std::string name;
};

// Flags may stand before the command's name, too, as --NAME=VALUE.
Choice Choose(const std::vector<std::string>& arguments) {
  Choice choice;
  const auto first_word =
      std::find_if(arguments.begin(), arguments.end(), [](const std::string& text) { return !text.starts_with("--"); });
  choice.arguments.assign(arguments.begin(), first_word);
  if (first_word == arguments.end()) return choice;
  choice.name = *first_word;
  auto rest = first_word + 1;
  const auto find = [&choice] {
    const absl::Span<const Command> all = AllCommands();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Command& command) { return command.name == choice.name; });
    choice.command = found == all.end() ? nullptr : &*found;
  };
  find();
  // Of two words.
  if (choice.command == nullptr && rest != arguments.end()) {
    absl::StrAppend(&choice.name, " ", *rest++);
    find();
  }
  choice.arguments.insert(choice.arguments.end(), rest, arguments.end());
  return choice;
}

std::string UsageLine(const Command& command) {
  return absl::StrCat("holdfastctl ", std::string(command.name), command.words.empty() ? "" : " ",
                      std::string(command.words), command.flags.empty() ? "" : " [FLAG...]");
}

void PrintUsage(std::ostream& out) {
  out << "holdfastctl operates a holdfastd.\n\n";
  for (const Command& command : AllCommands()) {
    out << absl::StrFormat("  %-28s %s\n", absl::StrCat(std::string(command.name), " ", std::string(command.words)),
                           std::string(command.summary));
  }
  out << "\n  holdfastctl COMMAND --help   shows the flags of a command\n"
         "  holdfastctl --version        shows the version\n"
         "\nExit codes: 0 done, 1 refused or failed, 2 wrong arguments or configuration, 3 no daemon or no answer.\n";
}

void PrintCommandUsage(const Command& command, std::ostream& out) {
  out << UsageLine(command) << "\n\n" << command.summary << "\n";
  if (!command.flags.empty()) out << '\n';
  for (const FlagSpec& flag : command.flags) {
    const std::string name =
        absl::StrCat("--", std::string(flag.name), flag.value.empty() ? "" : "=", std::string(flag.value));
    out << absl::StrFormat("  %-26s %s\n", name, std::string(flag.help));
  }
}

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kDone;
    case absl::StatusCode::kInvalidArgument:
      return kUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kUnreachable;
    default:
      return kFailed;
  }
}

absl::Status RunCommand(const Command& command, const std::vector<std::string>& arguments, std::ostream& out) {
  const absl::StatusOr<Arguments> parsed = Arguments::Parse(arguments, command.flags);
  if (!parsed.ok()) return parsed.status();
  const size_t num_words = parsed->words().size();
  if (num_words < command.min_words || num_words > command.max_words) {
    return absl::InvalidArgumentError(absl::StrCat(num_words < command.min_words ? "too few" : "too many",
                                                   " words; the usage is: ", UsageLine(command)));
  }
  return command.run(*parsed, out);
}

bool Contains(const std::vector<std::string>& arguments, std::string_view text) {
  return std::find(arguments.begin(), arguments.end(), text) != arguments.end();
}

}  // namespace

ExitCode Run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  const Choice choice = Choose(arguments);
  if (choice.command != nullptr) {
    if (Contains(choice.arguments, "--help")) {
      PrintCommandUsage(*choice.command, out);
      return kDone;
    }
    const absl::Status status = RunCommand(*choice.command, choice.arguments, out);
    if (!status.ok()) err << "holdfastctl " << choice.name << ": " << status.message() << '\n';
    return ExitCodeOf(status);
  }
  if (Contains(arguments, "--help") || choice.name == "help") {
    PrintUsage(out);
    return kDone;
  }
  if (Contains(arguments, "--version")) {
    out << "holdfastctl " << HOLDFAST_VERSION << '\n';
    return kDone;
  }
  if (choice.name.empty()) {
    PrintUsage(err);
  } else {
    err << "holdfastctl: '" << choice.name << "': no such command; holdfastctl --help lists them\n";
  }
  return kUsage;
}

}  // namespace holdfast::ctl
