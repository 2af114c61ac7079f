#!/usr/bin/env bash
# Checks the table of CUDA driver symbols against NVIDIA's own libcuda.so.1: the
# one that is at hand or, on Debian, that of package libcuda1, which is unpacked
# into .cache and not installed. Neither a GPU nor a kernel module is needed.
#
#   scripts/libcuda.sh       print the path of libcuda.so.1, or why there is none
#   scripts/libcuda.sh make  fetch it if there is none
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$PWD/.cache/libcuda

# at_hand prints the system's library, unless that is a stub or the simulator's.
at_hand() {
	local p
	for p in $(ldconfig -p 2>/dev/null | sed -n 's/.*libcuda\.so\.1 .*=> //p'); do
		[ -e "$p" ] && echo "$p" && return
	done
	return 1
}

# fetch asks apt for the package. Its component, non-free, need not be among the
# system's sources: they are taken as they are, with that component, into folders
# of their own.
fetch() {
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
		echo "apt-get and dpkg-deb are needed to fetch libcuda1"
		return 1
	fi
	local apt=$dir/apt
	rm -rf "$dir"
	mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$dir/unpacked"
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) non-free' \
		'Created-By: Packages' 'Component: main' 'Origin: Debian' 2>/dev/null | sort -u >"$apt/sources.list"
	if ! [ -s "$apt/sources.list" ]; then
		echo "apt has no lists of a Debian archive, which would have libcuda1"
		return 1
	fi
	local options=(-q -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt" -o APT::Sandbox::User=root)
	if ! apt-get "${options[@]}" update >"$apt/log" 2>&1 ||
		! (cd "$apt" && apt-get "${options[@]}" download libcuda1 >>"$apt/log" 2>&1); then
		echo "libcuda1 can not be fetched: $(grep -m 1 '^E:' "$apt/log" || tail -n 1 "$apt/log")"
		return 1
	fi
	dpkg-deb -x "$apt"/libcuda1_*.deb "$dir/unpacked"
	rm -rf "$apt"
}

fetched() { find "$dir/unpacked" -name libcuda.so.1 2>/dev/null | grep -m 1 .; }

case "${1:-}" in
'') at_hand || fetched || echo "none is at hand" ;;
make) at_hand || fetched || { fetch && fetched; } ;;
*)
	echo "usage: $0 [make]" >&2
	exit 2
	;;
esac
