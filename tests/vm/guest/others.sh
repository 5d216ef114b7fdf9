# Devices that are not NFS: left alone, and nobody waits for them.
# shellcheck shell=dash
watch
modprobe loop max_loop=4
settle
is "loop devices that appeared" "$(find /sys/class/bdi/ -name '7:*' | wc -l)" 4
is "helpers started for them" "$(runs)" 0
is "their value" "$(cat /sys/class/bdi/7:*/read_ahead_kb | sort -u)" 128
udevadm trigger --settle --subsystem-match=bdi --action=add
is "helpers started for them by a trigger" "$(runs)" 0
rmmod loop

mkdir -p /mnt/fuse
fuse_ms() {
    exec 5<>/dev/fuse
    mount -i -t fuse -o fd=5,rootmode=40000,user_id=0,group_id=0 fuse /mnt/fuse
    settle_ms
    cat /sys/class/bdi/0:*/read_ahead_kb >/run/fuse-value
    umount -l /mnt/fuse
    exec 5<&-
    settle
}
rule none
thrice fuse_ms >/run/without
kernels=$(cat /run/fuse-value)
rule ours
thrice fuse_ms >/run/with
is "FUSE keeps the kernel's value" "$(cat /run/fuse-value)" "$kernels"
costs "udev busy with a FUSE mount" 300 /run/without /run/with
# The event did reach the helper: leaving it alone was its decision.
is "helpers started for three FUSE mounts" "$(runs)" 3
