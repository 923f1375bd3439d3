#!/usr/bin/env bash
# Fetches what test_aarch64_emulated.py needs into a folder: qemu-user and Debian's Pythons for arm64. Installs and starts nothing.
#
#     tests/integration/get_aarch64.sh FOLDER && RAYRL_DEBUG_AARCH64=FOLDER pytest tests/integration/test_aarch64_emulated.py
#
# qemu-user 7.2 of bookworm stands still in threads of newer glibc: it is taken from trixie.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)

fetch() { # suite, architecture, name below the folder, packages
  local suite=$1 arch=$2 root=$folder/$3 lists=$folder/lists
  [[ -d $root ]] && return
  rm -rf "$root.part" "$lists"
  mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial" "$root.part"
  echo "deb https://deb.debian.org/debian $suite main" >"$lists/sources.list"
  local apt=(apt-get -q -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o Dir::State::status=/dev/null -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::sourcelist="$lists/sources.list" -o Dir::State::lists="$lists/lists" -o Dir::Cache="$lists/cache")
  "${apt[@]}" update
  (cd "$root.part" && "${apt[@]}" download "${@:4}")
  local package
  for package in "$root.part"/*.deb; do dpkg -x "$package" "$root.part"; done
  rm -rf "$root.part"/*.deb "$lists"
  [[ -e $root.part/lib ]] || ln -s usr/lib "$root.part/lib"
  mv "$root.part" "$root"
}

python() { # suite, minor version, libraries that not every suite has under one name
  fetch "$1" arm64 "python$2" "python$2-minimal" "libpython$2-minimal" "libpython$2-stdlib" \
    libc6 libexpat1 zlib1g libffi8 libgcc-s1 libuuid1 liblzma5 libbz2-1.0 "${@:3}"
}

fetch trixie "$(dpkg --print-architecture)" qemu qemu-user
python bookworm 3.11 libssl3
python trixie 3.13 libssl3t64
python sid 3.14 libssl3t64 libzstd1
