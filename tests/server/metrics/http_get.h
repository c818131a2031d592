// A scrape, as Prometheus does it.
#ifndef HOLDFAST_TESTS_SERVER_METRICS_HTTP_GET_H_
#define HOLDFAST_TESTS_SERVER_METRICS_HTTP_GET_H_

#include <string>

namespace holdfast {

// The whole answer, headers included, of GET `path` at 127.0.0.1:`port`; empty if nobody listens.
std::string HttpGet(int port, const std::string& path);
// What follows the headers.
std::string HttpBody(const std::string& answer);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_SERVER_METRICS_HTTP_GET_H_
