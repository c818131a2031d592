// A directory that goes with its object.
#ifndef HOLDFAST_TESTS_INTEGRATION_TEMPORARY_DIRECTORY_H_
#define HOLDFAST_TESTS_INTEGRATION_TEMPORARY_DIRECTORY_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace holdfast {

// Its path is short, so that a Unix socket's path in it fits into 107 bytes.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = "/tmp/holdfast.XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  // Empty if there is no room for one.
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_INTEGRATION_TEMPORARY_DIRECTORY_H_
