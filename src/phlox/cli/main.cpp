#include "phlox/cli/run.h"

#if defined(PHLOX_STATIC)
#include <nss.h>
#endif

int main(int argc, char** argv) {
#if defined(PHLOX_STATIC)
  // Otherwise, looking up user names loads the libraries of the image's nsswitch.conf, and its C library with
  // them.
  for (const char* database : {"passwd", "group", "initgroups"}) __nss_configure_lookup(database, "files");
#endif
  return phlox::cli::run({argv, argv + argc});
}
