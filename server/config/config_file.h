// Reads a DaemonConfig in text format, with errors that say where.
#ifndef HOLDFAST_SERVER_CONFIG_CONFIG_FILE_H_
#define HOLDFAST_SERVER_CONFIG_CONFIG_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "holdfast/v1/config.pb.h"
#include "server/config/field_origins.h"

namespace holdfast {

// Parses `text` into `config`, and notes where each field was set. `file` is for messages. INVALID_ARGUMENT names the
// file, the line, the column, the field, what is wrong and what is valid.
absl::Status ParseConfigText(const std::string& file, const std::string& text, v1::DaemonConfig& config,
                             FieldOrigins& origins);

// The same for the file at `path`. NOT_FOUND: it can't be read.
absl::Status ReadConfigFile(const std::string& path, v1::DaemonConfig& config, FieldOrigins& origins);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CONFIG_CONFIG_FILE_H_
