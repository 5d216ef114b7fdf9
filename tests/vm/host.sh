# What run, run-os, run-pair and boots share: the emulator, archives, one guest's boot, the count. Sourced by bash.
# shellcheck shell=bash disable=SC2034
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
top=$(readlink -f "$here/../..")
cache=${VM_CACHE:-$top/target/vm}
mkdir -p "$cache"/{log,image}
work=$(mktemp -d)
guests=() # process ids
end_guests() {
    [ ${#guests[@]} = 0 ] || kill "${guests[@]}" 2>/dev/null || true
    guests=()
}
trap 'end_guests; rm -rf "$work"' EXIT

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
    cp "$here"/guest/{lib.sh,daemon.sh,nfs.conf} "$1/vm/"
    cp "$work"/bin/* "$1/usr/bin/"
}

# add_peer FOLDER: the newest nfs-utils' helper, for the guest's /opt/peer. It needs a newer C library than the guest has, so it
# comes with its own.
add_peer() {
    local to=$1 peer=$cache/peer library
    # Unstable may be broken on any day: that is a skip, said by the test.
    "$here/fetch" "$cache" peer || return 0
    local libraries=$peer/usr/lib/x86_64-linux-gnu program=$peer/usr/libexec/nfsrahead
    local loader=$libraries/ld-linux-x86-64.so.2
    mkdir -p "$to/lib"
    cp -L "$loader" "$program" "$to/lib/"
    "$loader" --library-path "$libraries" --list "$program" | awk -v dir="$libraries" 'index($3, dir) { print $3 }' |
        while read -r library; do cp -L "$library" "$to/lib/"; done
    printf '#!/bin/sh\nexec /opt/peer/lib/%s --library-path /opt/peer/lib /opt/peer/lib/nfsrahead "$@"\n' \
        "$(basename "$loader")" >"$to/nfsrahead"
    chmod +x "$to/nfsrahead"
    cp "$peer/version" "$to/"
}

# add_tests DIRECTORY TREE: the scripts of the array tests, by name or as a file; sets the array list, their names in the guest
add_tests() {
    local name
    list=()
    for name in "${tests[@]}"; do
        [[ $name == */* ]] || name=$here/$1/$name.sh
        cp "$name" "$2/vm/"
        list+=("$(basename "$name" .sh)")
    done
}

# system_parts TREE: what makes the guest hand over to a whole system: TREE/disk goes over the files of its disk
system_parts() {
    mkdir -p "$1/disk"
    cp "$here/os/lib.sh" "$1/vm/os.sh"
    cp "$here/os/init.sh" "$1/vm/os-init.sh"
    cp "$here/os/run.sh" "$1/vm/os-run.sh"
    cp -r "$here/os/root/." "$1/disk/"
}
system_disk=(-drive "file=$cache/os/root.ext4,format=raw,if=virtio,cache=unsafe,snapshot=on")
system_arguments="net.ifnames=0 systemd.show_status=0 systemd.wants=vmtest.service systemd.mask=getty@tty1.service \
systemd.mask=serial-getty@ttyS0.service systemd.mask=e2scrub_reap.service systemd.mask=systemd-binfmt.service \
systemd.mask=proc-sys-fs-binfmt_misc.automount"

# append TREE IMAGE: a second archive after the base, which must start on a multiple of 4
append() {
    truncate -s %4 "$2"
    (cd "$1" && find . | busybox cpio -o -H newc 2>/dev/null) >>"$2"
}

# start MEMORY INITRD LOG ARGUMENTS [QEMU_OPTION]...: a guest; standard output is its second serial line, LOG its console,
# ARGUMENTS its kernel's
start() {
    emulate "$@" &
    guests+=($!)
}
emulate() {
    local memory=$1 initrd=$2 log=$3 arguments=$4
    shift 4
    rm -f "$log"
    exec timeout -k 5 "${VM_TIMEOUT:-900}" "${qemu[@]}" -accel tcg,thread=multi -M pc -cpu max -m "$memory" \
        -nodefaults -no-user-config -display none -no-reboot -serial "file:$log" -serial stdio \
        -kernel "$vmlinuz" -initrd "$initrd" -append "console=ttyS0 panic=-1 quiet $arguments" "$@" </dev/null 2>&1
}

# hear LABEL MEMORY INITRD LOG ARGUMENTS [QEMU_OPTION]...: starts the guest that has the tests, reports what it says, and fails
# without its tally; with it all guests end
hear() {
    local line label=$1 log=$4 tally='' seen before=$((passed + failed + skipped)) says p f s
    shift
    exec {says}< <(emulate "$@")
    guests+=($!)
    while IFS= read -r line; do
        line=${line%$'\r'}
        case $line in
        'tally '*) tally=$line ;;
        *) report "${line/ - / - $label }" ;;
        esac
    done <&"$says"
    exec {says}<&-
    end_guests
    seen=$((passed + failed + skipped - before))
    # No tally is no result: the guest did not boot, hung, or died on the way.
    read -r _ p f s <<<"${tally:-tally 0 0 0}"
    if [ -z "$tally" ]; then
        report "NOT ok - $label: the guest did not come to its end; its console ends so:"
        tail -n 15 "$log" | sed 's/^/# /' || true
    elif [ "$seen" -ne $((p + f + s)) ] || [ "$seen" -eq 0 ]; then
        report "NOT ok - $label: the guest counted $((p + f + s)) results, $seen arrived"
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
