# shellcheck shell=bash
# What the scripts of this folder share: where things are, how they speak, and the one way to configure and build.
# Sourced, never run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Where scripts/setup keeps what it downloads. One folder may serve several checkouts.
cache_dir=${HOPSCOPE_CACHE_DIR:-$root/.cache}
[[ $cache_dir == /* ]] || cache_dir=$PWD/$cache_dir
export HOPSCOPE_CACHE_DIR=$cache_dir

# A command that starts the build's and the tests' commands, such as setarch; empty: none.
run_with=()

if [[ -t 1 ]]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

say() { printf '%s\n' "$*"; }
headline() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
warn() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
  warn "$*"
  exit 1
}

# The comment block at the top of the running script is its help.
usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

# duration SECONDS: "7 s", "3 min 05 s".
duration() {
  if (($1 < 60)); then printf '%d s' "$1"; else printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); fi
}

# Compilers to run at once: one a core, but no more than memory allows (the largest files take about 2 GB each).
build_jobs() {
  local cores memory_kb jobs
  cores=$(nproc)
  memory_kb=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
  jobs=$((memory_kb / 2000000))
  ((jobs > cores)) && jobs=$cores
  ((jobs < 1)) && jobs=1
  printf '%d' "$jobs"
}

# need_disk FOLDER MEGABYTES WHAT_FOR REMEDY: stops with a clear line where there is less.
need_disk() {
  local folder=$1 free
  while [[ ! -d $folder ]]; do folder=$(dirname "$folder"); done
  free=$(($(df -Pk "$folder" | awk 'NR == 2 { print $4 }') / 1024))
  ((free >= $2)) || die "$3 needs $2 MB, but the disk of $1 has $free MB free. $4"
}

# On a terminal ninja keeps to one line by itself. Elsewhere: a progress line every ten seconds, and everything that is
# not progress.
thin_progress() {
  local line last=-10
  while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\  ]]; then
      if ((SECONDS - last < 10)) && [[ ${BASH_REMATCH[1]} != "${BASH_REMATCH[2]}" ]]; then continue; fi
      last=$SECONDS
    fi
    printf '%s\n' "$line"
  done
}

# build PRESET [TARGET...]: configures and builds in build/PRESET; every target where none is named.
build() {
  local preset=$1 log=$root/build/$1/configure.log jobs
  shift
  jobs=$(build_jobs)
  need_disk "$root/build" 1500 "The $preset build" "Free some, or remove build folders that you no longer need."
  mkdir -p "$(dirname "$log")"
  say "Building ${preset} in build/${preset} with $jobs compilers at once"
  # ninja would read a Makefile-style MAKEFLAGS through cmake.
  (
    cd "$root"
    unset MAKEFLAGS
    if ! cmake --preset "$preset" -DHOPSCOPE_CACHE_DIR="$cache_dir" >"$log" 2>&1; then
      tail -n 40 "$log" >&2
      die "Configuring failed; the whole output is in $log. If a package is missing, run scripts/setup."
    fi
    export NINJA_STATUS='[%f/%t, %e s] '
    local -a command=("${run_with[@]}" cmake --build --preset "$preset" --parallel "$jobs")
    (($# > 0)) && command+=(--target "$@")
    if [[ -t 1 ]]; then "${command[@]}"; else "${command[@]}" 2>&1 | thin_progress; fi
  )
}
