#include "phlox/cli/run.h"

int main(int argc, char** argv) {
  return phlox::cli::run({argv, argv + argc});
}
