# What run, run-os and run-pair share: the emulator, archives, one guest's boot, the count. Sourced by bash.
# shellcheck shell=bash
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
top=$(readlink -f "$here/../..")
cache=${VM_CACHE:-$top/target/vm}
mkdir -p "$cache"/{log,image}
work=$(mktemp -d)
server= # process id of the second guest
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

# usage LINES: the head of the program that was called
usage() { sed -n "2,$1s/^# //p" "$0" >&2; exit 2; }

# The emulator before 8 cannot boot a 6.12 kernel reliably.
choose_qemu() {
    local major
    major=$(qemu-system-x86_64 --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
    if [ "${major:-0}" -ge 8 ]; then
        qemu=(qemu-system-x86_64)
    else
        "$here/fetch" "$cache" qemu || return
        qemu=("$cache/qemu/usr/bin/qemu-system-x86_64" -L "$cache/qemu/usr/share/qemu" -L "$cache/qemu/usr/share/seabios")
    fi
}

# compile: the programs of src, static, into $work/bin
compile() {
    local source
    mkdir -p "$work/bin"
    for source in "$here"/src/*.c; do
        gcc -O2 -Wall -Werror -static -o "$work/bin/$(basename "$source" .c)" "$source" || return
    done
}

passed=0 failed=0 skipped=0
count() {
    case $1 in
    'ok - '*) passed=$((passed + 1)) ;;
    'NOT ok - '*) failed=$((failed + 1)) ;;
    'SKIP - '*) skipped=$((skipped + 1)) ;;
    esac
}
report() { echo "$1"; count "$1"; }

# prepare KERNEL: sets label, vmlinuz and base, the archive of a guest with this kernel
prepare() {
    local dir
    label=$(basename "$1")
    case $1 in
    6.1 | 6.12 | newest)
        dir=$cache/kernel-$1
        "$here/fetch" "$cache" "kernel-$1" || return
        ;;
    *) dir=$(readlink -f "$1") ;;
    esac
    base=$cache/image/$label
    "$here/image" "$dir" "$base" || return
    for vmlinuz in "$dir"/boot/vmlinuz-* "$dir"/usr/lib/modules/*/vmlinuz; do [ ! -e "$vmlinuz" ] || break; done
}

# place FILE PATH TREE: a copy for the guest, with its mode
place() {
    mkdir -p "$(dirname "$3/$2")"
    cp -L "$1" "$3/$2"
}

# common_parts TREE: what every guest gets on top of its base
common_parts() {
    mkdir -p "$1/vm" "$1/usr/bin"
    cp "$here/guest/init" "$1/init"
    chmod +x "$1/init"
    cp "$here"/guest/{lib.sh,nfs.conf} "$1/vm/"
    cp "$work"/bin/* "$1/usr/bin/"
}

# append TREE IMAGE: a second archive after the base, which must start on a multiple of 4
append() {
    truncate -s %4 "$2"
    (cd "$1" && find . | busybox cpio -o -H newc 2>/dev/null) >>"$2"
}

# emulate MEMORY INITRD LOG ARGUMENTS [QEMU_OPTION]...: one guest until its end; standard output is its second serial line,
# LOG its console, ARGUMENTS its kernel's
emulate() {
    local memory=$1 initrd=$2 log=$3 arguments=$4
    shift 4
    rm -f "$log"
    timeout -k 5 "${VM_TIMEOUT:-900}" "${qemu[@]}" -accel tcg,thread=multi -M pc -cpu max -m "$memory" \
        -nodefaults -no-user-config -display none -no-reboot -serial "file:$log" -serial stdio \
        -kernel "$vmlinuz" -initrd "$initrd" -append "console=ttyS0 panic=-1 quiet $arguments" "$@" </dev/null 2>&1
}

# hear LABEL LOG: reports what a guest says on standard input, and fails without its tally
hear() {
    local line tally='' seen before=$((passed + failed + skipped)) p f s
    while IFS= read -r line; do
        line=${line%$'\r'}
        case $line in
        'tally '*) tally=$line ;;
        *) report "${line/ - / - $1 }" ;;
        esac
    done
    seen=$((passed + failed + skipped - before))
    # No tally is no result: the guest did not boot, hung, or died on the way.
    read -r _ p f s <<<"${tally:-tally 0 0 0}"
    if [ -z "$tally" ]; then
        report "NOT ok - $1: the guest did not come to its end; its console ends so:"
        tail -n 15 "$2" | sed 's/^/# /' || true
    elif [ "$seen" -ne $((p + f + s)) ] || [ "$seen" -eq 0 ]; then
        report "NOT ok - $1: the guest counted $((p + f + s)) results, $seen arrived"
    fi
}

# finish: the last line is the tally
finish() {
    if [ "$skipped" -gt 0 ]; then
        echo "# $skipped skipped"
        # In continuous integration nothing may go untested unnoticed.
        [ "${CI:-}" != true ] || failed=$((failed + skipped))
    fi
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
