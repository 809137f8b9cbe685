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
failed=
# By folder and name; no name of a file here has a space.
for line in $(echo "$targets" | tr ' ' ':'); do
	file=${line%%:*} target=${line##*:}
	folder=$(dirname "$file")
	echo "== $target in $folder, for $time"
	binary=$cache/bin/$(echo "$folder" | tr / -).test
	# Built as go test -fuzz builds it: without this nothing tells which inputs are new.
	${GO:-go} test -c -fuzz=Fuzz -o "$binary" "./$folder" &&
		(cd "$folder" && "$binary" -test.run='^$' -test.fuzz="^$target\$" -test.fuzztime="$time" -test.fuzzminimizetime=1s -test.fuzzcachedir="$cache/corpus/$folder") ||
		failed="$failed $target"
done
if [ -n "$failed" ]; then
	echo "Failed:$failed. Their inputs are in testdata/fuzz beside them." >&2
	exit 1
fi
