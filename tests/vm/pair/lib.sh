# What the two guests of a pair share, on top of the other tests' lib.sh: the link, the server's shell, writers, limits.
# The client may be a whole system. Sourced by dash.
# shellcheck shell=dash disable=SC2034
. /vm/lib.sh
. /vm/daemon.sh
server=10.0.2.1
link=eth0

# link_up ADDRESS
link_up() {
    modprobe -a virtio_pci virtio_net sch_netem
    wait_for 20 test -e /sys/class/net/$link
    ip addr add "$1/24" dev $link
    ip link set $link up
}

# The server's half: it exports most of its memory, and runs what the client sends, for there is nobody else on this link.
serve() {
    link_up $server
    # A server with the memory of a real one offers this by itself.
    max_block_kib=1024 start_server 90%
    # By the name dash: busybox would run its own sh, and that its own tc.
    nc -ll -p 99 -e dash
}

join_server() {
    modprobe -a nfs nfsv3 nfsv4 virtio_blk ext4
    link_up 10.0.2.2
    wait_for 60 server_answers || not_ok "the server came up"
}
server_answers() { [ "$(on_server cat /proc/fs/nfsd/threads)" = 8 ]; }

# on_server COMMAND...: its output
on_server() { echo "$*; exit" | busybox nc -w 5 $server 99; }

# shape MBIT DELAY_MS: the link, one way each, so a round trip pays the delay twice; a rate of 0 is no limit
shape() {
    local netem="delay ${2}ms limit 100000"
    [ "$1" = 0 ] || netem="rate ${1}mbit $netem"
    on_server "tc qdisc replace dev $link root netem $netem 2>&1" | sed 's/^/server: /'
    # shellcheck disable=SC2086 # words
    tc qdisc replace dev $link root netem $netem
}

# from_server OPTIONS [MOUNT_POINT]
from_server() {
    mkdir -p "${2:-/mnt/x}"
    mount -t nfs -o "$1" $server:/srv/a "${2:-/mnt/x}"
}

# fresh_mount [OPTIONS]: with the kernel's own limits. It guesses 100 MB/s for a new device and takes a quarter of a minute of
# writing to unlearn that, so a mount's first writer is the one that waits.
fresh_mount() {
    unmount_all
    stock_limits
    from_server "vers=4.2${1:+,$1}"
}

local_disk() {
    mkdir -p /mnt/disk
    mount LABEL=local /mnt/disk
}

# write_file MIB KIB [FILE]: anew, in calls of KIB: the writer's second line; its first is in /run/steps
write_file() {
    rm -f "${3:-/mnt/x/written}"
    sync
    echo 3 >/proc/sys/vm/drop_caches
    writer "${3:-/mnt/x/written}" "$1" "$2" sync >/run/steps
    sed -n 2p /run/steps
}
# field NAME LINE: its value
field() { echo " $2" | sed -n "s/.* $1=\([0-9]*\).*/\1/p"; }

unmount_all() {
    umount -a -t nfs,nfs4 2>/dev/null
    wait_for 10 no_nfs
}

reset() {
    umount /mnt/disk 2>/dev/null
    unmount_all || { umount -l -a -t nfs,nfs4; return 1; }
    tc qdisc del dev $link root 2>/dev/null
    on_server "tc qdisc del dev $link root; rm -rf /srv/a/*"
    sync
    stock_limits
}

# ---- dirty limits by hand

page_bytes=4096
vm() { echo "$2" >"/proc/sys/vm/$1"; }
vmstat() { sed -n "s/^$1 //p" /proc/vmstat; }

stock_limits() {
    vm dirty_background_ratio 10
    vm dirty_ratio 20
}

# vm_limits KIB: the whole machine's pair, background at half
vm_limits() {
    vm dirty_background_bytes $(($1 * 512))
    vm dirty_bytes $(($1 * 1024))
}

# bdi_limits MOUNT_POINT MAX_KIB MIN_KIB: one mount's own, held strictly
bdi_limits() {
    local knobs threshold_kib
    knobs=/sys/class/bdi/$(dev_of "$1")
    threshold_kib=$(($(vmstat nr_dirty_threshold) * page_bytes / 1024))
    echo $(($2 * 1000000 / threshold_kib)) >"$knobs/max_ratio_fine"
    echo $(($3 * 1000000 / threshold_kib)) >"$knobs/min_ratio_fine"
    echo 1 >"$knobs/strict_limit"
}
