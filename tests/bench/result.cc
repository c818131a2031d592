#include "tests/bench/result.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace holdfast::bench {
namespace {

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

std::string Number(std::optional<double> number) {
  return number.has_value() ? absl::StrFormat("%.6g", *number) : std::string("null");
}

std::string Truth(std::optional<bool> truth) {
  if (!truth.has_value()) return "null";
  return *truth ? "true" : "false";
}

}  // namespace

std::optional<double> Ratio(const Result& result) {
  if (result.peer.empty()) return std::nullopt;
  return result.better == Better::kHigher ? result.value / result.peer_value : result.peer_value / result.value;
}

std::optional<bool> Met(const Result& result) {
  if (!result.aim.has_value()) return std::nullopt;
  if (const std::optional<double> ratio = Ratio(result)) return *ratio >= *result.aim;
  return result.better == Better::kHigher ? result.value >= *result.aim : result.value <= *result.aim;
}

std::string ToJson(const Result& result) {
  const bool has_peer = !result.peer.empty();
  const std::optional<double> peer_value = has_peer ? std::optional<double>(result.peer_value) : std::nullopt;
  return absl::StrCat("{\"suite\": ", Quoted(result.suite), ", \"case\": ", Quoted(result.name),
                      ", \"peer\": ", has_peer ? Quoted(result.peer) : "null", ", \"value\": ", Number(result.value),
                      ", \"peer_value\": ", Number(peer_value), ", \"unit\": ", Quoted(result.unit),
                      ", \"ratio\": ", Number(Ratio(result)), ", \"aim\": ", Number(result.aim),
                      ", \"met\": ", Truth(Met(result)), "}");
}

std::string RowHeading() {
  return absl::StrFormat("%-15s %-42s %-44s %9s %9s %-6s %7s %7s  %s", "suite", "case", "peer", "value", "peer's",
                         "unit", "ratio", "aim", "met");
}

std::string ToRow(const Result& result) {
  const std::optional<double> ratio = Ratio(result);
  const std::optional<bool> met = Met(result);
  return absl::StrFormat("%-15s %-42s %-44s %9.4g %9s %-6s %7s %7s  %s", result.suite, result.name,
                         result.peer.empty() ? "-" : result.peer, result.value,
                         result.peer.empty() ? "-" : absl::StrFormat("%.4g", result.peer_value), result.unit,
                         ratio.has_value() ? absl::StrFormat("%.2f", *ratio) : "-",
                         result.aim.has_value() ? absl::StrFormat("%.4g", *result.aim) : "-",
                         met.has_value() ? (*met ? "yes" : "no") : "-");
}

}  // namespace holdfast::bench
