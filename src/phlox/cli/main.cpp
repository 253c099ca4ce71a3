#include "phlox/cli/run.h"

#if defined(PHLOX_STATIC)
#include <nss.h>
#endif

int main(int argc, char** argv) {
#if defined(PHLOX_STATIC)
  // Otherwise, looking up the name of a user or a host loads the libraries of the image's nsswitch.conf, and
  // its C library with them. These two ways are built in.
  for (const char* database : {"passwd", "group", "initgroups", "services", "protocols"})
    __nss_configure_lookup(database, "files");
  __nss_configure_lookup("hosts", "files dns");
#endif
  return phlox::cli::run({argv, argv + argc});
}
