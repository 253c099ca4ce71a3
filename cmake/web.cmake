# Bundles web/ with esbuild (Debian package, no node) into generated headers the exporters embed.
