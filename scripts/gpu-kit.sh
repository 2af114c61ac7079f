#!/usr/bin/env bash
# Builds the GPU kit into .gpu-kit, and rehearses it over the simulator. See
# bench/kit.
set -euo pipefail
cd "$(dirname "$0")/.."
kit=.gpu-kit
max_bytes=60000000
# Debian 12's, older than what Ubuntu 24.04 and RHEL 10 have.
max_glibc=2.36

# Every program has to start on another machine: linked with glibc's own libraries
# and nothing else, of a version that is old enough.
portable() {
	local needs bad
	needs=$(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
	bad=$(grep -vE '^(libc|libpthread|libdl|libresolv|libm)\.so\.[0-9]+$|^ld-linux-' <<<"$needs" || true)
	if [ -n "$bad" ]; then
		echo "gpu-kit: $1 is linked with ${bad//$'\n'/ }, which another machine need not have" >&2
		return 1
	fi
	needs=$( (readelf -VW "$1" | grep -oE 'GLIBC_[0-9.]+' | cut -d_ -f2; echo "$max_glibc") | sort -V | tail -1)
	if [ "$needs" != "$max_glibc" ]; then
		echo "gpu-kit: $1 needs glibc $needs, may need $max_glibc" >&2
		return 1
	fi
}

build() {
	if ! command -v "${CC:-gcc}" >/dev/null || ! command -v readelf >/dev/null; then
		echo "gpu-kit: needs a C compiler and readelf (apt-get install gcc binutils)" >&2
		return 1
	fi
	# Results of earlier runs stay.
	rm -rf "${kit:?}"/{bin,kernels,memory,run.sh,README.txt,SHA256SUMS}
	mkdir -p "$kit/bin" "$kit/kernels" "$kit/memory/layout/testdata"
	export CGO_ENABLED=1
	local flags=(-trimpath -ldflags '-s -w') revision=unknown modified=true
	if revision=$(git rev-parse HEAD 2>/dev/null); then
		[ -n "$(git status --porcelain)" ] || modified=false
	fi
	go build -trimpath -ldflags "-s -w -X main.revision=${revision:-unknown} -X main.modified=$modified" -o "$kit/bin/" ./bench/kit
	go build "${flags[@]}" -o "$kit/bin/" ./bench/live
	local package
	for package in cuda/driver kernels loadgate bench/live/standin; do
		go test -c "${flags[@]}" -o "$kit/bin/${package##*/}.test" "./$package"
	done
	cp bench/kit/run.sh bench/kit/README.txt "$kit/"
	# What tests of the kernels read; they run in this folder.
	cp -r kernels/*.cu kernels/*.cuh kernels/*.ptx kernels/testdata "$kit/kernels/"
	cp memory/layout/testdata/segment-*.json "$kit/memory/layout/testdata/"
	local program size
	for program in "$kit"/bin/*; do
		portable "$program"
	done
	(cd "$kit" && find bin kernels memory run.sh README.txt -type f -print0 | sort -z | xargs -0 sha256sum >SHA256SUMS)
	size=$(cd "$kit" && du -cb bin kernels memory run.sh README.txt SHA256SUMS | tail -1 | cut -f1)
	if [ "$size" -gt "$max_bytes" ]; then
		echo "gpu-kit: $size bytes, may be $max_bytes" >&2
		return 1
	fi
	echo "gpu-kit: $kit, $((size / 1000000)) MB: copy it to a machine with a GPU and run its run.sh" >&2
}

case "${1:-}" in
build) build ;;
*)
	echo "usage: scripts/gpu-kit.sh build" >&2
	exit 2
	;;
esac
