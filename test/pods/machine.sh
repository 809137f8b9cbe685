#!/usr/bin/env bash
# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Usage: machine.sh COMMAND [ARG...], as root. `go test -exec` runs a suite with it.
#
# Runs a command as if on a machine of its own: with a network that leads nowhere, and
# its own processes, mounts, cgroups and temporary files. However the command ends, also
# when it or this script is killed, the kernel ends all that it started: containers,
# mounts, networks. What this script made for it, it removes.
set -euo pipefail

# Inside: everything that a node writes outside its own folder goes to memory.
if [ "${1:-}" = --inside ]; then
  shift
  mount --make-rshared /
  for folder in /run /var/lib /var/log; do
    mount -t tmpfs -o mode=755 tmpfs "$folder"
  done
  # The root of each hierarchy becomes the group that was made for this command.
  while read -r folder kind options; do
    umount "$folder"
    mount -t "$kind" ${options:+-o "$options"} "$kind" "$folder"
  done < <(awk '$3 ~ /^cgroup2?$/ { gsub("(^|,)(rw|relatime|nosuid|nodev|noexec|clone_children)", "", $4); sub("^,", "", $4); print $2, $3, ($4 ~ /name=/ ? "none," $4 : $4) }' /proc/mounts)
  # The kubelet sets these for the whole machine. Let it believe that it did.
  for limit in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    mkdir -p "/run/limits/${limit%/*}"
    cat "/proc/sys/$limit" >"/run/limits/$limit"
    mount --bind "/run/limits/$limit" "/proc/sys/$limit"
  done
  ip link set lo up
  # As the first process it waits for every orphan, and the command is not the first one.
  "$@" &
  wait $!
  exit
fi

fail() { echo "machine.sh: $*" >&2; exit 1; }

# Whoever started this may be killed.
if [ -z "${FLEETGATE_MACHINE:-}" ]; then
  command -v setpriv >/dev/null || fail "setpriv is missing: install util-linux"
  FLEETGATE_MACHINE=1 exec setpriv --pdeathsig TERM "$0" "$@"
fi

[ "$(id -u)" = 0 ] || fail "real containers need root"
grep -q ' cgroup .*memory' /proc/mounts || fail "this machine has no cgroups of version 1, the only ones this is written for"

missing=()
while read -r program package; do
  PATH=$PATH:/usr/sbin:/usr/lib/cni command -v "$program" >/dev/null || missing+=("$package")
done <<EOF
containerd containerd
runc runc
ptp containernetworking-plugins
iptables iptables
conntrack conntrack
ip iproute2
nsenter util-linux
busybox busybox-static
EOF
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || fail "missing here, under Debian's names: ${missing[*]}"
  echo "machine.sh: installing ${missing[*]}" >&2
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; } >&2 ||
    fail "could not install ${missing[*]}"
fi

groups() { awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts; }

# remove_groups removes a group of each hierarchy with all below it. What has been killed
# may take a moment to be gone.
remove_groups() {
  for folder in $(groups); do
    for _ in $(seq 50); do
      [ -d "$folder/$1" ] || break
      find "$folder/$1" -depth -type d -exec rmdir {} + 2>/dev/null && break
      sleep 0.2
    done
  done
}

name=fleetgate-machine.$$
export TMPDIR=/tmp/$name
# What machines have left whose script was killed too.
for former in /tmp/fleetgate-machine.*; do
  if [ -d "$former" ] && [ ! -d "/proc/${former##*.}" ]; then
    remove_groups "${former##*/}"
    rm -rf "$former"
  fi
done
mkdir -m 700 "$TMPDIR"
inside=
clean() {
  trap - EXIT TERM INT HUP
  if [ -n "$inside" ]; then
    kill -KILL "$inside" 2>/dev/null || true
    wait "$inside" 2>/dev/null || true
  fi
  remove_groups "$name"
  rm -rf "$TMPDIR"
}
trap clean EXIT
trap 'exit 143' TERM INT HUP

for folder in $(groups); do
  mkdir "$folder/$name"
  for file in cpuset.cpus cpuset.mems; do
    [ ! -e "$folder/$file" ] || cat "$folder/$file" >"$folder/$name/$file"
  done
done

(
  for folder in $(groups); do echo $BASHPID >"$folder/$name/cgroup.procs"; done
  exec setpriv --pdeathsig KILL \
    unshare --mount --net --pid --cgroup --ipc --uts --fork --kill-child --mount-proc "$0" --inside "$@"
) &
inside=$!
wait "$inside"
