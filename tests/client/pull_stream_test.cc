#include "client/pull_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/client/scripted_daemon.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Keeps what comes; refuses tensors of the name "refuse".
class KeepingSink final : public PullSink {
 public:
  absl::StatusOr<absl::Span<std::byte>> Begin(const v1::TensorStart& start) override {
    if (start.name() == "refuse") return absl::ResourceExhaustedError("no room for it");
    buffer_.assign(start.size_bytes(), std::byte{0});
    name_ = start.name();
    return absl::MakeSpan(buffer_);
  }
  absl::Status End() override {
    kept.push_back(name_ + "=" + std::string(reinterpret_cast<const char*>(buffer_.data()), buffer_.size()));
    return absl::OkStatus();
  }

  std::vector<std::string> kept;

 private:
  std::string name_;
  std::vector<std::byte> buffer_;
};

v1::PullResponse Start(const std::string& name, v1::DataType dtype, std::vector<int64_t> shape, uint64_t size_bytes) {
  v1::PullResponse piece;
  piece.mutable_start()->set_name(name);
  piece.mutable_start()->set_dtype(dtype);
  piece.mutable_start()->mutable_shape()->Add(shape.begin(), shape.end());
  piece.mutable_start()->set_size_bytes(size_bytes);
  return piece;
}

v1::PullResponse Chunk(const std::string& bytes) {
  v1::PullResponse piece;
  piece.set_chunk(bytes);
  return piece;
}

class PullStreamTest : public ::testing::Test {
 protected:
  absl::Status Pull(std::vector<v1::PullResponse> pieces) {
    daemon_.pull_pieces = std::move(pieces);
    absl::StatusOr<std::shared_ptr<Connection>> connection = Connection::Open(daemon_.client_options());
    if (!connection.ok()) return connection.status();
    v1::PullRequest request;
    request.set_model("small");
    return ReadPull(**connection, request, sink_);
  }

  ScriptedDaemon daemon_;
  KeepingSink sink_;
};

constexpr v1::DataType kByte = v1::DATA_TYPE_UINT8;

TEST_F(PullStreamTest, PutsChunksTogether) {
  const absl::Status status =
      Pull({Start("a", kByte, {2, 3}, 6), Chunk("abcd"), Chunk("ef"), Start("empty", kByte, {0}, 0),
            Start("b", v1::DATA_TYPE_INT16, {}, 2), Chunk("xy")});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(sink_.kept, ElementsAre("a=abcdef", "empty=", "b=xy"));
}

TEST_F(PullStreamTest, WhatTheDaemonSendsWronglyIsDataLoss) {
  const struct {
    std::string message;
    std::vector<v1::PullResponse> pieces;
  } cases[] = {
      {"which its shape and dtype do not have", {Start("a", kByte, {2}, 3)}},
      {"which its shape and dtype do not have", {Start("a", v1::DATA_TYPE_UNSPECIFIED, {2}, 2)}},
      {"which its shape and dtype do not have", {Start("a", kByte, {-2}, static_cast<uint64_t>(-2))}},
      {"which its shape and dtype do not have", {Start("a", kByte, {int64_t{1} << 62, 8}, 0)}},
      {"ended 2 bytes short", {Start("a", kByte, {4}, 4), Chunk("ab")}},
      {"ended 1 bytes short", {Start("a", kByte, {1}, 1), Start("b", kByte, {1}, 1)}},
      {"which has 1 left", {Start("a", kByte, {3}, 3), Chunk("ab"), Chunk("cd")}},
      {"which has 0 left", {Chunk("ab")}},
      {"neither a start nor a chunk", {v1::PullResponse()}},
  };
  for (const auto& test : cases) {
    const absl::Status status = Pull(test.pieces);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << test.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.message));
  }
}

TEST_F(PullStreamTest, ErrorOfTheSinkEndsThePull) {
  EXPECT_EQ(Pull({Start("refuse", kByte, {1}, 1), Chunk("a")}), absl::ResourceExhaustedError("no room for it"));
}

}  // namespace
}  // namespace holdfast
