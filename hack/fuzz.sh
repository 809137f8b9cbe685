#!/bin/sh
# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the fuzz targets whose names match a regular expression, one after another, for a
# time each. A target that fails does not keep the others from running.
#   hack/fuzz.sh REGEXP TIME CACHE
set -eu
cd "$(dirname "$0")/.."
regexp=$1 time=$2 cache=$3
mkdir -p "$cache/bin"
targets=$(grep -rEho --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' pkg cmd test hack -H | sed 's/:func / /' | grep -E "$regexp" | sort) || {
	echo "No fuzz target matches $regexp" >&2
	exit 2
}
echo "$targets" | awk '{print $2 "\t" $1}'
# A run whose time is over ends well. Go says "context deadline exceeded" all the same when
# its coordinator hears of that a moment before its workers' context does, which happens on
# busy machines, to any target: nothing was found then, and no input is named.
ended_in_time() {
	grep -A 1 -- "--- FAIL: $1 " "$2" | grep -qx ' *context deadline exceeded'
}
failed=
# By folder and name; no name of a file here has a space.
for line in $(echo "$targets" | tr ' ' ':'); do
	file=${line%%:*} target=${line##*:}
	folder=$(dirname "$file")
	echo "== $target in $folder, for $time"
	binary=$cache/bin/$(echo "$folder" | tr / -).test
	said=$binary.log
	# Built as go test -fuzz builds it: without this nothing tells which inputs are new.
	if ! ${GO:-go} test -c -fuzz=Fuzz -o "$binary" "./$folder"; then
		failed="$failed $target"
		continue
	fi
	(cd "$folder" && "$binary" -test.run='^$' -test.fuzz="^$target\$" -test.fuzztime="$time" -test.fuzzminimizetime=1s -test.fuzzcachedir="$cache/corpus/$folder" || echo "exit $?") 2>&1 | tee "$said"
	if grep -qx 'exit [0-9]*' "$said" && ! ended_in_time "$target" "$said"; then
		failed="$failed $target"
	fi
done
if [ -n "$failed" ]; then
	echo "Failed:$failed. Their inputs are in testdata/fuzz beside them." >&2
	exit 1
fi
