// The version of the daemon.
#ifndef HOLDFAST_SERVER_VERSION_H_
#define HOLDFAST_SERVER_VERSION_H_

namespace holdfast {

// Set by CMake from the project's version.
inline constexpr char kVersion[] = HOLDFAST_VERSION;

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_VERSION_H_
