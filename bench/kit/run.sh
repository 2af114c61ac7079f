#!/bin/sh
# Runs the kit that this file lies in: see README.txt.
set -eu
cd "$(dirname "$0")"
exec ./bin/kit run "$@"
