// Where the fields of a configuration were set.
#ifndef HOLDFAST_SERVER_CONFIG_FIELD_ORIGINS_H_
#define HOLDFAST_SERVER_CONFIG_FIELD_ORIGINS_H_

#include <map>
#include <string>
#include <utility>

namespace holdfast {

// For messages; a field that was not set has none.
class FieldOrigins {
 public:
  // `origin` goes before the field's name: "holdfastd.conf:3:1: " or "--".
  void Set(const std::string& field, std::string origin) { origins_[field] = std::move(origin); }

  // "holdfastd.conf:3:1: num_ranks", "--num_ranks", or "num_ranks".
  std::string Describe(const std::string& field) const {
    const auto origin = origins_.find(field);
    return origin == origins_.end() ? field : origin->second + field;
  }

 private:
  std::map<std::string, std::string> origins_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CONFIG_FIELD_ORIGINS_H_
