#!/bin/sh
# Prints the first mirror that this machine's apt uses; fails if there is none.
set -- /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list
for file; do
  shift
  [ ! -r "$file" ] || set -- "$@" "$file"
done
[ $# = 0 ] || exec awk '
  $1 == "URIs:" { found = $2 }
  $1 == "deb" { for (i = 2; i <= NF && !found; i++) if ($i ~ /:\/\//) found = $i }
  found { print found; exit }
  END { exit !found }' "$@"
echo 'apt has no mirror on this machine' >&2
exit 1
