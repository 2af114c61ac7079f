#!/usr/bin/env bash
# The PTX beside the kernels' sources.
#
#   scripts/ptx.sh make    make it anew from the .cu files of $folders
#                          and count the instructions that ptxas makes of it
#   scripts/ptx.sh check   fail where the committed PTX is not what the sources
#                          give, where ptxas refuses it for a supported GPU or
#                          spills registers, or where the counts have changed
#
# The compilers are those of scripts/deps.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

folders="kernels kernels/testdata bench/live/standin"
# Other variants of the kernels: a folder in kernels, the macro that makes it what
# it is, and the kernels that differ by it (kernels/variants.go).
variant_folders="writeback"
variant_define() { case $1 in writeback) echo KVG_STREAMING=0 ;; esac; }
variant_kernels="zero_blocks fill_blocks reset_state copy_blocks prepare_step"
archs="70 75 80 86 89 90 100 120"
# Instructions are counted for these: nvdisasm 13 knows none before.
counted_archs="80 90 100 120"
counts=kernels/testdata/sass.txt

# compile FOLDER OUT
compile() {
	local nvrtc define v
	nvrtc=$(scripts/deps.sh nvrtc)
	v=${1#kernels/}
	define=$(variant_define "$v")
	if [ -z "$define" ]; then
		CGO_ENABLED=1 go run ./kernels/internal/mkptx -nvrtc "$nvrtc" -out "$2" "$1"/*.cu
		return
	fi
	# shellcheck disable=SC2046,SC2086 # several kernels
	CGO_ENABLED=1 go run ./kernels/internal/mkptx -nvrtc "$nvrtc" -out "$2" -define "$define" \
		$(printf 'kernels/%s.cu ' $variant_kernels)
}

all_folders() {
	local v
	echo "$folders"
	for v in $variant_folders; do echo "kernels/$v"; done
}

make() {
	local dir
	for dir in $(all_folders); do
		mkdir -p "$dir"
		compile "$dir" "$dir"
	done
	count "$counts"
}

# count OUT: the table of instructions that the committed PTX becomes.
count() {
	local tmp ptxas nvdisasm arch f args=()
	ptxas=$(scripts/deps.sh ptxas)
	nvdisasm=$(scripts/deps.sh nvdisasm)
	tmp=$(mktemp -d)
	for arch in $counted_archs; do
		for f in kernels/*.ptx kernels/testdata/zero_words.ptx; do
			"$ptxas" -arch="sm_$arch" "$f" -o "$tmp/cubin"
			"$nvdisasm" -c "$tmp/cubin" >"$tmp/${f##*/}.$arch" 2>"$tmp/log" || {
				cat "$tmp/log" >&2
				return 1
			}
			args+=("sm_$arch=$tmp/${f##*/}.$arch")
		done
	done
	{
		echo "# Instructions of a warp in the inner loop of each kernel, by ptxas 12.9 and"
		echo "# nvdisasm 13.5. Not edited by hand: ./build.sh ptx makes it anew."
		go run ./kernels/internal/sass "${args[@]}"
	} >"$1"
	rm -rf "$tmp"
}

check() {
	local tmp ptxas fail=0 dir f arch
	ptxas=$(scripts/deps.sh ptxas)
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' RETURN
	for dir in $(all_folders); do
		rm -f "$tmp"/*
		compile "$dir" "$tmp"
		for f in $( (cd "$dir" && ls ./*.ptx; cd "$tmp" && ls ./*.ptx) | sort -u); do
			f=${f#./}
			if ! cmp -s "$tmp/$f" "$dir/$f"; then
				echo "ptx: $dir/$f is not what ${f%.ptx}.cu gives; run ./build.sh ptx" >&2
				diff -u "$dir/$f" "$tmp/$f" 2>&1 | head -n 20 >&2 || true
				fail=1
			fi
		done
		for f in "$dir"/*.ptx; do
			for arch in $archs; do
				if ! "$ptxas" -v -arch="sm_$arch" "$f" -o "$tmp/cubin" 2>"$tmp/log"; then
					echo "ptx: ptxas refuses $f for sm_$arch:" >&2
					cat "$tmp/log" >&2
					fail=1
				elif grep 'spill' "$tmp/log" | grep -qv ' 0 bytes spill stores, 0 bytes spill loads'; then
					echo "ptx: ptxas spills registers of $f for sm_$arch:" >&2
					grep 'spill' "$tmp/log" >&2
					fail=1
				fi
			done
		done
	done
	count "$tmp/counts"
	if ! cmp -s "$tmp/counts" "$counts"; then
		echo "ptx: $counts is not what the PTX gives; run ./build.sh ptx" >&2
		diff -u "$counts" "$tmp/counts" 2>&1 | head -n 20 >&2 || true
		fail=1
	fi
	[ "$fail" = 0 ] && echo "ptx: committed PTX is current; ptxas takes it, without spills, for sm_${archs// /, sm_}"
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
