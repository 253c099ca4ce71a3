# Sourced by scripts that fetch packages without touching the machine's own lists.

private_apt() { # DIR   from here on, apt-get speaks of the sources on standard input, and believes that nothing is installed
  local root=$1
  mkdir -p "$root"/{lists/partial,cache/archives/partial,state,parts}
  : > "$root/status"
  cat > "$root/sources.list"
  cat > "$root/apt.conf" <<C
Dir::Etc::sourcelist "$root/sources.list"; Dir::Etc::sourceparts "$root/parts";
Dir::State "$root/state"; Dir::State::Lists "$root/lists"; Dir::State::status "$root/status"; Dir::Cache "$root/cache";
Acquire::Check-Valid-Until "false"; Acquire::Languages "none"; Acquire::Retries "2";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
APT::Install-Recommends "false"; APT::Sandbox::User "$(id -un)"; Debug::NoLocking "true";
C
  export APT_CONFIG=$root/apt.conf
  apt-get -qq update
}
