#!/usr/bin/env bash
# The PTX beside the kernels' sources.
#
#   scripts/ptx.sh make    make it anew from the .cu files of $folders
#   scripts/ptx.sh check   fail where the committed PTX is not what the sources
#                          give, or where ptxas refuses it for a supported GPU
#
# The compilers are those of scripts/deps.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

folders="kernels bench/live/standin"
archs="70 75 80 86 89 90 100 120"

# compile FOLDER OUT
compile() {
	local nvrtc
	nvrtc=$(scripts/deps.sh nvrtc)
	CGO_ENABLED=1 go run ./kernels/internal/mkptx -nvrtc "$nvrtc" -out "$2" "$1"/*.cu
}

make() {
	local dir
	for dir in $folders; do
		compile "$dir" "$dir"
	done
}

check() {
	local tmp ptxas fail=0 dir f arch
	ptxas=$(scripts/deps.sh ptxas)
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' RETURN
	for dir in $folders; do
		rm -f "$tmp"/*
		compile "$dir" "$tmp"
		for f in $( (cd "$dir" && ls ./*.ptx; cd "$tmp" && ls ./*.ptx) | sort -u); do
			f=${f#./}
			if ! cmp -s "$tmp/$f" "$dir/$f"; then
				echo "ptx: $dir/$f is not what $dir/${f%.ptx}.cu gives; run ./build.sh ptx" >&2
				diff -u "$dir/$f" "$tmp/$f" 2>&1 | head -n 20 >&2 || true
				fail=1
			fi
		done
		for f in "$dir"/*.ptx; do
			for arch in $archs; do
				if ! "$ptxas" -arch="sm_$arch" "$f" -o "$tmp/cubin"; then
					echo "ptx: ptxas refuses $f for sm_$arch" >&2
					fail=1
				fi
			done
		done
	done
	[ "$fail" = 0 ] && echo "ptx: committed PTX is current; ptxas takes it for sm_${archs// /, sm_}"
	return "$fail"
}

case "${1:-}" in
make) make ;;
check) check ;;
*)
	echo "usage: $0 make|check" >&2
	exit 2
	;;
esac
