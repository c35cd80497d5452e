#!/bin/bash
# tests/tools/as_user.sh - run the tests as user nobody, with 8 MiB of lockable memory.
# Needs root to become nobody; works on a copy of the tree that nobody may read.
set -eu
copy=$(mktemp -d /tmp/straddle-user-XXXXXX)
trap 'rm -rf "$copy"' EXIT
cp -r build config tests README.md "$copy"
# e2e/reader_attack compares with the list of calls.
cp --parents worker/confine/calls.c "$copy"
rm -rf "$copy"/build/{address,thread,aarch64-linux-gnu,fuzz,clang,vm,deb,dist}
chown -R nobody "$copy"
cd "$copy"
# The list of programs is the Makefile's; scripts and tools are found by name.
mapfile -t programs < <(find build/tests/unit build/tests/check/ring_loop \
    -type f -perm -u+x | sort)
# Tests of computed results do not depend on the user, so they are left out, and so is
# the large model.
shopt -s extglob
# shellcheck disable=SC2016
setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=-all \
    bash -c 'ulimit -l 8192; export HOME=$PWD; exec tests/run.sh "$@"' _ \
    tests/e2e/!(lib|big|invariance|package|quantize|rknpu).sh "${programs[@]}"
