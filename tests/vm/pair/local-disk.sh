# Two writers: one fills a slow mount, the other writes to a local disk, which is twice as fast. The mount's own limit keeps them
# apart; with the kernel's or a smaller limit of the whole machine the disk's writer waits for the server.
# shellcheck shell=dash
shape 100 1
local_disk

# beside NAME COMMAND...: sets disk_ms, how long 16 MiB for the disk take to write, 4 s after a writer began on a new mount
beside() {
    local name=$1 line
    shift
    fresh_mount
    "$@"
    rm -f /mnt/disk/written
    sync
    writer /mnt/x/written 96 1024 sync >/dev/null &
    sleep 4
    line=$(writer /mnt/disk/written 16 1024 | tail -n 1)
    note "$name: disk $line"
    disk_ms=$(field total_ms "$line")
    wait
}

if fresh_mount && has_bdi_limits; then
    beside "16 MiB for the machine" vm_limits 16384
    machine_ms=$disk_ms
    beside "16 MiB for the mount" bdi_limits /mnt/x 16384 16000
    at_most "16 MiB to the disk, ms: at most 0.7 of what they take with the machine limited" "$disk_ms" $((machine_ms * 7 / 10))
else
    skip "this kernel has no strict limit for a device"
fi
