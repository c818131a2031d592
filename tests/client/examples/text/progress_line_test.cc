#include "client/examples/text/progress_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

namespace text {
namespace {

std::string Written(void (*show)(ProgressLine&)) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  {
    ProgressLine progress(file.get(), 40);
    show(progress);
  }
  std::rewind(file.get());
  std::string text;
  for (int byte; (byte = std::fgetc(file.get())) != EOF;) text += static_cast<char>(byte);
  return text;
}

TEST(ProgressLineTest, NoTerminal_ALineATenth) {
  const std::string text = Written([](ProgressLine& progress) {
    for (uint64_t step = 1; step <= 40; ++step) {
      progress.Show({.step = step, .mean_loss = 2.5, .tokens_per_second = 1000, .daemon_share = 0.25});
    }
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11);
  EXPECT_NE(text.find("step   40 of 40   loss 2.500     1000 tokens/s   25 % of the time in holdfast\n"),
            std::string::npos)
      << text;
}

TEST(ProgressLineTest, Note_IsALineOfItsOwn) {
  EXPECT_EQ(Written([](ProgressLine& progress) { progress.Note("rank 3 died"); }), "rank 3 died\n");
}

}  // namespace
}  // namespace text
