// holdfastctl: the operator's command line.
#include <iostream>
#include <string>
#include <vector>

#include "client/holdfastctl/run.h"

int main(int argc, char** argv) {
  return holdfast::ctl::Run(std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}
