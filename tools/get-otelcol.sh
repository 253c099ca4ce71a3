#!/bin/sh
# Builds an OpenTelemetry Collector that takes profiles and writes them into a file, for tests/cli/test_agent_collector.py. Needs go;
# takes some minutes of CPU time. Into ~/.cache/phlox/otelcol; does nothing if it is there.
set -eu
version=0.165.0 providers=1.71.0
place="${XDG_CACHE_HOME:-$HOME/.cache}/phlox/otelcol"
[ -x "$place/otelcol" ] && exit 0
mkdir -p "$place/source"
cat > "$place/builder.yaml" <<END
dist: {name: otelcol, output_path: $place/source, module: example.com/otelcol}
receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v$version}]
exporters: [{gomod: github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter v$version}]
providers:
  - {gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v$providers}
  - {gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v$providers}
END
go run "go.opentelemetry.io/collector/cmd/builder@v$version" --config "$place/builder.yaml" --skip-compilation --skip-get-modules
# Not by the builder and `go mod tidy`: some modules that only tests need are not to be had.
cat > "$place/source/go.mod" <<END
module example.com/otelcol
go 1.25
require (
  go.opentelemetry.io/collector/otelcol v$version
  go.opentelemetry.io/collector/receiver/otlpreceiver v$version
  github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter v$version
  go.opentelemetry.io/collector/confmap/provider/envprovider v$providers
  go.opentelemetry.io/collector/confmap/provider/fileprovider v$providers
)
END
cd "$place/source"
GOFLAGS=-mod=mod go build -ldflags '-s -w' -o "$place/otelcol.new" .
mv "$place/otelcol.new" "$place/otelcol"
