#!/bin/sh
# Runs the kit that this file lies in: see README.txt.
set -eu
kit=$(cd "$(dirname "$0")" && pwd)
exec "$kit/bin/kit" "$@"
