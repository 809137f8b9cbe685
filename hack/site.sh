#!/usr/bin/env bash
# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/site.sh build|serve VERSION
#
# Builds the pages of docs as a website into .fleetgate/site/VERSION, or serves them with
# live reload. Only npm's registry is contacted, and only when package-lock.json changed.
# SITE_BASE is the path below which the web server publishes the versions, by default /.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "site.sh: $*" >&2; exit 1; }
command -v npm >/dev/null || fail "npm is missing; install Node.js 20 or later"

mode=$1 version=$2
site=.fleetgate/site work=.fleetgate/site-build
mkdir -p "$work/.vitepress/theme"
cp hack/site/package.json hack/site/package-lock.json "$work"
cp hack/site/config.mjs "$work/.vitepress/config.mjs"
cp hack/site/theme.mjs "$work/.vitepress/theme/index.mjs"
cp hack/site/theme.css "$work/.vitepress/theme/theme.css"
if ! cmp -s hack/site/package-lock.json "$work/node_modules/.installed"; then
  npm ci --prefix "$work" --ignore-scripts --no-audit --no-fund
  cp hack/site/package-lock.json "$work/node_modules/.installed"
fi

base=${SITE_BASE:-/}
export SITE_ROOT=$PWD SITE_VERSION=$version SITE_BASE=${base%/}/$version/ SITE_OUT=$PWD/$site/$version
cd "$work"
case $mode in
  serve) exec node_modules/.bin/vitepress dev . ;;
  build) node_modules/.bin/vitepress build . ;;
  *) fail "unknown mode $mode" ;;
esac
cd "$SITE_ROOT/$site"

# The site must work without the Internet.
if grep -rlE '<(script|link|img)[^>]+(src|href)="(https?:)?//|url\(["'\'']?(https?:)?//' "$version" --include='*.html' --include='*.css'; then
  fail "the files above load something from another server"
fi

# The list of versions that the pages show, and the page that leads to the newest release.
mapfile -t versions < <(find . -mindepth 2 -maxdepth 2 -name index.html -printf '%h\n' | sed 's,^\./,,' | sort -rV)
list=$(printf '"%s",' "${versions[@]}")
echo "[${list%,}]" >versions.json
echo "<!doctype html><title>fleetgate</title><meta http-equiv=\"refresh\" content=\"0; url=${versions[0]}/\">" >index.html
