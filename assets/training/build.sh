#!/usr/bin/env bash
# Compiles networks.c (with what it includes) to WebAssembly with SIMD and, for where that is
# missing, to plain JavaScript; writes both into one file: build.sh [FILE], by default code.js.
# Needs clang 14, lld and binaryen 108: other versions give other bytes.
set -euo pipefail
file=$(realpath "${1:-$(dirname "$0")/code.js}")
cd "$(dirname "$0")"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

compile() { # NAME [OPTION...]
    local name=$1
    shift
    # Compiled and linked apart: clang would call wasm-opt by itself, without SIMD. -fno-builtin: a
    # loop that fills an array stays one, there is no library to call.
    clang-14 --target=wasm32 -std=c17 -Wall -Werror -ffp-contract=off -fno-builtin -nostdlib "$@" \
        -c networks.c -o "$made/$name.o"
    wasm-ld-14 --no-entry --strip-all "$made/$name.o" -o "$made/$name.linked.wasm"
}

# -O2 turns plain loops into SIMD, -Os does not; unrolled, they are larger and no faster.
compile simd -O2 -fno-unroll-loops -msimd128
wasm-opt -O2 --enable-simd "$made/simd.linked.wasm" -o "$made/simd.wasm"
compile plain -Os
wasm2js -O2 "$made/plain.linked.wasm" -o "$made/plain.js"
{
    echo '// Made by build.sh from networks.c: a module with SIMD, and a function in its place.'
    echo "globalThis.TrainingCode = {simd: \"$(base64 -w0 "$made/simd.wasm")\","
    # An ES module without its exports is the body of a function. A sixth of its text is air.
    air='/^export /d; s/^ *//; s/ = /=/g; s/, /,/g; s/ | 0/|0/g; s/ >> 2/>>2/g; s/Math_fround/F/g'
    echo "plain: function () {$(sed "$air" "$made/plain.js" | tr -d '\n') return retasmFunc;}};"
} >"$file"
