#!/usr/bin/env bash
# Builds the GPU kit into .gpu-kit, and rehearses it over the simulator. See
# bench/kit.
set -euo pipefail
cd "$(dirname "$0")/.."
kit=.gpu-kit

build() {
	if ! command -v "${CC:-gcc}" >/dev/null; then
		echo "gpu-kit: needs a C compiler (apt-get install gcc)" >&2
		return 1
	fi
	# Results of earlier runs stay.
	rm -rf "$kit/bin" "$kit/manifest.json" "$kit/segment-oracles.json"
	mkdir -p "$kit/bin"
	export CGO_ENABLED=1
	local flags=(-trimpath -ldflags '-s -w') revision=unknown modified=true
	if revision=$(git rev-parse HEAD 2>/dev/null); then
		[ -n "$(git status --porcelain)" ] || modified=false
	fi
	go build -trimpath -ldflags "-s -w -X main.revision=${revision:-unknown} -X main.modified=$modified" -o "$kit/bin/" ./bench/kit
	go build "${flags[@]}" -o "$kit/bin/" ./bench/live
	local package
	for package in cuda/driver kernels loadgate; do
		go test -c "${flags[@]}" -o "$kit/bin/${package##*/}.test" "./$package"
	done
	cp bench/kit/run.sh bench/kit/README.txt "$kit/"
	# What another engine's kernel leaves.
	cp memory/layout/testdata/segment-oracles.json "$kit/"
	"$kit/bin/kit" pack "$kit"
	echo "gpu-kit: $kit, $(du -sh --apparent-size --exclude='result-*' "$kit" | cut -f1)" >&2
}

# Runs the kit as on another machine: with nothing of this one's environment, no
# Go on the path, from another folder; and over the simulator as libcuda.so.1.
rehearse() {
	local out soft=$PWD/.cache/softcuda
	out=$(mktemp -d)
	trap 'rm -rf "$out"' RETURN
	cp -r "$kit/bin" "$kit/run.sh" "$kit"/*.json "$kit/README.txt" "$out/"
	local clean=(env -i PATH=/usr/bin:/bin "HOME=$out")
	if "${clean[@]}" sh -c 'command -v go'; then
		echo "kit-rehearsal: go is on the clean path" >&2
		return 1
	fi
	# Without a driver it says so at once.
	local status=0
	"${clean[@]}" KVGATE_DRIVER=sim "$out/run.sh" -out "$out/none" || status=$?
	if [ $status != 3 ] || ! grep -q 'no usable driver' "$out/none/report.txt"; then
		echo "kit-rehearsal: without a driver: exit status $status, want 3 and the reason" >&2
		return 1
	fi
	status=0
	"${clean[@]}" "LD_LIBRARY_PATH=$soft" "$out/run.sh" -simulated -out "$out/soft" || status=$?
	if [ $status != 0 ]; then
		cat "$out/soft/report.txt" >&2
		return $status
	fi
	grep -q 'SIMULATED DEVICE' "$out/soft/report.txt"
	"$out/bin/kit" check -simulated "$out/soft/report.json" >&2
	mkdir -p .cache/kit-rehearsal
	cp "$out/soft/"* .cache/kit-rehearsal/
}

case "${1:-}" in
build | rehearse) "$1" ;;
*)
	echo "usage: scripts/gpu-kit.sh build|rehearse" >&2
	exit 2
	;;
esac
